"""The page Explore: a sentence, what scripts need for controls and a chart, and a table of every point."""

import html
import json
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, Final

from reports.display.html import MISSING, Cell, Html, answer_of_page, estimated, html_table, paragraph
from reports.sets.version import Version
from reports.topics.explore.metrics import METRICS, OVER_BASELINE, Metric
from reports.topics.explore.model import Point, points
from suite.files.wording import counted
from suite.statistics.intervals import CONFIDENCE, MIN_ROUNDS_FOR_INTERVAL, Estimate
from suite.statistics.student_t import t_quantile

WORDS: Final = ("Task and library", "GPUs", "Environments", "Physics and settings", "Machine")
SOURCE: Final = "Source"
FILTERS: Final[Mapping[str, str]] = {
    "task": "Task",
    "library": "Library",
    "gpu": "GPU",
    "gpus": "Number of GPUs",
    "physics": "Physics",
    "settings": "Settings",
}
AXES: Final[Mapping[str, str]] = {"gpus": "Number of GPUs", "envs": "Environments of a GPU"}
DIGITS: Final = 5  # of a figure in the chart; the table shows no more
SAMPLE_DIGITS: Final = 7  # a ratio of them is right to the digits that are shown
# Quantiles of t are listed over 1 / degrees of freedom, where they are almost a straight line. Samples of three runs
# have at least two degrees of freedom.
QUANTILE_STEPS: Final = 100
MOST_INVERSE: Final = 1 / (MIN_ROUNDS_FOR_INTERVAL - 1)
HOW_TO_READ: Final = (
    f"The bar behind a filled point is its {CONFIDENCE:.0%} interval. Hollow points are of too few runs to have one."
    " A line joins points of one campaign that differ in nothing but what the axis shows. Speeds of two"
    " machines do not compare, even with the same GPUs. The address of this page says what is shown, so you can"
    " send it."
)


def opening(version: Version) -> Html:
    """Say in one sentence what there is to choose from."""
    found = points(version)
    if not found:
        return paragraph("Nothing here was measured for its speed on a GPU, so there is nothing to explore.")
    tasks = sorted({point.task for point in found})
    gpus: dict[str, set[int]] = {}
    for point in found:
        gpus.setdefault(point.gpu, set()).add(point.gpus)
    where = " and ".join(_of_model(gpu, sorted(numbers)) for gpu, numbers in sorted(gpus.items()))
    of = f"{len(found)} of {counted(version.totals.cases, 'case')} ran for their speed"
    said = f"{of}: {counted(len(tasks), 'task')} ({', '.join(tasks)}) on {where}."
    return answer_of_page(said)


def _of_model(gpu: str, numbers: Sequence[int]) -> str:
    return f"{_either(numbers)} {gpu} {'GPU' if numbers == [1] else 'GPUs'}"


def _either(numbers: Sequence[int]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} or {last}" if others else last


def main(version: Version) -> Html:
    """Show the controls and the chart, which need scripts, above the table of all points; nothing without a point."""
    found = points(version)
    if not found:
        return Html(markup="", text="")
    listed = _table(found)
    fields = "".join(_field(name, title) for name, title in {**FILTERS, "metric": "Metric", "x": "Across"}.items())
    markup = (
        f'<div class="explore"><form hidden aria-label="What to show">{fields}</form>'
        '<figure hidden><div class="drawing"></div><p class="legend"></p>'
        f"<figcaption>{html.escape(HOW_TO_READ)}</figcaption></figure>"
        '<div class="comparison" hidden><p role="status"></p><button type="button">Clear</button></div>'
        '<p class="no-script">Figures are means over runs, with their intervals where runs are enough.</p>'
        f"{listed.markup}"
        '<p class="fine">All figures in one file: <a href="data/figures.csv">figures.csv</a>.</p>'
        f'<script type="application/json">{_script(found)}</script></div>'
    )
    return Html(markup=markup, text=listed.text)


def _field(name: str, title: str) -> str:
    return f'<div><label for="explore-{name}">{title}</label><select id="explore-{name}" name="{name}"></select></div>'


def _table(found: Sequence[Point]) -> Html:
    return html_table(
        [*WORDS, *(metric.heading for metric in METRICS), "Runs", SOURCE],
        (_row(point) for point in found),
        label="Every configuration",
        num_text_columns=len(WORDS),
        text_headings=(SOURCE,),
    )


def _row(point: Point) -> list[Cell]:
    return [
        f"{point.task}, {point.library}",
        point.hardware,
        f"{point.num_envs:,} on each" + (f", {point.num_envs_global:,} in all" if point.gpus > 1 else ""),
        ", ".join(part for part in (point.physics, point.settings, point.details) if part),
        point.machine,
        *(_figure(point, metric) for metric in METRICS),
        str(point.runs),
        _links(point),
    ]


def _figure(point: Point, metric: Metric) -> str:
    figure = point.figures.get(metric.key)
    if figure is None:
        return MISSING
    reward = f", reward {point.reward:.3g}" if metric.key == "reward" and point.reward is not None else ""
    return estimated(figure, metric.text) + reward


def _links(point: Point) -> Html:
    links = {"samples": point.file, "series": point.page}
    markup = " ".join(f'<a href="{html.escape(address)}">{name}</a>' for name, address in links.items())
    return Html(markup=markup, text=" ".join(links.values()))


# --- what explore.js reads ---------------------------------------------------------------------------------------


def _script(found: Sequence[Point]) -> str:
    text = json.dumps(data(found), separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")  # nothing in it ends the script


def data(found: Sequence[Point]) -> dict[str, Any]:
    """Return what the page's script needs: the points in the order of the table, the metrics, and quantiles of t."""
    return {
        "filters": FILTERS,
        "axes": AXES,
        "metrics": [
            {
                "key": metric.key,
                "name": metric.name,
                "heading": metric.heading,
                "sample": metric.sample,
                "power": metric.power,
                "overBaseline": metric.key in OVER_BASELINE,
                "column": len(WORDS) + index,
            }
            for index, metric in enumerate(METRICS)
        ],
        "points": [_point(point, found) for point in found],
        "minRuns": MIN_ROUNDS_FOR_INTERVAL,
        "confidence": f"{CONFIDENCE:.0%}",
        "quantiles": quantiles(),
        "mostInverse": MOST_INVERSE,
    }


def quantiles() -> list[float]:
    """Quantiles of t at 95 % for 1 / degrees of freedom from 0 to ``MOST_INVERSE``, in equal steps."""
    inverses = (MOST_INVERSE * step / QUANTILE_STEPS for step in range(1, QUANTILE_STEPS + 1))
    normal = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    return [round(value, 6) for value in (normal, *(t_quantile(CONFIDENCE, 1 / inverse) for inverse in inverses))]


def _point(point: Point, found: Sequence[Point]) -> dict[str, Any]:
    def number(name: str) -> int:
        """Points with the same text get the same number, which is shorter."""
        values = list(dict.fromkeys(getattr(each, name) for each in found))
        return values.index(getattr(point, name))

    return {
        "key": point.key,
        "name": point.name,
        "machine": point.machine,
        **{name: getattr(point, name) for name in FILTERS},
        "envs": point.num_envs,
        "together": number("together"),
        "curve": number("curve"),
        "sweep": number("sweep"),
        "baseline": point.baseline,
        "reward": point.reward,
        "halfWidths": {key: _digits(value, DIGITS) for key, value in point.half_widths.items()},
        "figures": {key: _rounded(figure) for key, figure in point.figures.items()},
        "samples": {
            name: [_digits(value, SAMPLE_DIGITS) for value in values] for name, values in point.samples.items()
        },
    }


def _rounded(figure: Estimate) -> list[float]:
    """The value; its interval follows if it has one."""
    return [_digits(value, DIGITS) for value in (figure.value, *(figure.interval or ()))]


def _digits(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
