"""The ideal line in drawn pixels: at two GPUs it is 2, at four it is 4, by the ticks of both axes."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from reports.display.charts.drawing import Point, Texts
from reports.display.charts.speedup import speedup
from reports.display.figure import RULE, make_figure
from reports.display.html import Html

type Position = tuple[float, float]

TOLERANCE_PX = 2  # ticks are drawn at whole pixels; a doubling takes about 80
TEXTS = Texts(title="A title", source="labscale 1", x="GPUs", y="Speed-up")


@pytest.mark.parametrize("slowest", [0.8, 1.9])
def test_the_ideal_line_is_two_at_two_gpus_and_four_at_four(slowest: float) -> None:
    points = [Point(label="line", x=1, y=1), Point(label="line", x=2, y=slowest), Point(label="line", x=4, y=3.9)]
    columns, rows, ideal = read(drawn(points))
    for gpus in (1, 2, 4):
        assert height_at(columns[gpus], ideal) == pytest.approx(rows[gpus], abs=TOLERANCE_PX), gpus


def drawn(points: list[Point]) -> str:
    no_data = Html(markup="", text="")
    return make_figure(speedup(points, TEXTS), figure_id="a", data=no_data).svg


def read(svg: str) -> tuple[dict[float, float], dict[float, float], list[Position]]:
    """Number of GPUs -> pixels, speed-up -> pixels, and the corners of the ideal line."""
    columns: dict[float, float] = {}
    rows: dict[float, float] = {}
    ideal: list[Position] = []

    def visit(element: ET.Element, x: float, y: float) -> None:
        for dx, dy in re.findall(r"translate\(([-\d.]+),([-\d.]+)\)", element.get("transform", "")):
            x, y = x + float(dx), y + float(dy)
        children = list(element)
        tags = [child.tag.rpartition("}")[2] for child in children]
        for ticks, labels in pairwise(children):  # an axis: a group of ticks, then one of labels
            _add_axis(ticks, labels, (x, y))
        if tags == ["path"] and children[0].get("stroke") == RULE:
            corners = re.findall(r"[ML]([-\d.]+),([-\d.]+)", children[0].get("d", ""))
            ideal.extend((x + float(left), y + float(top)) for left, top in corners)
        for child in children:
            visit(child, x, y)

    def _add_axis(ticks: ET.Element, labels: ET.Element, origin: Position) -> None:
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


def height_at(x: float, corners: list[Position]) -> float:
    """Pixels from the top of the line at ``x``."""
    (left, top), (right, bottom) = next(pair for pair in pairwise(corners) if pair[0][0] - 1 <= x <= pair[1][0] + 1)
    return top + (bottom - top) * (x - left) / (right - left)
