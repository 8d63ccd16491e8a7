"""The page of a task: how it scales, what fills a GPU, where the time goes, and how it learns."""

import re

import pytest

from reports.display.html import paragraph
from reports.figures.lines import over_gpus
from reports.pages.rewards import time_to_reward
from reports.pages.tasks import charts, opening
from tests.fixtures.results.committed_results import newest_version


@pytest.mark.parametrize("task", ["Ant", "Cartpole", "Shadow Hand with camera"])
def test_a_task_has_at_most_four_charts_each_below_its_question_and_is_short(task: str) -> None:
    version = newest_version()
    shown = charts(version, task).markup
    assert shown.count('<figure class="vega-figure"') == 4
    assert re.findall(r'<h2 id="(\w+)"', shown) == ["scaling", "environments", "parts", "learning"]
    words = re.sub(r"<(script|svg)\b.*?</\1>|<[^>]+>", " ", opening(version, task).markup + shown, flags=re.DOTALL)
    assert len(words.split()) < 740  # 60 more say how to read it


def test_a_time_to_a_reward_says_on_which_gpus_a_run_ended_before() -> None:
    lines = [line for task in ("Ant", "Cartpole") for line in over_gpus(newest_version(), task)]
    shown = [paragraph(time_to_reward(line)).text for line in lines]
    reached = "a reward of 14.3 after 11.0 s on 1, 12.3 s on 2 and 12.8 s on 4 GPUs (1 seed)."
    assert f"rl_games, 1,024 per GPU: {reached}" in shown
    ended = "a reward of 3.92 after 27.2 s on 1 GPU; on 2 and 4 not every run had it (1 seed)."
    assert f"rl_games, 8,192 in total: {ended}" in shown
