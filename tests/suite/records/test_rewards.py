"""Rewards over iterations: smoothed, the one at the end, the one to reach, and when it is reached."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.data.rewards import converged_reward, iterations_to_reward
from suite.records.rewards import Rewards, last_reward, smoothed
from tests.fixtures.results.generated_results import make_case, make_record

RISING = [float(index) for index in range(12)]
GAP: list[float | None] = [None, None]


@pytest.mark.parametrize(
    ("rewards", "at_the_end"),
    [
        (RISING, 9.0),
        ([*GAP, *RISING], 9.0),
        ([*RISING, 90.0, *GAP, 91.0], None),  # not the reward of an earlier window
        ([*RISING, None], None),
        (RISING[:4], None),
        ([], None),
    ],
)
def test_the_reward_at_the_end_is_of_the_last_iterations_and_of_no_others(
    rewards: Sequence[float | None], at_the_end: float | None
) -> None:
    record = make_record(make_case(), index=0)
    (rank,) = record.ranks
    record = replace(record, ranks=(replace(rank, samples={**rank.samples, "reward_mean": tuple(rewards)}),))
    assert last_reward(record) == at_the_end


def test_the_median_of_the_window_must_reach_the_reward() -> None:
    assert iterations_to_reward(RISING, 7.0, 1) == 8
    assert iterations_to_reward(RISING, 7.0) == 10  # the median of 5, 6, 7, 8 and 9 is 7
    peak = [0.0, 0.0, 0.0, 100.0, *[0.0] * 8]
    assert iterations_to_reward(peak, 50.0, 1) == 4
    assert iterations_to_reward(peak, 50.0, 3) is None


def test_a_window_with_a_missing_reward_does_not_count() -> None:
    assert smoothed([1.0, 2.0, None, 9.0, 9.0], 2) == [1.5, 9.0]
    assert iterations_to_reward([None, 9.0, 9.0], 9.0, 2) == 3
    assert iterations_to_reward([9.0, None, 9.0], 9.0, 2) is None
    assert iterations_to_reward([9.0], 9.0, 2) is None


def test_the_reward_to_reach_is_a_part_of_the_rise_that_every_run_has() -> None:
    half = [value / 2 for value in RISING]
    assert converged_reward([RISING, half]) == pytest.approx(2 + 0.9 * (4.5 - 2))
    assert converged_reward([RISING], 0.5) == pytest.approx(2 + 0.5 * (9 - 2))


def test_nobody_waits_for_a_reward_that_a_run_began_with_or_never_had() -> None:
    silent: list[float | None] = [None] * 12
    every: list[list[Rewards]] = [[RISING, RISING[::-1]], [], [silent], [RISING, silent]]
    for curves in every:
        assert converged_reward(curves) is None
