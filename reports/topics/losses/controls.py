"""What a part of an iteration takes alone, as the controls measured it, and the same part within training. Pure.

Times are of a unit that does not depend on how much a control repeats: one step of all environments of a rank, with
what cameras draw for it, or the all-reduces of one optimiser step: rsl_rl has a small one beside that of the gradient,
which the control has not. They are of the slowest rank; all-reduces are those of the rank that waited least, which is
the least that explains them.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from reports.analysis.curves import comparison_key
from reports.analysis.environments import hardware
from reports.analysis.time_split import samples_at
from suite.schema.record import Case, CaseResult, RankRecord, RunRecord, Stack, Workload
from suite.statistics.reduce import marked_iterations

type Unit = Literal["step", "optimiser step"]


@dataclass(frozen=True, kw_only=True)
class Timed:
    """One case's time of the part; a control's where it ran alone."""

    case: Case
    where: str
    time_s: float  # of a unit, median over rounds
    times_fewest: float | None  # over that of the fewest GPUs of the same set and size; None for those

    @property
    def is_alone(self) -> bool:
        return not self.case.learns


@dataclass(frozen=True, kw_only=True)
class PartAlone:
    """Controls of one part and size with the training that does as much of it in a rank."""

    workload: Workload
    task: str
    stack: Stack
    num_envs: int | None  # of a rank; None for all-reduces, whose size is the agent's
    unit: Unit
    timed: tuple[Timed, ...]  # controls first, then training, each by set and number of GPUs


COLUMNS: Final[dict[Workload, str]] = {
    "environment_step": "environment_step_time_s",
    "rendering": "render_time_s",
    "all_reduce": "all_reduce_time_s",
    "collection": "collection_time_s",
}


def part_of(case: Case) -> Workload:
    """Return the control whose part the case is timed for; rollouts that Ray carries stand beside those that stay."""
    return "collection" if case.workload == "collection_ray" else case.workload


def is_part(case: Case) -> bool:
    """Whether the case runs a part alone that is timed in training too."""
    return part_of(case) in COLUMNS


class _Key(NamedTuple):
    """What cases have in common that do the same part as often in a rank."""

    workload: Workload
    task: str
    stack: Stack
    num_envs: int | None
    rl_library: str | None  # of all-reduces, since a gradient is its agent's

    @classmethod
    def of(cls, control: Case) -> "_Key":
        reduces = control.workload == "all_reduce"
        num_envs, rl_library = (None, control.rl_library) if reduces else (control.num_envs, None)
        return cls(part_of(control), control.task, control.stack, num_envs, rl_library)

    def has(self, case: Case) -> bool:
        """Its controls, and training on one node as upstream ships it."""
        return (
            (case.task, case.stack, case.nnodes, case.division) == (self.task, self.stack, 1, "closed")
            and (case.learns or part_of(case) == self.workload)
            and self.num_envs in (None, case.num_envs)
            and self.rl_library in (None, case.rl_library)
        )


def parts_alone(sets: Iterable[Sequence[CaseResult]]) -> tuple[PartAlone, ...]:
    """One for each control of GPUs by task, stack and environments a rank, in order of appearance."""
    every = [[result for result in one if result.completed and result.case.device == "cuda"] for one in sets]
    keys = dict.fromkeys(_Key.of(result.case) for one in every for result in one if is_part(result.case))
    parts = []
    for key in keys:
        timed = [each for one in every for each in _timed([r for r in one if key.has(r.case)], key.workload)]
        parts.append(
            PartAlone(
                workload=key.workload,
                task=key.task,
                stack=key.stack,
                num_envs=key.num_envs,
                unit="optimiser step" if key.workload == "all_reduce" else "step",
                timed=tuple(sorted(timed, key=lambda each: not each.is_alone)),
            )
        )
    return tuple(part for part in parts if part.timed)


def _timed(results: Sequence[CaseResult], workload: Workload) -> list[Timed]:
    """Of one set, each against the fewest GPUs of its curve. Without the cases that do not time the part."""
    fewest: dict[tuple[str | int, ...], float] = {}
    found = []
    for result in sorted(results, key=lambda result: result.case.world_size):
        time_s = _time_s(result, workload)
        if time_s is None:
            continue
        curve = comparison_key(result.case)
        first_s = fewest.get(curve)
        fewest.setdefault(curve, time_s)
        found.append(
            Timed(
                case=result.case,
                where=_where(result.completed),
                time_s=time_s,
                times_fewest=None if first_s is None else time_s / first_s,
            )
        )
    return found


def _where(records: Sequence[RunRecord]) -> str:
    environment = records[0].environment
    return environment.host_label or hardware(environment)


def _time_s(result: CaseResult, workload: Workload) -> float | None:
    rounds = [_round_s(record, workload) for record in result.completed]
    known = [time_s for time_s in rounds if time_s is not None]
    return statistics.median(known) if known else None


def _round_s(record: RunRecord, workload: Workload) -> float | None:
    """The median of the marked iterations of the window in which every rank has it; None where there is none."""
    of_ranks: Callable[[Iterable[float]], float] = min if workload == "all_reduce" else max
    columns = [_units_s(rank, record, workload) for rank in record.ranks]
    known = [[time_s for time_s in times_s if time_s is not None] for times_s in zip(*columns, strict=False)]
    of_iterations = [of_ranks(times_s) for times_s in known if len(times_s) == len(columns)]
    return statistics.median(of_iterations) if of_iterations else None


def _units_s(rank: RankRecord, record: RunRecord, workload: Workload) -> list[float | None]:
    """What one unit took on one rank in every marked iteration of the window."""
    marked = marked_iterations(record)
    times_s = samples_at(rank, COLUMNS[workload], marked)
    case = record.case
    units = case.optimiser_steps if workload == "all_reduce" else case.num_steps_per_env
    return [None if time_s is None else time_s / units for time_s in times_s]
