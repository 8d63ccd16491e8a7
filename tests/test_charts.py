import json
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from reports import charts
from reports.campaign import Campaign
from reports.figure import Figure
from reports.tables import Html
from suite.schema import CaseResult
from tests.generated_results import failed_result, full_results, make_case, make_record, make_result, smoke_results

CAMPAIGNS = {
    "one_rank": [make_result(make_case(), 0.5)],
    "two_ranks": smoke_results(),
    "eight_ranks": full_results(),
    "slower_than_one_rank": [make_result(make_case(world_size=ranks), 0.5 * ranks) for ranks in (1, 2, 4)],
}


def series_figures(results: list[CaseResult]) -> list[Figure | Html]:
    campaign = Campaign.from_results(results)
    figures: list[Figure | Html] = []
    for name in campaign.series_names:
        part = campaign.series(name)
        drawn = [charts.speedup, charts.efficiency, charts.throughput, charts.time_split]
        figures += [chart(part.rows, where=part.where) for chart in drawn]
        figures.append(charts.learning(part.learning_curves, part.rows, where=part.where))
    return figures


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_figure_has_a_drawing_words_and_data(name: str) -> None:
    figures = series_figures(CAMPAIGNS[name])
    assert all(isinstance(figure, Figure) for figure in figures)
    ids = [figure.figure_id for figure in figures if isinstance(figure, Figure)]
    assert len(ids) == len(set(ids)) == len(figures)
    for figure in figures:
        assert isinstance(figure, Figure)
        root = ET.fromstring(figure.svg)  # noqa: S314 - our own drawing
        assert root.get("role") == "img"
        assert root.get("aria-label") == figure.alt_text
        assert "NaN" not in figure.svg
        assert "generated data, not measured" in figure.caption
        assert "<table>" in figure.data.markup


def test_figures_are_the_same_every_time() -> None:
    first, second = (series_figures(CAMPAIGNS["two_ranks"][:2]) for _ in range(2))
    assert [figure._repr_mimebundle_() for figure in first] == [figure._repr_mimebundle_() for figure in second]


def test_markup_holds_the_live_spec_and_cannot_end_its_script_early() -> None:
    result = make_result(make_case(), 0.5)
    rows = Campaign.from_results([result]).rows
    figure = charts.throughput(rows, where="</script><b>host</b>")
    assert isinstance(figure, Figure)
    markup = figure._repr_mimebundle_()["text/html"]
    assert markup.count("</script>") == 1
    assert "<b>host" not in markup
    spec: Mapping[str, Any] = json.loads(markup.partition('json">')[2].partition("</script>")[0])
    assert spec["width"] == "container"
    assert spec["description"] == figure.alt_text


def test_speedup_says_its_values_in_words() -> None:
    results = [make_result(make_case(world_size=ranks), 1.0 / ranks) for ranks in (1, 2)]
    figure = charts.speedup(Campaign.from_results(results).rows, where="here")
    assert isinstance(figure, Figure)
    assert figure.alt_text == "Speed-up over ranks. rsl_rl: 1.00 at 1x1, 2.00 at 1x2."


def test_a_series_that_failed_has_sentences_instead_of_charts() -> None:
    figures = series_figures([failed_result(make_case(), outcome="oom", reason="out of memory")])
    assert [type(figure) for figure in figures] == [Html] * 5


def test_whiskers_are_drawn_only_for_more_than_one_round() -> None:
    one, three = (
        charts.throughput(Campaign.from_results([make_result(make_case(), *times_s)]).rows, where="here")
        for times_s in ((0.5,), (0.5, 0.6, 0.7))
    )
    assert isinstance(one, Figure)
    assert isinstance(three, Figure)
    assert "rule" not in json.dumps(one.spec["layer"])
    assert "rule" in json.dumps(three.spec["layer"])
    assert "no spread is known" in one.caption


def test_time_split_adds_up_to_the_iteration() -> None:
    figure = charts.time_split(Campaign.from_results([make_result(make_case(world_size=2), 0.5)]).rows, where="here")
    assert isinstance(figure, Figure)
    points = figure.spec["datasets"][figure.spec["data"]["name"]]
    assert [point["part"] for point in points] == [
        "environment steps",
        "rest of collection",
        "all-reduce",
        "rest of learning",
        "other",
    ]
    assert sum(point["time_s"] for point in points) == pytest.approx(0.5)


def test_long_learning_curves_are_thinned() -> None:
    case = make_case(iterations=1001)
    result = CaseResult(case=case, rounds=(make_record(case),))
    part = Campaign.from_results([result])
    figure = charts.learning(part.learning_curves, part.rows, where="here")
    assert isinstance(figure, Figure)
    assert len(json.dumps(figure.spec)) < 60_000


def test_a_sweep_is_drawn_over_environments_and_named_without_them() -> None:
    results = [
        make_result(
            make_case("cartpole-envs", scaling="weak", rl_library=library, num_envs_global=size), 0.1 + size / 10_000
        )
        for library in ("rl_games", "rsl_rl")
        for size in (2048, 1024, 4096)
    ]
    campaign = Campaign.from_results(results)
    figure = charts.sweep(campaign.rows, where=campaign.where)
    assert isinstance(figure, Figure)
    assert f"rl_games: {1024 * 16 / 0.2024:,.0f} with 1024, {2048 * 16 / 0.3048:,.0f} with 2048" in figure.alt_text
    spec = json.dumps(figure._repr_mimebundle_())
    assert 'environments a rank"' not in spec
    root = ET.fromstring(figure.svg)  # noqa: S314 - our own drawing
    assert root.get("aria-label") == figure.alt_text


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_series_of_one_size_has_no_sweep(name: str) -> None:
    campaign = Campaign.from_results(CAMPAIGNS[name])
    for series in campaign.series_names:
        drawn = charts.sweep(campaign.series(series).rows, where="here")
        assert isinstance(drawn, Html)
        assert drawn.markup == ""
