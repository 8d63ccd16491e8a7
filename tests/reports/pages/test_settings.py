"""Settings and sharing: every ratio of one setting, taken from the table of figures."""

import re

import pytest

from reports.display.html import together
from reports.figures.tables import rows_by_id
from reports.pages.settings import answer, beside, chart, newest, table
from reports.sets.version import Version, read_version
from tests.fixtures.results.committed_results import RESULTS


@pytest.fixture(scope="module")
def version() -> Version:
    return read_version(RESULTS.parent / "2026.12", name="2026.12")


def test_the_table_has_the_newest_clear_ratio_of_each_comparison_as_it_is_stored(version: Version) -> None:
    rows = [row.split("\t") for row in table(version).text.splitlines()[1:]]
    assert len(rows) == len(newest(version)) == len({tuple(row[:4]) for row in rows}) > 30
    figures = rows_by_id(version)
    for row, ratio in zip(rows, newest(version), strict=True):
        figure = figures[ratio.pair.id]
        assert row[4].startswith(f"{figure['value']:.2f}")
        assert row[5] == figure["status"]
    (ant,) = (row for row in rows if row[:4] == ["Environments", "Ant, rl_games", "1,024", "8,192"])
    assert ant[4:] == ["3.13 (2.93 to 3.35)", "clear", "H200, 30 Nov"]


def test_the_page_is_short(version: Version) -> None:
    shown = together([answer(version), chart(version), table(version), beside(version)]).markup
    words = re.sub(r"<(script|svg)\b.*?</\1>|<[^>]+>", " ", shown, flags=re.DOTALL)
    assert len(words.split()) < 1050  # 150 more say how to read it


def test_several_trainings_on_a_gpu_with_and_without_mps_are_told_apart(version: Version) -> None:
    shared = [row.split("\t") for row in table(version).text.splitlines() if row.startswith("Trainings at once")]
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
    assert "A policy of LeRobot (ACT) makes 67 in 1 environment," in said
    assert "times as soon" in said


def test_the_chart_has_one_row_for_each_setting_task_and_library(version: Version) -> None:
    drawn = chart(version)
    points = {
        (ratio.setting.column, ratio.subject)
        for ratio in newest(version)
        if ratio.is_training and ratio.estimate.interval
    }
    assert drawn.alt_text.count("; ") == len(points) - 1
