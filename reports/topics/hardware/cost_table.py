"""What a published point costs, as a table."""

from reports.analysis.cost import Cost, Price
from reports.display.html import Html, html_table, paragraph
from suite.files.wording import counted


def cost_table(found: Cost | None, *, title: str = "") -> Html:
    """Both prices of both ways, and per point; a sentence where there is nothing to pay for.

    ``title`` is the set's, where a page has a table for each of several sets.
    """
    if found is None:
        return paragraph("No training was timed on GPUs, so there is no loop over upstream's commands to compare with.")
    return html_table(
        ["Way", "Points", "GPU-minutes in use", "per point", "GPU-minutes of the host", "per point of the host"],
        [
            _row(found, "labscale", found.spent),
            _row(found, f"a plain loop over upstream's command line{_basis(found)}", found.loop),
            ["labscale over the loop", "", f"{found.in_use_ratio:.2f}", "", f"{found.host_ratio:.2f}", ""],
        ],
        label=f"Cost of a published point {title}".strip(),
    )


def _row(found: Cost, way: str, price: Price) -> list[str]:
    per_point = [f"{value / found.points:.1f}" for value in (price.in_use, price.host)]
    return [way, str(found.points), f"{price.in_use:.0f}", per_point[0], f"{price.host:.0f}", per_point[1]]


def _basis(found: Cost) -> str:
    if found.measured_points == found.points:
        return ""
    points = f"{found.measured_points} of {counted(found.points, 'point')}"
    return f" ({points} timed, a process of the others assumed to take ours)"
