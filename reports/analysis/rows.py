"""What the stored results say: one ``CaseRow`` per case, and what is computed of one round. Pure.

A round is a fresh process. Its iteration time is ``suite.statistics.reduce.round_time_s``; a case's is the geometric
mean over its completed rounds. Nothing here guesses: a value without its measurement is ``None``.
"""

import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.analysis.curves import line_of
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.intervals import Rounds, mean_of
from suite.statistics.reduce import iteration_times_s, round_time_s, window
from suite.statistics.start_up import start_up


@dataclass(frozen=True, kw_only=True)
class CaseRow:
    """One case with what is derived from its rounds."""

    case_id: str
    series: str
    topology: str
    world_size: int
    curve: str  # which line of the series' charts it belongs to
    rounds_completed: int
    iteration_time_s: float | None
    total_fps: float | None


def case_rows(results: Sequence[CaseResult]) -> tuple[CaseRow, ...]:
    """One row per result, ordered by series, curve, world size and case id."""
    cases = [result.case for result in results]
    rows = (_row(result, cases) for result in results)
    return tuple(sorted(rows, key=lambda row: (row.series, _natural(row.curve), row.world_size, row.case_id)))


def _natural(text: str) -> list[tuple[int, int | str]]:
    """Numbers in a text count as numbers: 2048 environments come before 16384."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in re.findall(r"\d+|\D+", text)]


def _row(result: CaseResult, cases: Sequence[Case]) -> CaseRow:
    case = result.case
    times_s = case_times(result).values()
    time = mean_of(times_s) if times_s else None
    return CaseRow(
        case_id=case.case_id,
        series=case.series,
        topology=case.topology,
        world_size=case.world_size,
        curve=line_of(result, cases),
        rounds_completed=len(result.completed),
        iteration_time_s=time.value if time else None,
        total_fps=case.frames_per_iteration / time.value if time and case.has_frames else None,
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
