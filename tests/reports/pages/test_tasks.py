"""The page of a task: how it scales, what fills a GPU, where the time goes, and every configuration as shipped."""

import pytest

from reports.pages.tasks import charts, opening, table
from reports.sets.version import Version, read_version
from tests.fixtures.results.committed_results import RESULTS, committed_version


@pytest.fixture(scope="module")
def newest() -> Version:
    return read_version(RESULTS.parent / "2026.12", name="2026.12", older=[committed_version()])


def test_the_answer_has_the_share_of_the_ideal_with_its_interval_and_where(newest: Version) -> None:
    said = opening(newest, "Ant").text
    assert "rl_games, 1,024 per GPU: 4 GPUs keep 83.2 % of the ideal speed (79.7 % to 86.9 %; within noise of" in said
    assert "at least 80 % by the last 95 % of the iterations; 4 x H200" in said
    assert "4 x H200, 64 vCPU, 28 Nov 2026" in said


def test_a_task_has_at_most_four_charts_each_below_its_question(newest: Version) -> None:
    shown = charts(newest, "Cartpole").markup
    assert shown.count('<figure class="vega-figure"') == 4
    for anchor in ("scaling", "environments", "parts", "learning"):
        assert f'id="{anchor}"' in shown


def test_what_was_never_trained_says_so(newest: Version) -> None:
    assert "Cartpole with camera was not trained: only parts of it ran." in opening(newest, "Cartpole with camera").text
    assert charts(newest, "Cartpole with camera").text == ""


def test_every_configuration_as_shipped_is_in_the_table_once(newest: Version) -> None:
    rows = [line.split("\t")[0] for line in table(newest, "Ant").text.splitlines() if ": ant" in line]
    assert len(rows) == len(set(rows)) > 20
