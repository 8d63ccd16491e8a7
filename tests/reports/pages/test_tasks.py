"""The page of a task: how it scales, what fills a GPU, where the time goes, and how it learns."""

import re

import pytest

from reports.display.html import paragraph
from reports.figures.lines import over_gpus
from reports.pages.rewards import time_to_reward
from reports.pages.tasks import charts, opening
from reports.sets.version import Version, read_version
from tests.fixtures.results.committed_results import RESULTS, committed_version


@pytest.fixture(scope="module")
def newest() -> Version:
    return read_version(RESULTS.parent / "2026.12", name="2026.12", older=[committed_version()])


def test_the_answer_has_the_share_of_the_ideal_with_its_interval_and_where(newest: Version) -> None:
    said = opening(newest, "Ant").text
    assert (
        "rl_games, 1,024 per GPU: 4 GPUs keep 83.2 % (79.7 % to 86.9 %) of the ideal speed (within noise of 80 %, "
        in said
    )
    assert "at least 80 % by the last 95 % of the iterations; 4 x H200" in said
    assert "4 x H200, 64 vCPU, 28 Nov 2026" in said


@pytest.mark.parametrize("task", ["Ant", "Cartpole", "Shadow Hand with camera"])
def test_a_task_has_at_most_four_charts_each_below_its_question_and_is_short(newest: Version, task: str) -> None:
    shown = charts(newest, task).markup
    assert shown.count('<figure class="vega-figure"') == 4
    assert re.findall(r'<h2 id="(\w+)"', shown) == ["scaling", "environments", "parts", "learning"]
    words = re.sub(r"<(script|svg)\b.*?</\1>|<[^>]+>", " ", opening(newest, task).markup + shown, flags=re.DOTALL)
    assert len(words.split()) < 740  # 60 more say how to read it


def test_what_was_never_trained_says_so(newest: Version) -> None:
    assert "Cartpole with camera was not trained: only parts of it ran." in opening(newest, "Cartpole with camera").text
    assert charts(newest, "Cartpole with camera").text == ""


def test_a_time_to_a_reward_says_on_which_gpus_a_run_ended_before(newest: Version) -> None:
    said = [time_to_reward(line) for task in ("Ant", "Cartpole") for line in over_gpus(newest, task)]
    shown = [paragraph(text).text for text in said]
    reached = "a reward of 14.3 after 11.0 s on 1, 12.3 s on 2 and 12.8 s on 4 GPUs (1 seed)."
    assert f"rl_games, 1,024 per GPU: {reached}" in shown
    ended = "a reward of 3.92 after 27.2 s on 1 GPU; on 2 and 4 not every run had it (1 seed)."
    assert f"rl_games, 8,192 in total: {ended}" in shown
