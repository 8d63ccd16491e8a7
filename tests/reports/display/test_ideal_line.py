"""The ideal line in drawn pixels: at two GPUs it is 2, at four it is 4, by the ticks of both axes."""

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from reports.analysis.analysed_set import Campaign
from reports.display.charts import scaling
from reports.display.charts.speedups import speedups
from reports.display.figure import RULE, Figure
from reports.sets.version import read_version
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import full_results, write_results

type Point = tuple[float, float]

TOLERANCE_PX = 2  # ticks are drawn at whole pixels; a doubling takes about 80


def of_first_page(results: list[CaseResult], folder: Path) -> list[Figure]:
    lines = read_version(write_results(results, folder), name="v").lines
    return [speedups(lines, "own"), speedups(lines, "split")]


def of_curves(results: list[CaseResult], _folder: Path) -> list[Figure]:
    campaign = Campaign.from_results(results)
    drawn = [scaling.speedup(campaign.series(name)) for name in campaign.series_names]
    return [figure for figure in drawn if isinstance(figure, Figure)]


@pytest.mark.parametrize("figures", [of_first_page, of_curves])
def test_the_ideal_line_is_two_at_two_gpus_and_four_at_four(
    figures: Callable[[list[CaseResult], Path], list[Figure]], tmp_path: Path
) -> None:
    drawn = figures(full_results(), tmp_path)
    assert len(drawn) >= 2
    for figure in drawn:
        columns, rows, ideal = read(figure.svg)
        for gpus in (1, 2, 4):
            assert height_at(columns[gpus], ideal) == pytest.approx(rows[gpus], abs=TOLERANCE_PX), gpus


def read(svg: str) -> tuple[dict[float, float], dict[float, float], list[Point]]:
    """Number of GPUs -> pixels, speed-up -> pixels, and the corners of the ideal line."""
    columns: dict[float, float] = {}
    rows: dict[float, float] = {}
    ideal: list[Point] = []

    def visit(element: ET.Element, x: float, y: float) -> None:
        for dx, dy in re.findall(r"translate\(([-\d.]+),([-\d.]+)\)", element.get("transform", "")):
            x, y = x + float(dx), y + float(dy)
        children = list(element)
        tags = [child.tag.rpartition("}")[2] for child in children]
        for ticks, labels in pairwise(children):  # an axis: a group of ticks, then one of labels
            _add_axis(ticks, labels, (x, y))
        if tags == ["path"] and children[0].get("stroke") == RULE and children[0].get("stroke-dasharray"):
            corners = re.findall(r"[ML]([-\d.]+),([-\d.]+)", children[0].get("d", ""))
            ideal.extend((x + float(left), y + float(top)) for left, top in corners)
        for child in children:
            visit(child, x, y)

    def _add_axis(ticks: ET.Element, labels: ET.Element, origin: Point) -> None:
        texts = [text.text or "" for text in labels if text.tag.endswith("text")]
        if len(texts) != len(ticks) or not texts or not all(re.fullmatch(r"[\d.]+\u00d7?", text) for text in texts):
            return
        for tick, text in zip(ticks, texts, strict=True):
            left, top = re.findall(r"[-\d.]+", tick.get("transform", "translate(0,0)"))
            if tick.get("y2") == "5":
                columns[float(text)] = origin[0] + float(left)
            else:
                rows[float(text.rstrip("\u00d7"))] = origin[1] + float(top)

    visit(ET.fromstring(svg), 0, 0)  # noqa: S314 - our own drawing
    return columns, rows, sorted(set(ideal))


def height_at(x: float, corners: list[Point]) -> float:
    """Pixels from the top of the line at ``x``."""
    (left, top), (right, bottom) = next(pair for pair in pairwise(corners) if pair[0][0] - 1 <= x <= pair[1][0] + 1)
    return top + (bottom - top) * (x - left) / (right - left)
