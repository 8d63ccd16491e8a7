"""What a published point costs, as a table."""

from collections.abc import Sequence

from reports.analysis.cost import Cost, timed_points
from reports.display.html import Html, html_table, paragraph, together
from suite.files.wording import counted


def cost_table(costs: Sequence[tuple[str, Cost]]) -> Html:
    """GPU-minutes of a point, of labscale and of the loop: a row for each set; a sentence without any."""
    if not costs:
        return paragraph("No training was timed on GPUs, so there is no loop over upstream's commands to compare with.")
    table = html_table(
        ["Set", "Points", "In use", "Loop, in use", "Times", "Host", "Loop, host", "Times"],
        [_row(title, found) for title, found in costs],
        label="GPU-minutes of a published point",
    )
    timed, points = timed_points(found for _, found in costs)
    if timed == points:
        return table
    assumed = (
        f"Processes of the loop were timed for {timed} of {counted(points, 'point')}. Those of the others are assumed"
        " to take as long as ours."
    )
    return together([table, paragraph(assumed)])


def _row(title: str, found: Cost) -> list[str]:
    ours, loop = found.spent_of_a_point, found.loop_of_a_point
    in_use, host = (
        (f"{own:.1f}", f"{of_loop:.1f}") for own, of_loop in ((ours.in_use, loop.in_use), (ours.host, loop.host))
    )
    return [title, str(found.points), *in_use, f"{found.in_use_ratio:.2f}", *host, f"{found.host_ratio:.2f}"]
