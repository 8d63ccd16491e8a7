"""The page of a task: how it scales, what fills a GPU, where the time goes, and how it learns."""

from reports.display.html import paragraph
from reports.figures.lines import over_gpus
from reports.pages.rewards import time_to_reward
from tests.fixtures.results.committed_results import newest_version


def test_a_time_to_a_reward_says_on_which_gpus_a_run_ended_before() -> None:
    lines = [line for task in ("Ant", "Cartpole") for line in over_gpus(newest_version(), task)]
    shown = [paragraph(time_to_reward(line)).text for line in lines]
    reached = "a reward of 14.3 after 11.0 s on 1, 12.3 s on 2 and 12.8 s on 4 GPUs (1 seed)."
    assert f"rl_games, 1,024 per GPU: {reached}" in shown
    ended = "a reward of 3.92 after 27.2 s on 1 GPU; on 2 and 4 not every run had it (1 seed)."
    assert f"rl_games, 8,192 in total: {ended}" in shown
