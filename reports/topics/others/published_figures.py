"""What *Published figures* says besides figures.json: of tables of others, and of our cases beside them. Pure."""

from collections.abc import Mapping
from dataclasses import asdict

from reports.analysis.time_split import KIND_COLUMNS
from reports.display.topic import Figures, has_speeds
from reports.sets.version import Version
from reports.topics.others.published import (
    KINDS,
    Published,
    Row,
    Table,
    efficiency,
    implied_by,
    most_frames,
    read_published,
)
from reports.topics.others.published_beside import cases_beside, fewest_rounds, fps_beside, most_tuned


def published_figures(version: Version) -> Mapping[str, Figures]:
    """Return what the tables imply, over all and by source, table and row; and figures of our cases beside them."""
    if not has_speeds(version):
        return {}
    published = read_published()
    return {**_of_others(published), **_of_tuned(version, published), **_of_ours(version, published)}


def _of_others(published: Published) -> Mapping[str, Figures]:
    by_source = {
        source.name: asdict(implied_by(table for table in published.table if table.source == source.name))
        for source in published.source
    }
    rows = {f"{_name(table)}: {row.gpus} GPUs": _of_row(table, row) for table in published.table for row in table.rows}
    over_all = {"sources": len(published.source), **asdict(implied_by(published.table))}
    return {"all": over_all, **by_source, **rows}


def _of_row(table: Table, row: Row) -> Figures:
    """Frames per second as they are printed, and efficiencies with what rounding leaves open, of each kind."""
    said: dict[str, object] = {}
    for kind, name in zip(KINDS, ("step", "step_and_inference", "total"), strict=True):
        found = efficiency(table, row, kind)
        printed = row.rates.get(kind) if row.hours is None else None
        said |= {
            f"{name}_frames_per_s": printed and printed.value,
            f"{name}_efficiency": found and found[0],
            f"{name}_efficiency_range": found and [*found[1]],
        }
    return said


def _of_tuned(version: Version, published: Published) -> Mapping[str, Figures]:
    """Columns have one value of each number of GPUs."""
    said: dict[str, Figures] = {}
    for table in published.table:
        found, theirs = most_tuned(version, table), most_frames(table)
        if found and theirs:
            said[f"{_name(table)}: tuned"] = {
                "case_ids": [one.case_id for one in found],
                "runs": [one.rounds for one in found],
                "frames_per_s": [one.fps for one in found],
                "as_shipped_frames_per_s": [one.as_shipped_fps for one in found],
                "their_gpus": theirs[0],
                "their_frames_per_s": theirs[1],
            }
    return said


def _of_ours(version: Version, published: Published) -> Mapping[str, Figures]:
    names = [f"{kind.replace(' ', '_')}_frames_per_s" for kind in KIND_COLUMNS]
    said: dict[str, Figures] = {}
    for table in published.table:
        for series, rows in cases_beside(version, table):
            for row in rows:
                fps = {} if table.rows[0].hours is not None else zip(names, fps_beside(series, row), strict=True)
                figures = {**dict(fps), "fewest_runs_of_efficiency": fewest_rounds(series, row)}
                said[f"{series.name}: {row.case_id}"] = figures
    return said


def _name(table: Table) -> str:
    return f"{table.source}: {table.title}"
