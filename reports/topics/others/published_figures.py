"""What *Published figures* says of our cases besides figures.json. Pure."""

from collections.abc import Mapping

from reports.analysis.time_split import KIND_COLUMNS
from reports.display.topic import Figures
from reports.sets.version import Version
from reports.topics.others.published import read_published
from reports.topics.others.published_page import cases_beside, fps_beside


def published_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> frames per second of each kind, of the cases beside tables that have such."""
    names = [f"{kind.replace(' ', '_')}_frames_per_s" for kind in KIND_COLUMNS]
    return {
        f"{series.name}: {row.case_id}": dict(zip(names, fps_beside(series, row), strict=True))
        for table in read_published().table
        if table.rows[0].hours is None
        for series, rows in cases_beside(version, table)
        for row in rows
    }
