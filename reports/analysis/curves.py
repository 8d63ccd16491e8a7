"""Which cases lie on one line of a chart, and what the line is called. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from reports.analysis.series_kind import change_of
from suite.schema.record import Case, CaseResult

TASKS: Final[Mapping[str, str]] = {
    "Isaac-Reorient-Cube-Shadow-Camera-Direct": "Shadow Hand with camera",
    "Isaac-Cartpole-Camera-Direct": "Cartpole with camera",
}


def variant_of(case: Case) -> str:
    """Suffix of the case id; empty for the plain case."""
    return case.case_id.rpartition(f"-{case.topology}")[2].removeprefix("-")


def size_of(case: Case) -> int:
    """What the series holds constant: all environments in strong scaling, those of a rank in weak scaling."""
    return case.num_envs_global if case.scaling == "strong" else case.num_envs


def comparison_key(case: Case) -> tuple[str | int, ...]:
    """Cases with equal keys differ in nothing but the number of ranks, so a speed-up between them means something."""
    return (
        case.series,
        case.task,
        case.rl_library,
        case.stack,
        case.device,
        case.minibatch_rule,
        case.assets,
        case.num_steps_per_env,
        size_of(case),
        variant_of(case),
    )


def curve_label(case: Case, cases: Sequence[Case]) -> str:
    """Label of a case's line: its library, and whatever else differs within the series.

    Nodes are named where the same number of ranks is there on fewer nodes too: that compares networks. More ranks
    than a node holds go on with the line.
    """
    siblings = [other for other in cases if other.series == case.series]

    def differs(value: Callable[[Case], object]) -> bool:
        return len({value(other) for other in siblings}) > 1

    tuned = any(other.division == "open" for other in siblings)
    sized = [other for other in siblings if variant_of(other) == variant_of(case)] if tuned else siblings
    parts: list[str] = []
    if tuned:  # then the change tells most, and is not followed by what all have
        parts.append(variant_of(case) or "as shipped")
    if not tuned or differs(lambda other: other.rl_library):
        parts.append(case.rl_library)
    if differs(lambda other: other.stack):
        parts.append(case.stack)
    if differs(lambda other: other.device):
        parts.append(case.device)
    if len({size_of(other) for other in sized}) > 1:
        parts.append(f"{size_of(case)} environments" + (" a rank" if case.scaling == "weak" else ""))
    if differs(lambda other: other.minibatch_rule):
        parts.append(case.minibatch_rule)
    if variant_of(case) and variant_of(case) not in parts:
        parts.append(variant_of(case))
    key = comparison_key(case)
    if any(
        other.world_size == case.world_size and other.nnodes < case.nnodes and comparison_key(other) == key
        for other in siblings
    ):
        parts.append(f"{case.nnodes} nodes")
    return ", ".join(parts)


def was_skipped(result: CaseResult) -> bool:
    """Never tried, since the machine is not of that size."""
    return bool(result.rounds) and all(record.outcome == "skipped" for record in result.rounds)


def is_emulated(result: CaseResult) -> bool:
    """Whether in any round several nodes were parts of one machine."""
    return any(record.transport is not None and record.transport.emulated for record in result.completed)


def line_of(result: CaseResult, cases: Sequence[Case]) -> str:
    """Of its line; emulated nodes have one of their own, since what they say holds of no network."""
    return curve_label(result.case, cases) + (", emulated" if is_emulated(result) else "")


def measured_for_speed(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Without series that have cold starts: their rounds are to start, and have few iterations."""
    every = list(results)
    starts = {result.case.series for result in every if result.case.kernel_cache == "empty"}
    return [result for result in every if result.case.series not in starts]


def as_shipped(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Cases on GPUs of one node that train, as upstream ships them, with a completed round."""
    return [result for result in _trained(results) if result.case.division == "closed"]


def tuned(results: Iterable[CaseResult]) -> list[CaseResult]:
    """Return the like with tuned settings. The two are never ranked together."""
    return [
        result for result in _trained(results) if result.case.division == "open" and change_of(result.case) == "tuned"
    ]


def _trained(results: Iterable[CaseResult]) -> list[CaseResult]:
    return [
        result
        for result in measured_for_speed(results)
        if result.completed and result.case.learns and (result.case.device, result.case.nnodes) == ("cuda", 1)
    ]


def curves(results: Sequence[CaseResult]) -> list[list[CaseResult]]:
    """Cases that differ in nothing but GPUs, fewest first."""
    groups: dict[tuple[str | int, ...], list[CaseResult]] = {}
    for result in sorted(results, key=lambda result: result.case.world_size):
        groups.setdefault(comparison_key(result.case), []).append(result)
    return list(groups.values())


def task_name(task: str) -> str:
    """A task's name without its framework: ``Isaac-Cartpole-Direct`` is ``Cartpole``."""
    return TASKS.get(task, task.removeprefix("Isaac-").removesuffix("-Direct").replace("-", " "))
