"""What the stored results say: one ``CaseRow`` per case, speed-ups against a baseline, and learning curves. Pure.

A round is a fresh process. Its iteration time is ``suite.reduce.round_time_s``; a case's is the median over its
completed rounds. Nothing here guesses: a value without its measurement is ``None``.
"""

import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reports.resampling import Estimate, Interval, Pairing, Rounds, Timed, estimate, median_interval, pairing_of
from suite.reduce import round_time_s, steady_part
from suite.schema import Case, CaseResult, Device, MinibatchRule, Outcome, RunRecord, Scaling


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One round that did not complete."""

    case_id: str
    round: int
    outcome: Outcome
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class CaseRow:
    """One case with everything derived from its rounds. Shares are fractions of the iteration time."""

    case_id: str
    series: str
    scaling: Scaling
    task: str
    rl_library: str
    stack: str
    device: Device
    minibatch_rule: MinibatchRule
    topology: str
    nnodes: int
    world_size: int
    num_envs: int
    num_envs_global: int
    variant: str  # suffix of the case id; empty for the plain case
    curve: str  # which line of the series' charts it belongs to
    outcome_counts: Mapping[Outcome, int]
    rounds_completed: int
    failures: tuple[Failure, ...]
    iteration_time_s: float | None
    iteration_time_min_s: float | None
    iteration_time_max_s: float | None
    iteration_time_interval_s: Interval | None  # of the median
    total_fps: float | None
    collection_share: float | None
    learning_share: float | None
    environment_step_share: float | None
    all_reduce_share: float | None
    interconnect: str | None  # what the data of its ranks crossed; None for one rank, and where it is not known
    rank_skew: float | None  # slowest over median rank, minus 1; None for one rank
    baseline_world_size: int | None = None
    speedup: float | None = None
    ideal_speedup: float | None = None
    scaling_efficiency: float | None = None
    # Of cases of fewer than three rounds None, and of the baseline itself, whose speed-up is 1 by definition.
    speedup_interval: Interval | None = None
    scaling_efficiency_interval: Interval | None = None
    speedup_pairing: Pairing | None = None  # see reports.resampling.pairing_of

    @property
    def rounds(self) -> int:
        return sum(self.outcome_counts.values())


@dataclass(frozen=True, kw_only=True)
class CaseTimes:
    """Seconds per iteration of every completed round, and when it began."""

    times_s: Rounds
    started: Mapping[int, datetime]


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """Reward at one iteration of a case, the median over rounds of the mean over ranks."""

    case_id: str
    curve: str
    topology: str
    iteration: int
    reward: float


def case_rows(results: Sequence[CaseResult]) -> tuple[CaseRow, ...]:
    """One row per result, ordered by series, curve, world size and case id, with speed-ups filled in."""
    cases = [result.case for result in results]
    rows = [_measured_row(result, _label(result, cases)) for result in results]
    bases = _baselines(rows, cases)
    timed = {result.case.case_id: case_times(result) for result in results}
    scaled = (_with_scaling(row, bases[comparison_key(case)], timed) for row, case in zip(rows, cases, strict=True))
    return tuple(sorted(scaled, key=lambda row: (row.series, _natural(row.curve), row.world_size, row.case_id)))


def _natural(text: str) -> list[tuple[int, int | str]]:
    """Numbers in a text count as numbers: 2048 environments come before 16384."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"\d+|\D+", text)]


def _measured_row(result: CaseResult, curve: str) -> CaseRow:
    case = result.case
    times_s = list(case_times(result).times_s.values())
    time_s = statistics.median(times_s) if times_s else None
    return CaseRow(
        case_id=case.case_id,
        series=case.series,
        scaling=case.scaling,
        task=case.task,
        rl_library=case.rl_library,
        stack=case.stack,
        device=case.device,
        minibatch_rule=case.minibatch_rule,
        topology=case.topology,
        nnodes=case.nnodes,
        world_size=case.world_size,
        num_envs=case.num_envs,
        num_envs_global=case.num_envs_global,
        variant=_variant(case),
        curve=curve,
        outcome_counts=Counter(record.outcome for record in result.rounds),
        rounds_completed=len(result.completed),
        failures=_failures(result),
        iteration_time_s=time_s,
        iteration_time_min_s=min(times_s, default=None),
        iteration_time_max_s=max(times_s, default=None),
        iteration_time_interval_s=median_interval(times_s),
        total_fps=case.frames_per_iteration / time_s if time_s else None,
        collection_share=_median_over_rounds(result, lambda record: _share(record, "collection_time_s")),
        learning_share=_median_over_rounds(result, lambda record: _share(record, "learning_time_s")),
        environment_step_share=_median_over_rounds(result, lambda record: _share(record, "environment_step_time_s")),
        all_reduce_share=_median_over_rounds(result, lambda record: _share(record, "all_reduce_time_s")),
        interconnect=interconnect_of(result),
        rank_skew=_median_over_rounds(result, _rank_skew),
    )


def interconnect_of(result: CaseResult) -> str | None:
    """In words, of every round that says it: ``nvlink``, ``emulated (host_memory)``."""
    found = [record.transport.interconnect for record in result.completed if record.transport]
    return ", ".join(dict.fromkeys(word.replace("_", " ") for word in found if word)) or None


def is_emulated(result: CaseResult) -> bool:
    """Whether in any round several nodes were parts of one machine."""
    return any(record.transport is not None and record.transport.emulated for record in result.completed)


def _label(result: CaseResult, cases: Sequence[Case]) -> str:
    """Of its line; emulated nodes have one of their own, since what they say holds of no network."""
    return curve_label(result.case, cases) + (", emulated" if is_emulated(result) else "")


def _failures(result: CaseResult) -> tuple[Failure, ...]:
    return tuple(
        Failure(case_id=result.case.case_id, round=record.round, outcome=record.outcome, reason=record.reason)
        for record in result.rounds
        if record.outcome != "completed"
    )


# --- speed-up and efficiency -------------------------------------------------------------------------------------


def _variant(case: Case) -> str:
    return case.case_id.rpartition(f"-{case.topology}")[2].removeprefix("-")


def _size(case: Case) -> int:
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
        _size(case),
        _variant(case),
    )


def _baselines(rows: Sequence[CaseRow], cases: Sequence[Case]) -> dict[tuple[str | int, ...], CaseRow]:
    """The smallest world size of every comparison, measured or not: a failed baseline is not replaced by another."""
    bases: dict[tuple[str | int, ...], CaseRow] = {}
    for row, case in sorted(
        zip(rows, cases, strict=True), key=lambda pair: (pair[0].world_size, pair[0].nnodes, pair[0].case_id)
    ):
        bases.setdefault(comparison_key(case), row)
    return bases


def _with_scaling(row: CaseRow, base: CaseRow, timed: Mapping[str, CaseTimes]) -> CaseRow:
    own, its_base = timed[row.case_id], timed[base.case_id]
    if not own.times_s or not its_base.times_s:
        return row
    work = row.num_envs_global / base.num_envs_global
    ideal = row.world_size / base.world_size
    speedup = speedup_of(own, its_base, work=work)
    low_high = speedup.interval if row.case_id != base.case_id else None
    return replace(
        row,
        baseline_world_size=base.world_size,
        speedup=speedup.value,
        ideal_speedup=ideal,
        scaling_efficiency=speedup.value / ideal,
        speedup_interval=low_high,
        scaling_efficiency_interval=low_high and (low_high[0] / ideal, low_high[1] / ideal),
        speedup_pairing=low_high and pairing_of([own, its_base]),
    )


def speedup_of(case: Timed, base: Timed, *, work: float) -> Estimate:
    """Throughput over that of the baseline; ``work``: environment steps of an iteration over those of the baseline's.

    In strong scaling the work is the same, so it is t(base) / t(N).
    """
    samples = [base.times_s, case.times_s]
    return estimate(samples, lambda medians: work * medians[0] / medians[1], pairing_of([base, case]))


def curve_label(case: Case, cases: Sequence[Case]) -> str:
    """Label of a case's line: its library, and whatever else differs within the series.

    Nodes are named where the same number of ranks is there on fewer nodes too: that compares networks. More ranks
    than a node holds go on with the line.
    """
    siblings = [other for other in cases if other.series == case.series]

    def differs(value: Callable[[Case], object]) -> bool:
        return len({value(other) for other in siblings}) > 1

    parts: list[str] = [case.rl_library]
    if differs(lambda other: other.stack):
        parts.append(case.stack)
    if differs(lambda other: other.device):
        parts.append(case.device)
    if differs(_size):
        parts.append(f"{_size(case)} environments" + (" a rank" if case.scaling == "weak" else ""))
    if differs(lambda other: other.minibatch_rule):
        parts.append(case.minibatch_rule)
    if _variant(case) and _variant(case) not in parts:
        parts.append(_variant(case))
    key = comparison_key(case)
    if any(
        other.world_size == case.world_size and other.nnodes < case.nnodes and comparison_key(other) == key
        for other in siblings
    ):
        parts.append(f"{case.nnodes} nodes")
    return ", ".join(parts)


# --- within a round ----------------------------------------------------------------------------------------------


def case_times(result: CaseResult) -> CaseTimes:
    """Of the completed rounds."""
    return CaseTimes(
        times_s={record.round: round_time_s(record) for record in result.completed},
        started={
            record.round: datetime.fromisoformat(record.started_utc)
            for record in result.completed
            if record.started_utc is not None
        },
    )


def start_up_s(result: CaseResult) -> float | None:
    """What a process takes beyond its iterations at their steady pace, median over the completed rounds."""
    times_s = case_times(result).times_s
    beyond = [
        record.wall_time_s - result.case.iterations * times_s[record.round]
        for record in result.completed
        if record.wall_time_s is not None
    ]
    return statistics.median(beyond) if beyond else None


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _median_over_rounds(result: CaseResult, value: Callable[[RunRecord], float | None]) -> float | None:
    values = _present(value(record) for record in result.completed)
    return statistics.median(values) if values else None


def _share(record: RunRecord, column: str) -> float | None:
    """Time in ``column`` over iteration time, both summed over all ranks and steady iterations."""
    part_s = whole_s = 0.0
    steady = steady_part(record)
    for rank in record.ranks:
        parts = steady.of(rank.samples.get(column, ()))
        wholes = steady.of(rank.samples.get("iteration_time_s", ()))
        for part, whole in zip(parts, wholes, strict=False):  # a column that was never measured is empty
            if part is not None and whole is not None:
                part_s += part
                whole_s += whole
    return part_s / whole_s if whole_s else None


def _rank_skew(record: RunRecord) -> float | None:
    """Median over steady iterations of (slowest rank / median rank - 1)."""
    steady = steady_part(record)
    columns = [steady.of(rank.samples.get("iteration_time_s", ())) for rank in record.ranks]
    if len(columns) < 2:  # noqa: PLR2004 - one rank has nothing to be compared with
        return None
    skews = [
        max(times) / statistics.median(times) - 1
        for times in (_present(values) for values in zip(*columns, strict=False))
        if len(times) == len(columns)
    ]
    return statistics.median(skews) if skews else None


# --- learning curves --------------------------------------------------------------------------------------------


def learning_curve(result: CaseResult, row: CaseRow) -> tuple[CurvePoint, ...]:
    """Reward over the iterations of a case's completed rounds; empty when no rank reported any."""
    per_round = [mean_rewards(record) for record in result.completed]
    points = []
    for iteration in range(max((len(rewards) for rewards in per_round), default=0)):
        rewards = _present(values[iteration] for values in per_round if iteration < len(values))
        if rewards:
            points.append(
                CurvePoint(
                    case_id=row.case_id,
                    curve=row.curve,
                    topology=row.topology,
                    iteration=iteration,
                    reward=statistics.median(rewards),
                )
            )
    return tuple(points)


def mean_rewards(record: RunRecord) -> list[float | None]:
    """Mean over the ranks that have one, per iteration."""
    columns = [rank.samples.get("reward_mean", ()) for rank in record.ranks]
    per_iteration = (_present(values) for values in zip(*columns, strict=False))
    return [statistics.fmean(rewards) if rewards else None for rewards in per_iteration]
