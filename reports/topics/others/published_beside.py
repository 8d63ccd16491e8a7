"""The cases of this report that stand beside a table of others. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import variant_of
from reports.analysis.rows import CaseRow
from reports.analysis.time_split import KIND_COLUMNS
from reports.sets.version import Version
from reports.topics.others.published import Table


def cases_beside(version: Version, table: Table) -> list[tuple[Campaign, list[CaseRow]]]:
    """The completed cases of the series on one node with the table's library, by set.

    Without sets whose efficiency is of another number of GPUs than the table's: it is 1 where the table's is less.
    """
    if table.series is None:
        return []
    fewest = min(row.gpus for row in table.rows)
    found = []
    for series in version.series(table.series):
        rows = [
            row
            for row in sorted(series.rows, key=lambda row: row.world_size)
            if row.rl_library == table.rl_library and row.nnodes == 1 and row.device == "cuda" and row.total_fps
            if row.baseline_world_size in (None, fewest)
        ]
        if rows:
            found.append((series, rows))
    return found


def fps_beside(series: Campaign, row: CaseRow) -> list[float | None]:
    """What RL-Games printed itself where it did, else by labscale's clock."""
    found = series.inside[row.case_id]
    measured = {kind: values.median for kind, values in found.fps.items()}
    return [(found.printed_fps or measured).get(kind) for kind in KIND_COLUMNS]


def fewest_rounds(series: Campaign, row: CaseRow) -> int | None:
    """Rounds of the case or of its baseline, whichever has fewer; None for a baseline and without an efficiency."""
    if row.scaling_efficiency is None or row.world_size == row.baseline_world_size:
        return None
    bases = [one for one in series.rows if (one.curve, one.world_size) == (row.curve, row.baseline_world_size)]
    return min(one.rounds_completed for one in [row, *bases])


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """A case of the open division, with the frames per second of the settings as shipped on that host."""

    gpus: int
    variant: str
    rounds: int
    fps: float
    as_shipped_fps: float


def most_tuned(version: Version, table: Table) -> Sequence[Tuned]:
    """Return the tuned case with the most frames per second of each number of GPUs, the fewest first."""
    most: dict[int, Tuned] = {}
    for series in version.series(table.tuned) if table.tuned else ():
        for one in _tuned_cases(series, table.rl_library):
            most[one.gpus] = max(most.get(one.gpus, one), one, key=lambda each: each.fps)
    return [most[gpus] for gpus in sorted(most)]


def _tuned_cases(series: Campaign, rl_library: str | None) -> list[Tuned]:
    cases = {result.case.case_id: result.case for result in series.results}
    shipped = {
        row.world_size: row.total_fps
        for row in series.rows
        if (cases[row.case_id].division, row.rl_library) == ("closed", rl_library) and row.total_fps
    }
    return [
        Tuned(
            gpus=row.world_size,
            variant=variant_of(cases[row.case_id]),
            rounds=row.rounds_completed,
            fps=row.total_fps,
            as_shipped_fps=shipped[row.world_size],
        )
        for row in series.rows
        if (cases[row.case_id].division, row.rl_library, row.device) == ("open", rl_library, "cuda")
        if row.total_fps is not None and row.world_size in shipped
    ]
