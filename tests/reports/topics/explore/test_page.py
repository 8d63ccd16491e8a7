"""What the page Explore gives its script and readers without scripts."""

import json
import re
from pathlib import Path

import pytest

from reports.topics.explore.metrics import METRICS
from reports.topics.explore.model import points
from reports.topics.explore.page import MOST_INVERSE, data, main, opening, quantiles
from suite.schema.record import CaseResult
from suite.statistics.intervals import CONFIDENCE
from suite.statistics.student_t import t_quantile
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import full_results, smoke_results
from tests.reports.topics.explore.test_model import version_of


def test_the_opening_is_one_sentence_made_of_the_points(tmp_path: Path) -> None:
    said = opening(version_of(full_results(), tmp_path)).text
    assert said.endswith("2 tasks (Ant, Cartpole) on 1, 2, 4 or 8 Generated Accelerator GPUs.")
    said = opening(version_of(on_one_gpu(full_results()), tmp_path / "one")).text
    assert said.endswith(" on 1 Generated Accelerator GPU.")


def on_one_gpu(results: list[CaseResult]) -> list[CaseResult]:
    return [result for result in results if result.case.world_size == 1]


def test_without_a_gpu_there_is_a_sentence_and_no_table(tmp_path: Path) -> None:
    version = version_of(smoke_results(), tmp_path)
    assert "nothing to explore" in opening(version).text
    assert main(version).markup == ""


def test_the_table_has_every_point_with_its_main_figures(tmp_path: Path) -> None:
    version = version_of(full_results(), tmp_path)
    headings, *rows = [line.split("\t") for line in main(version).text.splitlines()]
    assert len(rows) == len(points(version)) == 16
    (one,) = [row for row in rows if row[0] == "Cartpole, rl_games" and row[1].startswith("8 x ")]
    figures = dict(zip(headings, one, strict=True))
    # One of its three runs hung: no interval.
    assert figures["Runs"] == "2"
    assert re.fullmatch(r"[\d,]+", figures["Frames per second"])
    assert figures["Environments"] == "1,024 on each, 8,192 in all"
    assert figures["Energy per million frames, J"] == "n/a"


def test_the_script_has_what_the_table_shows_and_ends_nothing(tmp_path: Path) -> None:
    version = version_of(full_results(), tmp_path)
    (text,) = re.findall(r'<script type="application/json">(.*?)</script>', main(version).markup)
    assert json.loads(text) == data(points(version))
    assert "<" not in text
    for shown, point in zip(json.loads(text)["points"], points(version), strict=True):
        assert shown["key"] == point.key
        assert {key: value[0] for key, value in shown["figures"].items()} == {
            key: pytest.approx(figure.value, rel=1e-4) for key, figure in point.figures.items()
        }


def test_columns_of_metrics_are_where_the_script_looks_for_them() -> None:
    found = points(committed_version())
    headings = main(committed_version()).text.splitlines()[0].split("\t")
    assert [headings[metric["column"]] for metric in data(found)["metrics"]] == [one.heading for one in METRICS]


def test_quantiles_between_the_listed_ones_are_right() -> None:
    listed = quantiles()
    steps = len(listed) - 1
    for degrees in (2, 2.03, 2.5, 3.7, 4, 6.6, 11, 40):
        place = 1 / degrees / MOST_INVERSE * steps
        below = min(int(place), steps - 1)
        value = listed[below] + (place - below) * (listed[below + 1] - listed[below])
        assert value == pytest.approx(t_quantile(CONFIDENCE, degrees), rel=1e-4)
