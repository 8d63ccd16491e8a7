"""What the five forms of charts draw: values, whiskers, labels, and where the values are from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import altair as alt
import pytest

from reports.display.charts import drawing
from reports.display.charts.curves import curves
from reports.display.charts.drawing import Point, Spec, Texts
from reports.display.charts.forest import forest
from reports.display.charts.parts import parts
from reports.display.charts.speedup import PREDICTED, speedup
from reports.display.charts.sweep import sweep
from reports.display.figure import make_figure
from reports.display.html import Html

TEXTS = Texts(title="A title", source="labscale 1 · 2 x H200, 26 Nov 2026 · CC-BY-4.0", x="GPUs", y="Speed-up")
NO_DATA = Html(markup="", text="")


def values_of(spec: Mapping[str, Any], *fields: str) -> list[Mapping[str, Any]]:
    """The values of the layers that have all these fields."""
    layers = spec["datasets"].values()
    return [value for layer in layers for value in layer if set(fields) <= set(value)]


def svg_of(figure: Html) -> str:
    return figure.markup.partition('<div class="vega-static">')[2].partition("</div>")[0]


def live_of(figure: Html) -> Any:
    """The spec that replaces the picture."""
    return json.loads(figure.markup.partition('json">')[2].partition("</script>")[0])


def texts_of(spec: Spec) -> str:
    """Every letter of the picture."""
    root = ET.fromstring(svg_of(make_figure(spec, figure_id="a", data=NO_DATA)))  # noqa: S314 - our own drawing
    return " ".join(root.itertext())


def lines_of(number: int) -> list[Point]:
    return [Point(label=f"line {place}", x=gpus, y=gpus) for place in range(number) for gpus in (1, 2)]


def bars(points: Sequence[Point], texts: Texts) -> Spec:
    return parts([replace(point, kind="learning") for point in points], texts, {"learning": "#F2A35E"}, unit="s")


FORMS = (speedup, sweep, curves, forest, bars)


@pytest.mark.parametrize("chart", FORMS)
def test_every_form_has_a_drawing_and_words_and_is_vega_lite(chart: Any) -> None:
    figure = make_figure(chart(lines_of(3), TEXTS), figure_id="a", data=NO_DATA)
    alt.Chart.from_dict({name: part for name, part in live_of(figure).items() if name != "config"})  # raises
    svg = svg_of(figure)
    root = ET.fromstring(svg)  # noqa: S314 - our own drawing
    assert (root.get("role"), root.get("aria-label")) == ("img", figure.text)
    assert "line 2" in figure.text
    assert "NaN" not in svg
    assert "aria-roledescription" not in svg
    assert svg.count("font-family") == 1
    assert make_figure(chart(lines_of(3), TEXTS), figure_id="a", data=NO_DATA) == figure
    # The title and the source are in the picture, however narrow it is.
    long = replace(TEXTS, source=TEXTS.source.replace("2 x H200", "; ".join(["4 x H200, 64 vCPU"] * 4)))
    for texts in (TEXTS, long):
        letters = texts_of(chart(lines_of(2), texts))
        assert texts.title in letters
        assert texts.source in letters


def test_markup_holds_the_live_spec_and_cannot_end_its_script_early() -> None:
    spec = speedup(lines_of(1), replace(TEXTS, source="</script><b>host</b>"))
    figure = make_figure(spec, figure_id="a", data=NO_DATA)
    assert figure.markup.count("</script>") == 1
    assert "<b>host" not in figure.markup
    live = live_of(figure)
    assert live["width"] == "container"
    assert live["layer"] == spec["layer"]


def test_an_interval_has_caps_and_a_range_is_a_thin_bar_that_the_chart_names() -> None:
    points = [Point(label="a", x=1, y=2, interval=(1.5, 2.5)), Point(label="a", x=2, y=3, spread=(2.5, 3.5))]
    spec = sweep(points, TEXTS)
    ranges = [(value["low"], value["high"], value["is_spread"]) for value in values_of(spec, "low")]
    assert ranges == [(1.5, 2.5, False), (2.5, 3.5, True)]
    assert [layer["mark"]["type"] for layer in spec["layer"]].count("tick") == 2
    assert "Whisker: 95 % interval. Thin bar: what rounding leaves open." in texts_of(spec)
    assert "Whisker" not in texts_of(sweep(points[1:], TEXTS))


def test_labels_stand_beside_each_other_within_the_plot_in_the_order_of_the_lines() -> None:
    wanted = {"a": 100.0, "b": 101.0, "c": 103.0, "far": -10.0, "last": 240.0}
    heights = dict.fromkeys(wanted, 15.0) | {"b": 30.0}
    placed = drawing.spread_apart(wanted, heights, 240)
    ordered = sorted(placed, key=placed.__getitem__)
    assert ordered == ["far", "a", "b", "c", "last"]
    assert all(placed[later] >= placed[earlier] + heights[earlier] for earlier, later in pairwise(ordered))
    assert placed["far"] == 0
    assert placed["last"] + heights["last"] == 240


@pytest.mark.parametrize(
    ("chart", "ends"),
    [
        (speedup, ["2.00\u00d7 at 2: a", "3.00\u00d7 at 8 predicted: b"]),
        (sweep, ["2 at 2: a", "3 at 8: b"]),
        (curves, ["2 at 2: a", "3 at 8: b"]),
    ],
)
def test_a_label_says_where_its_line_ends(chart: Any, ends: list[str]) -> None:
    points = [Point(label=label, x=1, y=1) for label in "ab"]
    points += [Point(label="a", x=2, y=2), Point(label="b", x=8, y=3, kind=PREDICTED)]
    texts = [" ".join(value["text"].split()) for value in values_of(chart(points, TEXTS), "text", "at")]
    assert texts == ends


def test_parts_lie_side_by_side_and_a_bar_is_as_long_as_their_sum() -> None:
    kinds = {"physics": "#0B4F7D", "learning": "#F2A35E"}
    lengths = dict(zip(kinds, (0.2, 0.3), strict=True))
    points = [Point(label=bar, kind=kind, x=x) for bar in ("1 GPU", "2 GPUs") for kind, x in lengths.items()]
    spec = parts(points, TEXTS, kinds, unit="s")
    first, second, *_ = values_of(spec, "part")
    assert (first["x"], first["x2"], second["x"], second["x2"]) == pytest.approx((0, 0.2, 0.2, 0.5))
    assert [total["total"] for total in values_of(spec, "total")] == ["0.5 s", "0.5 s"]
    assert "1 GPU: physics 40%, learning 60%" in spec["description"]
    # A click on a part fades the others; the drawing has all of them.
    (bar,) = [layer for layer in spec["layer"] if layer["mark"]["type"] == "bar"]
    assert bar["params"][0]["name"] == bar["encoding"]["opacity"]["condition"]["param"]
    assert 'opacity="0.15"' not in svg_of(make_figure(spec, figure_id="a", data=NO_DATA))


@pytest.mark.parametrize("slowest", [0.8, 1.9])
def test_the_ideal_line_is_two_at_two_gpus_and_a_doubling_is_as_long_on_both_axes(slowest: float) -> None:
    spec = speedup([Point(label="a", x=1, y=1), Point(label="a", x=2, y=slowest), Point(label="a", x=4, y=3.9)], TEXTS)
    assert {(value["x"], value["y"]) for value in values_of(spec, "baseline")} == {(1, 1), (2, 2), (4, 4)}
    encodings = [layer["encoding"][channel] for layer in spec["layer"] for channel in ("x", "y")]
    scales = [encoding["scale"] for encoding in encodings if encoding.get("scale")]
    assert {(scale["type"], scale["base"]) for scale in scales} == {("log", 2)}
