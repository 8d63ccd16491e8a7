"""Explore: every configuration of this version and of older ones in one table, with all of its figures. Pure.

The page computes nothing. The table is complete without scripts; with them, a reader chooses one of all metrics, which
rows are shown, and their order, and the address of the page says what was chosen.
"""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from reports.data.columns import WORK
from reports.data.words import STACK_NAMES, gpu_name, hardware_text, task_name
from reports.display.html import (
    MISSING,
    Cell,
    Html,
    answer_of_page,
    estimated,
    html_table,
    link,
    measured,
    paragraph,
    rounding_of,
    runs_in,
)
from reports.figures.columns import COLUMNS, Column
from reports.figures.compare import CHANGES, Change, Row
from reports.figures.lines import Figure, estimate, figure
from reports.figures.tables import runs_of
from reports.sets.version import ResultSet, Version
from suite.files.wording import counted, joined
from suite.schema.record import WORKLOAD_WORDS
from suite.statistics.intervals import CONFIDENCE

WORDS: Final = (
    "Task and library", "GPUs", "Environments", "Physics and settings", "Machine", "Version",
)  # fmt: skip
FILTERS: Final[Mapping[str, str]] = {
    "task": "Task", "library": "Library", "gpu": "GPU", "gpus": "Number of GPUs", "physics": "Physics",
    "settings": "Settings", "version": "Version",
}  # fmt: skip
AXES: Final[Mapping[str, str]] = {"envs": "Environments of a GPU", "gpus": "Number of GPUs"}
ORDERS: Final[Mapping[str, str]] = {"newest": "Newest first", "most": "Most first", "least": "Least first"}
HOW_TO_READ: Final = (
    f"A panel for each GPU model. The bar behind a filled point is its {CONFIDENCE:.0%} interval; a hollow point has"
    " none. A line joins configurations of one campaign that differ in what the axis shows and what follows from it."
    " Speeds of two machines do not compare, even with the same GPUs; ratios do."
)


_OVER_AXES: Final = [next(own for own in CHANGES if own.column == name) for name in ("environments_per_gpu", "gpus")]
MAIN: Final = [column for column in COLUMNS.values() if column.is_main]  # the first is there for every configuration


@dataclass(frozen=True)
class Point:
    """A configuration of a campaign."""

    version: Version
    result_set: ResultSet
    row: Row

    @property
    def key(self) -> str:
        """Its figures have it before their name."""
        return f"{self.row['set']}/{self.row['configuration']}"

    def figure(self, column: Column) -> Figure | None:
        return figure(self.version, self.row, column.name)

    def text(self, column: Column) -> str:
        """A figure with its interval; empty without one."""
        own = self.figure(column)
        return estimated(estimate(own), rounding_of(own)) if own else ""

    @property
    def filters(self) -> Mapping[str, str | int]:
        """What a reader filters by."""
        row = self.row
        return {
            "task": task_name(row["task"]),
            "library": WORKLOAD_WORDS.get(row["workload"], row["library"]),
            "gpu": gpu_name(row),
            "gpus": row["gpus"],
            "physics": STACK_NAMES[row["physics"]],
            "settings": self._settings,
            "version": self.version.name,
        }

    @property
    def _settings(self) -> str:
        if self.row["is_deterministic"]:
            return "deterministic"
        if self.row["trainings_per_gpu"] > 1:
            return "several trainings on a GPU"
        if self.row["packages"]:
            return "other packages"
        return "tuned" if self.row["is_tuned"] else "as shipped"

    @property
    def details(self) -> str:
        """Physics and settings, with what else sets it apart."""
        row, settings = self.row, self._settings
        variant = row["variant"].removesuffix(row["minibatch_rule"]).removesuffix("-")
        if row["trainings_per_gpu"] > 1:
            settings, variant = f"{row['trainings_per_gpu']} trainings on a GPU", ""
        parts = (
            STACK_NAMES[row["physics"]], settings, variant if variant != settings else "",
            counted(row["optimiser_steps"], "optimiser step") if row["workload"] == "train" else "",
            "through MPS" if row["mps"] else "",
        )  # fmt: skip
        return ", ".join(part for part in parts if part)

    @property
    def machine(self) -> str:
        """The name of its machine, with who measured if not the project itself."""
        wanted = self.result_set.name, self.row["machine"], self.row["gpu_model"]
        places = ((machine, own) for machine in self.version.machines for own in machine.of_sets)
        alike = (
            machine.name + (f", by {own.whose}" if own.whose else "")
            for machine, own in places
            if (own.set_name, own.place.environment.host_label, machine.model) == wanted
        )
        return next(alike)

    @property
    def file(self) -> str:
        """The address of its samples in the site of its version."""
        return f"data/{self.row['set']}/cases/{self.row['configuration']}.json"

    def line(self, change: Change) -> tuple[object, ...]:
        """Equal for configurations that differ in a change alone."""
        varied = {change.column, *change.entails, "seed"}
        same = (self.row[column.name] for column in WORK if column.name not in varied)
        return self.version.name, self.row["set"], *same


@cache
def points(version: Version) -> tuple[Point, ...]:
    """Return every configuration on GPUs that was measured for its speed, the newest campaign first."""
    shown = [point for own in (version, *version.older) for point in _points(own)]
    newest: dict[tuple[Version, str], str] = {}
    for point in shown:
        campaign = point.version, point.row["set"]
        newest[campaign] = max(newest.get(campaign, ""), point.row["started_utc"] or "")
    shown.sort(key=lambda point: (*map(str, list(point.filters.values())[:2]), point.row["environments"], point.key))
    return tuple(sorted(shown, key=lambda point: newest[point.version, point.row["set"]], reverse=True))


def _points(version: Version) -> list[Point]:
    """Those of one version; without series of cold starts, whose runs are short."""
    sets, every = {own.name or "results": own for own in version.scaling}, runs_of(version).configurations
    starts = {(row["set"], row["series"]) for row in every if row["kernel_cache"] == "empty"}
    rows = (row for row in every if row["set"] in sets and (row["set"], row["series"]) not in starts)
    own = [Point(version, sets[row["set"]], row) for row in rows if row["device"] == "cuda"]
    return [point for point in own if point.figure(MAIN[0])]


def opening(version: Version) -> Html:
    """Say in one sentence what there is to choose from."""
    shown = points(version)
    if not shown:
        return paragraph("Nothing here was measured for its speed on a GPU, so there is nothing to explore.")
    tasks = sorted({str(point.filters["task"]) for point in shown})
    gpus: dict[str, set[int]] = {}
    for point in shown:
        gpus.setdefault(str(point.filters["gpu"]), set()).add(point.row["gpus"])
    where = [f"{joined([str(number) for number in sorted(own)])} {gpu} GPUs" for gpu, own in sorted(gpus.items())]
    return answer_of_page(f"{len(shown)} configurations of {joined(tasks)} were measured on {joined(where)}.")


def main(version: Version) -> Html:
    """Show the controls and the chart, which need scripts, above the table; nothing without a configuration."""
    shown = points(version)
    if not shown:
        return Html(markup="", text="")
    table = html_table(
        [*WORDS, *(column.name for column in MAIN), "Runs", "Samples"],
        (_cells(version, point) for point in shown),
        label="Every configuration",
    )
    fields = "".join(
        f'<div><label for="explore-{name}">{title}</label><select id="explore-{name}" name="{name}"></select></div>'
        for name, title in {**FILTERS, "metric": "Metric", "x": "Across", "sort": "Order"}.items()
    )
    script = json.dumps(data(shown), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    markup = (
        f'<div class="explore"><form hidden aria-label="What to show">{fields}</form><figure hidden>'
        f'<p class="legend" role="status"></p><div class="drawing"></div><figcaption>{html.escape(HOW_TO_READ)}'
        f"</figcaption></figure>{table.markup}"
        f'<script type="application/json">{script}</script></div>'
    )
    return Html(markup=markup, text=table.text)


def _cells(version: Version, point: Point) -> list[Cell]:
    row, frames = point.row, point.figure(MAIN[0])
    environments = f"{row['environments_per_gpu']:,} on each"
    if row["gpus"] > 1:
        environments += f", {row['environments']:,} in total"
    return [
        f"{point.filters['task']}, {point.filters['library']}",
        hardware_text(row),
        environments,
        point.details,
        point.machine,
        point.version.name,
        *(measured(point.figure(column)) for column in MAIN),
        runs_in(frames) if frames else MISSING,
        link("samples", point.file if point.version is version else f"../{point.version.name}/{point.file}"),
    ]


def data(shown: Sequence[Point]) -> dict[str, Any]:
    """Return what explore.js reads: the points in the order of the table, and what a reader can choose."""
    lines: dict[tuple[object, ...], int] = {}
    metrics = [column for column in COLUMNS.values() if any(point.figure(column) for point in shown)]
    return {
        "filters": FILTERS,
        "axes": AXES,
        "orders": ORDERS,
        "metrics": [
            {
                "key": own.name,
                "heading": own.heading,
                "unit": " %" * (own.rounding in ("percent", "signed", "hundredths")),
            }
            for own in metrics
        ],
        "column": len(WORDS),  # of the table, the first with a metric
        "columns": len(MAIN),
        "points": [
            {
                "key": point.key,
                **point.filters,
                "envs": point.row["environments_per_gpu"],
                "lines": [lines.setdefault(point.line(change), len(lines)) for change in _OVER_AXES],
                "figures": [point.text(column) for column in metrics],
            }
            for point in shown
        ],
    }
