"""What a process does until it trains, phase by phase, cold beside warm, as a table. Pure."""

from collections.abc import Callable, Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import variant_of
from reports.analysis.start_ups import PARTS, ColdAndWarm, median_parts_s, whole_of
from reports.display.charts.drawing import as_table
from reports.display.figure import TableFigure
from reports.display.html import estimated, html_table, seconds
from suite.schema.record import Case
from suite.statistics.start_up import StartUp

CAPTION: Final = (
    "From the first line of a process to the end of its first iteration. Each part is its median over the starts, so"
    " the parts need not add up to the median of the whole. Scene: the environment is created. Preparation: ranks are"
    " joined, and the library prepares itself."
)
type _Line = tuple[str, Sequence[StartUp]]  # label, and the starts


def start_up(series: Campaign, found: Sequence[ColdAndWarm]) -> TableFigure:
    """``found``: each with cold and warm starts. Two lines for each, in seconds."""
    lines = [line for both in found for line in _lines(both, found)]
    table = html_table(
        ["Start", "Whole start in s", *(f"{part.capitalize()} in s" for part in PARTS), "Starts"],
        (
            [
                label,
                estimated(whole_of(starts), seconds),
                *map(seconds, median_parts_s(starts).values()),
                str(len(starts)),
            ]
            for label, starts in lines
        ),
        label="Parts of a start",
    )
    return as_table(series, chart="start-up", caption=CAPTION, data=table)


def _lines(both: ColdAndWarm, found: Sequence[ColdAndWarm]) -> list[_Line]:
    which = _which(both, found)
    return [(f"Cold{which}", both.cold), (f"Warm{which}", both.warm)]


def _which(both: ColdAndWarm, found: Sequence[ColdAndWarm]) -> str:
    """What tells the work from that of the other lines."""
    ways: tuple[Callable[[Case], str], ...] = (
        lambda case: case.rl_library,
        lambda case: case.stack,
        lambda case: f"{case.num_envs:,} envs",
        lambda case: case.topology,
        variant_of,
    )
    differing = [way(both.case) for way in ways if len({way(other.case) for other in found}) > 1]
    return "".join(f", {word}" for word in differing if word)
