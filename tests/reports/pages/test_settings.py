"""Settings and sharing: every ratio of one setting, taken from the table of figures."""

import pytest

from reports.figures.tables import rows_by_id
from reports.pages.settings import answer, beside, chart, ratios, table
from reports.sets.version import Version, read_version
from tests.fixtures.results.committed_results import RESULTS


@pytest.fixture(scope="module")
def version() -> Version:
    return read_version(RESULTS.parent / "2026.12", name="2026.12")


def test_every_ratio_of_a_setting_is_a_row_with_the_figure_that_is_stored(version: Version) -> None:
    rows = table(version).text.splitlines()[1:]
    assert len(rows) == len(ratios(version)) > 40
    figures = rows_by_id(version)
    for row, ratio in zip(rows, ratios(version), strict=True):
        assert row.split("\t")[4].startswith(f"{figures[ratio.pair.id]['value']:.2f}")
        assert row.split("\t")[5] == figures[ratio.pair.id]["status"]


def test_several_trainings_on_a_gpu_with_and_without_mps_are_told_apart(version: Version) -> None:
    shared = [row.split("\t") for row in table(version).text.splitlines() if row.startswith("Trainings on a GPU")]
    assert {row[3] for row in shared} == {
        "2 trainings", "4 trainings", "2 trainings with MPS", "4 trainings with MPS",
    }  # fmt: skip


def test_the_answer_is_of_clear_ratios_of_trainings_alone(version: Version) -> None:
    said = answer(version).text
    assert "PhysX in place of Newton makes 0.57 to 0.67 times the frames" in said
    assert "299" not in said  # a policy that acts, and trains nothing


def test_what_no_ratio_says_is_beside_them(version: Version) -> None:
    said = beside(version).text
    assert "equal bit for bit" in said
    assert "A policy of LeRobot (ACT) in 512 environments" in said
    assert "times as soon" in said


def test_the_chart_has_one_row_for_each_setting_task_and_library(version: Version) -> None:
    drawn = chart(version)
    points = {
        (ratio.setting.column, ratio.subject)
        for ratio in ratios(version)
        if ratio.is_training and ratio.estimate.interval
    }
    assert drawn.alt_text.count("; ") == len(points) - 1
