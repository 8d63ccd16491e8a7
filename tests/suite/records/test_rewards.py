"""Rewards over iterations: the one at the end, the one to reach, and when it is reached."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.data.rewards import Levels, converged_reward
from suite.records.rewards import Rewards, last_reward
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


def test_a_run_has_a_reward_in_the_middle_of_the_first_window_whose_mean_reaches_it() -> None:
    assert Levels.of(RISING, 1).iterations_to(7.0) == 8
    assert Levels.of(RISING, 5).iterations_to(7.0) == 8  # the mean of 5, 6, 7, 8 and 9
    assert Levels.of(RISING, 5).iterations_to(7.25) == 8.25
    assert Levels.of(RISING, 5).iterations_to(1.0) == 3  # no window is before the first
    peak = [0.0, 0.0, 0.0, 100.0, *[0.0] * 8]
    assert Levels.of(peak, 1).iterations_to(50.0) == 3.5
    assert Levels.of(peak, 3).iterations_to(50.0) is None


def test_a_window_with_a_missing_reward_does_not_count() -> None:
    assert Levels.of([None, 9.0, 9.0], 2).iterations_to(9.0) == 2.5
    assert Levels.of([9.0, None, 9.0], 2).iterations_to(9.0) is None
    assert Levels.of([9.0], 2).rewards == []


def test_rewards_that_leap_with_every_episode_say_when_they_have_a_level_between_the_leaps() -> None:
    """A reward that doubles with each episode of 10 iterations, and falls by a tenth within it."""
    leaping = [2.0**episode * (1 - 0.01 * step) for episode in range(6) for step in range(10)]
    between = [Levels.of(leaping, 10).iterations_to(reward) for reward in (8.0, 9.0, 10.0, 11.0)]
    assert all(isinstance(iterations, float) for iterations in between)
    assert len(set(between)) == 4
    assert between == sorted(between, key=float)  # type: ignore[arg-type]
    leaps = [Levels.of(leaping, 1).iterations_to(reward) for reward in (8.0, 16.0)]
    assert leaps == [31, 41]


def test_the_reward_to_reach_is_a_part_of_the_rise_that_every_run_has() -> None:
    whole, half = (Levels.of([value / part for value in RISING], 5) for part in (1, 2))
    assert converged_reward([whole, half]) == pytest.approx(2 + 0.9 * (4.5 - 2))
    assert converged_reward([whole], 0.5) == pytest.approx(2 + 0.5 * (9 - 2))


def test_two_runs_differ_by_what_is_most_in_parts_of_the_rise_of_the_second() -> None:
    first, second = Levels.of([None, 1.0, 5.0, 9.0], 1), Levels.of([0.0, 2.0, 4.0], 1)
    assert first.largest_difference(second) == pytest.approx(1 / 4)
    assert second.largest_difference(first) == pytest.approx(1 / 8)
    assert first.largest_difference(Levels.of([3.0, 3.0, 3.0], 1)) is None  # no rise
    assert first.largest_difference(Levels.of([0.1 + 0.2, 0.3], 1)) is None  # nor this: an error of rounding
    assert first.largest_difference(Levels.of([3.0, None], 1)) is None  # no iteration of both


def test_nobody_waits_for_a_reward_that_a_run_began_with_or_never_had() -> None:
    silent: list[float | None] = [None] * 12
    every: list[list[Rewards]] = [[RISING, RISING[::-1]], [], [silent], [RISING, silent], [RISING[:4]]]
    for curves in every:
        assert converged_reward([Levels.of(curve, 5) for curve in curves]) is None
