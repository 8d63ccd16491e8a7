"""What the stored results say: one ``CaseRow`` per case, with its speed-up against a baseline. Pure.

A round is a fresh process. Its iteration time is ``suite.statistics.reduce.round_time_s``; a case's is the geometric
mean over its completed rounds. Speed-ups are those of ``suite.statistics.series_model``. Nothing here guesses: a value
without its measurement is ``None``.
"""

import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports.analysis.curves import comparison_key, interconnect_of, line_of
from suite.schema.record import Case, CaseResult, Device, MinibatchRule, Outcome, RunRecord, Scaling
from suite.statistics.intervals import Estimate, Interval, Rounds, mean_of
from suite.statistics.reduce import iteration_times_s, round_time_s, window
from suite.statistics.series_model import SetModel
from suite.statistics.start_up import start_up


@dataclass(frozen=True, kw_only=True)
class CaseRow:
    """One case with what is derived from its rounds; what goes on inside them is ``reports.analysis.time_split``."""

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
    curve: str  # which line of the series' charts it belongs to
    outcome_counts: Mapping[Outcome, int]
    rounds_completed: int
    iteration_time_s: float | None
    iteration_time_interval_s: Interval | None
    total_fps: float | None
    all_reduce_share: float | None  # of the iteration time
    interconnect: str | None  # what the data of its ranks crossed; None for one rank, and where it is not known
    rank_skew: float | None  # slowest over median rank, minus 1; None for one rank
    baseline_world_size: int | None = None
    speedup: float | None = None
    ideal_speedup: float | None = None
    scaling_efficiency: float | None = None
    # Of cases of fewer than three rounds None, and of the baseline itself, whose speed-up is 1 by definition.
    speedup_interval: Interval | None = None
    scaling_efficiency_interval: Interval | None = None

    @property
    def rounds(self) -> int:
        return sum(self.outcome_counts.values())


def case_rows(results: Sequence[CaseResult], model: SetModel | None = None) -> tuple[CaseRow, ...]:
    """One row per result, ordered by series, curve, world size and case id, with speed-ups filled in.

    ``model``: of their set; None if ``results`` is all of it.
    """
    cases = [result.case for result in results]
    model = model or SetModel.of(results)
    rows = [_measured_row(result, line_of(result, cases)) for result in results]
    bases = _baselines(rows, cases)
    case_of = {case.case_id: case for case in cases}
    scaled = (
        _with_scaling(row, base, model.speedup(case, case_of[base.case_id]))
        for row, case in zip(rows, cases, strict=True)
        for base in [bases[comparison_key(case)]]
    )
    return tuple(sorted(scaled, key=lambda row: (row.series, _natural(row.curve), row.world_size, row.case_id)))


def _natural(text: str) -> list[tuple[int, int | str]]:
    """Numbers in a text count as numbers: 2048 environments come before 16384."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"\d+|\D+", text)]


def _measured_row(result: CaseResult, curve: str) -> CaseRow:
    case = result.case
    times_s = case_times(result).values()
    time = mean_of(times_s) if times_s else None
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
        curve=curve,
        outcome_counts=Counter(record.outcome for record in result.rounds),
        rounds_completed=len(result.completed),
        iteration_time_s=time.value if time else None,
        iteration_time_interval_s=time.interval if time else None,
        total_fps=case.frames_per_iteration / time.value if time and case.has_frames else None,
        all_reduce_share=_median_over_rounds(result, lambda record: _share(record, "all_reduce_time_s")),
        interconnect=interconnect_of(result),
        rank_skew=_median_over_rounds(result, rank_skew),
    )


# --- speed-up and efficiency -------------------------------------------------------------------------------------


def _baselines(rows: Sequence[CaseRow], cases: Sequence[Case]) -> dict[tuple[str | int, ...], CaseRow]:
    """The smallest world size of every comparison, measured or not: a failed baseline is not replaced by another."""
    bases: dict[tuple[str | int, ...], CaseRow] = {}
    for row, case in sorted(
        zip(rows, cases, strict=True), key=lambda pair: (pair[0].world_size, pair[0].nnodes, pair[0].case_id)
    ):
        bases.setdefault(comparison_key(case), row)
    return bases


def _with_scaling(row: CaseRow, base: CaseRow, speedup: Estimate | None) -> CaseRow:
    if speedup is None:
        return row
    if row.world_size == base.world_size and row.case_id != base.case_id:
        return row  # the same ranks on more nodes: what nodes cost is reports.analysis.pairs_of_cases, and no scaling
    ideal = row.world_size / base.world_size
    low_high = speedup.interval if row.case_id != base.case_id else None
    return replace(
        row,
        baseline_world_size=base.world_size,
        speedup=speedup.value,
        ideal_speedup=ideal,
        scaling_efficiency=speedup.value / ideal,
        speedup_interval=low_high,
        scaling_efficiency_interval=low_high and (low_high[0] / ideal, low_high[1] / ideal),
    )


# --- within a round ----------------------------------------------------------------------------------------------


def case_times(result: CaseResult) -> Rounds:
    """Seconds per iteration of every completed round."""
    return {record.round: round_time_s(record) for record in result.completed}


def start_up_s(result: CaseResult) -> float | None:
    """What a process takes beyond its iterations at their later pace, median over the completed rounds."""
    times_s = case_times(result)
    beyond = [
        wall_s - result.case.iterations * times_s[record.round]
        for record in result.completed
        if (wall_s := own_wall_s(record)) is not None
    ]
    return statistics.median(beyond) if beyond else None


def own_wall_s(record: RunRecord) -> float | None:
    """Wall time of a round [s] without the turns of others; None if nobody took it.

    For a round in turns it is the time to the end of the first iteration and all iterations after that one. What the
    round took to end is not in it, because others ran meanwhile.
    """
    if record.wall_time_s is None or record.turns is None or record.outcome != "completed":
        return record.wall_time_s
    return min(record.wall_time_s, start_up(record).total_s + sum(iteration_times_s(record)[1:]))


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _median_over_rounds(result: CaseResult, value: Callable[[RunRecord], float | None]) -> float | None:
    values = _present(value(record) for record in result.completed)
    return statistics.median(values) if values else None


def _share(record: RunRecord, column: str) -> float | None:
    """Time in ``column`` over iteration time, both summed over all ranks and the window."""
    part_s = whole_s = 0.0
    counted = window(record)
    for rank in record.ranks:
        parts = rank.samples.get(column, ())[counted.start :]
        wholes = rank.samples["iteration_time_s"][counted.start :]
        for part, whole in zip(parts, wholes, strict=False):  # a column that was never measured is empty
            if part is not None and whole is not None:
                part_s += part
                whole_s += whole
    return part_s / whole_s if whole_s else None


def rank_skew(record: RunRecord) -> float | None:
    """Median over the window of (slowest rank / median rank - 1)."""
    columns = [rank.samples["iteration_time_s"][window(record).start :] for rank in record.ranks]
    if len(columns) < 2:  # noqa: PLR2004 - one rank has nothing to be compared with
        return None
    skews = [
        max(times) / statistics.median(times) - 1
        for times in (_present(values) for values in zip(*columns, strict=False))
        if len(times) == len(columns)
    ]
    return statistics.median(skews) if skews else None
