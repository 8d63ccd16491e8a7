"""Rewards over iterations: smoothed, the one to reach, and when it is reached."""

import pytest

from reports.data.rewards import Rewards, converged_reward, iterations_to_reward, smoothed

RISING = [float(index) for index in range(12)]


def test_the_median_of_the_window_must_reach_the_reward() -> None:
    assert iterations_to_reward(RISING, 7.0, 1) == 8
    assert iterations_to_reward(RISING, 7.0) == 10  # the median of 5, 6, 7, 8 and 9 is 7
    peak = [0.0, 0.0, 0.0, 100.0, *[0.0] * 8]
    assert iterations_to_reward(peak, 50.0, 1) == 4
    assert iterations_to_reward(peak, 50.0, 3) is None


def test_a_window_with_a_missing_reward_does_not_count() -> None:
    assert iterations_to_reward([None, 9.0, 9.0], 9.0, 2) == 3
    assert iterations_to_reward([9.0, None, 9.0], 9.0, 2) is None
    assert iterations_to_reward([9.0], 9.0, 2) is None


def test_the_reward_to_reach_is_a_part_of_the_rise_that_every_run_has() -> None:
    half = [value / 2 for value in RISING]
    assert smoothed(RISING)[-1] == 9.0
    assert converged_reward([RISING, half]) == pytest.approx(2 + 0.9 * (4.5 - 2))
    assert converged_reward([RISING], 0.5) == pytest.approx(2 + 0.5 * (9 - 2))


def test_nobody_waits_for_a_reward_that_a_run_began_with_or_never_had() -> None:
    silent: list[float | None] = [None] * 12
    every: list[list[Rewards]] = [[RISING, RISING[::-1]], [], [silent], [RISING, silent]]
    for curves in every:
        assert converged_reward(curves) is None
