import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import altair as alt
import pytest

from reports.analysis.analysed_set import Campaign
from reports.display import resource_tables, series_tables
from reports.display.charts import drawing, learning, scaling, sweep
from reports.display.charts import time_split as inside
from reports.display.figure import Figure, TableFigure, make_figure
from reports.display.html import Html
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import (
    failed_result,
    full_results,
    make_case,
    make_record,
    make_result,
    smoke_results,
)

CAMPAIGNS = {
    "one_rank": [make_result(make_case(), 0.5)],
    "two_ranks": smoke_results(),
    "eight_ranks": full_results(),
    "slower_than_one_rank": [make_result(make_case(world_size=ranks), 0.5 * ranks) for ranks in (1, 2, 4)],
}


def series_figures(results: list[CaseResult]) -> list[Figure | TableFigure | Html]:
    campaign = Campaign.from_results(results)
    drawn = [
        scaling.speedup, scaling.efficiency, scaling.throughput, inside.time_split, series_tables.rank_skew,
        resource_tables.memory_figure, resource_tables.energy_figure, learning.learning,
    ]  # fmt: skip
    return [chart(campaign.series(name)) for name in campaign.series_names for chart in drawn]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_figure_has_a_drawing_words_and_data(name: str) -> None:
    all_figures = [figure for figure in series_figures(CAMPAIGNS[name]) if not isinstance(figure, Html)]
    ids = [figure.figure_id for figure in all_figures]
    assert len(ids) == len(set(ids))
    figures = [figure for figure in all_figures if isinstance(figure, Figure)]
    kinds = {figure.figure_id.removeprefix("cartpole-strong-") for figure in figures}
    assert kinds >= {"speedup", "efficiency", "learning"}
    assert ("throughput" in kinds) == (name != "one_rank")
    assert ("time-split" in kinds) == (name in ("eight_ranks", "slower_than_one_rank"))
    for figure in figures:
        root = ET.fromstring(figure.svg)  # noqa: S314 - our own drawing
        assert root.get("role") == "img"
        assert root.get("aria-label") == figure.alt_text
        assert "NaN" not in figure.svg
        assert "generated data, not measured" in figure.caption
        assert "<table " in figure.data.markup


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_spec_is_one_of_vega_lite(name: str) -> None:
    for figure in series_figures(CAMPAIGNS[name]):
        if isinstance(figure, Figure):
            alt.Chart.from_dict({name: part for name, part in figure.spec.items() if name != "config"})  # raises


def test_layers_say_their_common_data_once_and_keep_their_selections() -> None:
    base = alt.Chart(drawing.inline([{"a": 1.23456789}])).mark_point().encode(x="a:Q")
    other = alt.Chart(drawing.inline([{"a": 2}])).mark_rule().encode(x="a:Q")
    limit = alt.param(name="limit", value=1)
    picked = base.add_params(drawing.pick("a"), limit)

    alike = drawing.layered([picked, base], height=100, alt_text="Words.")
    unlike = drawing.layered([picked, other], height=100, alt_text="Words.")

    alt.LayerChart.from_dict(alike)
    alt.LayerChart.from_dict(unlike)
    assert alike["datasets"] == {alike["data"]["name"]: [{"a": 1.23457}]}
    assert not any("data" in layer for layer in alike["layer"])
    assert "data" not in unlike
    assert {layer["data"]["name"] for layer in unlike["layer"]} == set(unlike["datasets"])
    assert len(unlike["datasets"]) == len(unlike["layer"])
    for spec in (alike, unlike):
        assert [param["name"] for param in spec["params"]] == ["limit"]
        assert [[param["name"] for param in layer.get("params", ())] for layer in spec["layer"]] == [["picked"], []]


def test_figures_are_the_same_every_time() -> None:
    first, second = (series_figures(CAMPAIGNS["two_ranks"][:2]) for _ in range(2))
    assert [figure._repr_mimebundle_() for figure in first] == [figure._repr_mimebundle_() for figure in second]


def test_markup_holds_the_live_spec_and_cannot_end_its_script_early() -> None:
    record = make_record(make_case())
    environment = replace(record.environment, host_label="</script><b>host</b>")
    result = CaseResult(case=record.case, rounds=(replace(record, environment=environment),))
    campaign = Campaign.from_results([result], name="a.b_c")
    figure = scaling.speedup(campaign)
    assert isinstance(figure, Figure)
    markup = figure._repr_mimebundle_()["text/html"]
    assert markup.count("</script>") == 1
    assert "<b>host" not in markup
    assert figure.figure_id == "a-b-c-cartpole-strong-speedup"
    spec: Mapping[str, Any] = json.loads(markup.partition('json">')[2].partition("</script>")[0])
    assert spec["width"] == "container"
    assert spec["description"] == figure.alt_text


def test_speedup_says_its_values_in_words() -> None:
    results = [make_result(make_case(world_size=ranks), 1.0 / ranks) for ranks in (1, 2)]
    figure = scaling.speedup(Campaign.from_results(results))
    assert isinstance(figure, Figure)
    assert figure.alt_text == "Speed-up over ranks. rsl_rl: 1.00 at 1x1, 2.00 at 1x2."


def test_a_series_that_failed_has_sentences_instead_of_charts() -> None:
    figures = series_figures([failed_result(make_case(), outcome="oom", reason="out of memory")])
    assert {type(figure) for figure in figures} == {Html}


def test_memory_is_a_table_that_can_be_linked_with_the_rounds_that_had_least_and_most() -> None:
    case = make_case(device="cuda")
    first, second = (make_record(case, index=index) for index in (0, 1))
    more = replace(second, ranks=(replace(second.ranks[0], peak_memory_gb=3.0),))
    less = replace(first, ranks=(replace(first.ranks[0], peak_memory_gb=1.0),))
    shown = resource_tables.memory_figure(Campaign.from_results([CaseResult(case=case, rounds=(less, more))]))
    assert isinstance(shown, TableFigure)
    assert "\t2 (1 to 3)" in shown.data.text
    markup = shown._repr_mimebundle_()["text/html"]
    assert markup.startswith('<figure class="table-figure" id="cartpole-strong-memory"><div class="scroll"')
    assert "generated data, not measured" in markup.partition("<figcaption>")[2]


def test_each_rank_has_a_line_with_how_far_it_is_behind() -> None:
    shown = series_tables.rank_skew(Campaign.from_results([make_result(make_case(world_size=2), 0.5, 0.5)]))
    assert isinstance(shown, TableFigure)
    headings, *lines = (line.split("\t") for line in shown.data.text.splitlines())
    assert headings == ["Case", "Ranks", "Rank", "Behind the median rank by", "Least round", "Most"]
    assert [line[2] for line in lines] == ["0", "1"]
    assert all(float(line[4].split()[0]) <= float(line[3].split()[0]) <= float(line[5].split()[0]) for line in lines)


def test_throughput_of_one_number_of_ranks_is_a_table() -> None:
    results = [make_result(make_case(rl_library=library), 0.5) for library in ("rsl_rl", "rl_games")]
    shown = scaling.throughput(Campaign.from_results(results))
    assert isinstance(shown, Html)
    assert shown.text.startswith(scaling.THROUGHPUT)
    assert all(result.case.case_id in shown.text for result in results)


def test_throughput_has_no_line_for_cases_that_never_ran() -> None:
    """`full` without a launcher for several nodes once had `rsl_rl, 2 nodes` in the legend but not in the chart."""
    cases = [make_case("ant-weak", world_size=ranks, scaling="weak", num_envs_global=32 * ranks) for ranks in (1, 2)]
    nodes = make_case("ant-weak", world_size=2, nnodes=2, scaling="weak", num_envs_global=64)
    skipped = failed_result(nodes, outcome="skipped", reason="needs a multi-node launcher and 2 nodes, available: 1")
    results = [*(make_result(case, 0.4) for case in cases), skipped]
    assert "2 nodes" in {row.curve.rpartition(", ")[2] for row in Campaign.from_results(results).rows}
    assert "2 nodes" not in json.dumps(figure_of(scaling.throughput(Campaign.from_results(results))).spec)


def layers(figure: Figure | Html) -> list[Mapping[str, Any]]:
    assert isinstance(figure, Figure)
    return list(figure.spec["layer"])


def marks(figure: Figure | Html) -> list[str]:
    return [layer["mark"]["type"] for layer in layers(figure)]


def test_whiskers_of_a_speedup_are_drawn_only_where_both_cases_have_three_rounds() -> None:
    one, three = (
        Campaign.from_results(
            [make_result(make_case(world_size=ranks), *(time_s / ranks for time_s in times_s)) for ranks in (1, 2)]
        )
        for times_s in ((0.5,), (0.5, 0.6, 0.7))
    )
    for chart in (scaling.speedup, scaling.efficiency):
        assert "tick" not in marks(chart(one))
        assert marks(chart(three)).count("tick") == 2
    single, several = scaling.speedup(one), scaling.speedup(three)
    assert isinstance(single, Figure)
    assert isinstance(several, Figure)
    assert "No interval is known" in single.caption
    assert "95% interval over rounds" in several.caption


def test_the_last_value_of_every_curve_stands_beside_its_point() -> None:
    results = [make_result(make_case(world_size=ranks), 1.0 / ranks) for ranks in (1, 2, 4)]
    figure = scaling.efficiency(Campaign.from_results(results))
    assert [layer["mark"]["text"] for layer in layers(figure) if "text" in layer["mark"]] == ["100%"]


def test_labels_are_moved_apart_and_keep_their_order() -> None:
    placed = drawing.spread({"a": 100.0, "b": 101.0, "c": 103.0, "far": 10.0})
    assert sorted(placed, key=placed.__getitem__) == ["far", "a", "b", "c"]
    ordered = sorted(placed.values())
    assert all(later - earlier >= drawing.LABEL_GAP_PX for earlier, later in pairwise(ordered))


def test_efficiency_starts_at_zero_and_log_axes_say_so() -> None:
    campaign = Campaign.from_results([make_result(make_case(world_size=ranks), 1.0 / ranks) for ranks in (1, 2)])
    encodings = [layer["encoding"]["y"] for layer in layers(scaling.efficiency(campaign)) if "y" in layer["encoding"]]
    assert next(y for y in encodings if y.get("scale"))["scale"]["domain"][0] == 0
    for chart in (scaling.speedup, scaling.throughput):
        titles = {
            layer["encoding"][axis].get("title")
            for layer in layers(chart(campaign))
            for axis in ("x", "y")
            if layer["encoding"].get(axis, {}).get("scale", {}).get("type") == "log"
        }
        assert titles
        assert all(title.endswith("log scale") for title in titles)


def test_numbers_of_an_axis_do_not_run_into_each_other() -> None:
    campaign = Campaign.from_results([make_result(make_case(world_size=ranks), 1.0 / ranks) for ranks in (1, 2)])
    sizes = [make_result(make_case("ant-envs", scaling="weak", num_envs_global=number), 0.5) for number in (512, 1024)]
    for figure in (scaling.efficiency(campaign), sweep.environments(Campaign.from_results(sizes))):
        axes = [layer["encoding"].get("x", {}).get("axis") for layer in layers(figure)]
        assert any(axes)
        assert all(axis["labelSeparation"] > 0 for axis in axes if axis)


@pytest.mark.parametrize(("low", "high", "ticks"), [(3, 40, [2, 5, 10, 20, 50]), (1, 1, [1]), (0.5, 2, [0.5, 1, 2])])
def test_ticks_of_a_log_axis_hold_the_data(low: float, high: float, ticks: list[float]) -> None:
    assert drawing.log_ticks(low, high) == pytest.approx(ticks)


PARTS_OF_TWO_RANKS = ["rest of steps", "rest of rollout", "learning", "all-reduce", "waiting"]


def test_time_split_adds_up_to_the_iteration() -> None:
    results = [make_result(make_case(world_size=2, rl_library=name), 0.5) for name in ("rsl_rl", "rl_games", "skrl")]
    figure = inside.time_split(Campaign.from_results(results))
    assert isinstance(figure, Figure)
    points = figure.spec["datasets"][figure.spec["data"]["name"]]
    first = [point for point in points if point["case"] == points[0]["case"]]
    assert [point["part"] for point in first] == PARTS_OF_TWO_RANKS
    assert sum(point["time_s"] for point in first) == pytest.approx(0.5)


def test_time_split_of_one_or_two_cases_is_a_table_of_seconds_and_shares() -> None:
    shown = inside.time_split(Campaign.from_results([make_result(make_case(world_size=2), 0.5)]))
    assert isinstance(shown, TableFigure)
    headings, cells = (line.split("\t")[2:] for line in shown.data.text.splitlines())
    assert headings == ["Iteration in s", *(f"{part.capitalize()} in s" for part in PARTS_OF_TWO_RANKS)]
    times_s, shares = zip(*(cell.removesuffix(" %)").split(" (") for cell in cells[1:]), strict=True)
    assert sum(map(float, times_s)) == pytest.approx(float(cells[0]), abs=0.001)
    assert sum(map(float, shares)) == pytest.approx(100, abs=0.3)


def test_a_drawing_keeps_its_shapes_and_loses_what_nobody_sees() -> None:
    figure = scaling.speedup(Campaign.from_results([make_result(make_case(), 0.5)]))
    assert isinstance(figure, Figure)
    assert "aria-roledescription" not in figure.svg
    assert figure.svg.count("font-family") == 1
    assert "<text" in figure.svg
    assert len(figure.svg) < 8_000


def test_the_drawing_has_points_as_they_are_while_nothing_is_picked() -> None:
    point = alt.Chart(drawing.inline([{"a": 1}])).mark_point()
    plain = point.encode(x="a:Q", opacity=alt.value(0.7))
    live = point.encode(x="a:Q", tooltip="a:Q", opacity=drawing.faded_unless(drawing.pick("a"), 0.7))
    live = live.add_params(drawing.pick("a"))

    drawn = [
        make_figure(
            drawing.layered([layer], height=100, alt_text="Words."),
            figure_id="a", alt_text="Words.", caption="", data=Html(markup="", text=""),
        )
        for layer in (plain, live)
    ]  # fmt: skip

    assert drawn[0].svg == drawn[1].svg
    assert 'opacity="0.7"' in drawn[1].svg
    assert "tooltip" in json.dumps(drawn[1].spec["layer"])  # the live chart keeps both
    assert drawn[1].spec["layer"][0]["params"][0]["name"] == "picked"


def test_long_learning_curves_are_thinned() -> None:
    case = make_case(iterations=1001)
    result = CaseResult(case=case, rounds=(make_record(case),))
    figure = learning.learning(Campaign.from_results([result]))
    assert isinstance(figure, Figure)
    assert len(json.dumps(figure.spec)) < 60_000


def test_a_sweep_is_drawn_over_environments_in_their_order() -> None:
    sizes = (1024, 2048, 16384)
    results = [make_result(make_case(scaling="weak", num_envs_global=size), size / 1e5) for size in sizes]
    campaign = Campaign.from_results(results)
    assert campaign.is_sweep
    assert [row.num_envs for row in campaign.rows] == list(sizes)
    figure = sweep.environments(campaign)
    assert isinstance(figure, Figure)
    (points,) = figure.spec["datasets"].values()
    assert [point["num_envs"] for point in points] == list(sizes)
    assert not Campaign.from_results([make_result(make_case(), 0.5)]).is_sweep


def test_a_sweep_shows_where_memory_ran_out() -> None:
    ran = [make_result(make_case(scaling="weak", num_envs_global=size), size / 1e5) for size in (1024, 2048)]
    failed = failed_result(make_case(scaling="weak", num_envs_global=4096), outcome="oom", reason="out of memory")
    figure = sweep.environments(Campaign.from_results([*ran, failed]))
    assert isinstance(figure, Figure)
    _, too_many = figure.spec["datasets"].values()
    assert [(point["num_envs"], point["said"]) for point in too_many] == [(4096, "out of memory")]
    assert figure.alt_text.endswith("4096: out of memory.")
    assert "Dashed: no round had room in memory." in figure.caption


def test_learning_in_a_sweep_has_a_colour_for_each_number_of_environments() -> None:
    sizes = (1024, 2048, 16384)
    results = [
        make_result(make_case(scaling="weak", num_envs_global=size, rl_library=library), size / 1e5)
        for size in sizes
        for library in ("rsl_rl", "skrl")
    ]
    spec = figure_of(learning.learning(Campaign.from_results(results))).spec
    (line,) = spec["layer"]
    assert line["encoding"]["color"]["scale"]["domain"] == ["1,024", "2,048", "16,384"]
    assert len(set(line["encoding"]["color"]["scale"]["range"])) >= len(sizes)
    assert line["encoding"]["strokeDash"]["sort"] == ["rsl_rl", "skrl"]
    by_ranks = [make_result(make_case(world_size=ranks), 0.5) for ranks in (1, 2)]
    (other,) = figure_of(learning.learning(Campaign.from_results(by_ranks))).spec["layer"]
    assert other["encoding"]["color"]["scale"]["domain"] == ["1x1", "1x2"]


def test_curves_of_one_number_of_ranks_are_left_out_of_scaling() -> None:
    tuned = make_result(make_case(variant="tuned"), 0.4)
    results = [tuned, *(make_result(make_case(world_size=ranks), 1.0 / ranks) for ranks in (1, 2))]
    campaign = Campaign.from_results(results)
    assert "tuned" not in figure_of(scaling.efficiency(campaign)).alt_text
    assert "tuned" in figure_of(scaling.efficiency(Campaign.from_results([tuned]))).alt_text


def figure_of(drawn: Figure | Html) -> Figure:
    assert isinstance(drawn, Figure)
    return drawn
