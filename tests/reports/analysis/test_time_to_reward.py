from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from reports.analysis.learning_curves import mean_rewards
from reports.analysis.time_to_reward import (
    SMOOTHING_WINDOW,
    common_reward,
    iterations_to_reward,
    smoothed,
    time_to_reward,
)
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.intervals import mean_of
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import failed_result, make_case, make_record

ITERATIONS = 12


def learning(
    index: int,
    rewards: Sequence[float | None],
    *,
    time_s: float = 0.5,
    other_rank: Sequence[float | None] | None = None,
) -> RunRecord:
    """A round whose first iteration took ten times ``time_s``."""
    case = make_case(world_size=1 if other_rank is None else 2)
    record = make_record(case, index=index, iteration_time_s=time_s)
    columns = [rewards] if other_rank is None else [rewards, other_rank]
    ranks = (
        replace(rank, samples={**rank.samples, "reward_mean": tuple(column)})
        for rank, column in zip(record.ranks, columns, strict=True)
    )
    return replace(record, ranks=tuple(ranks))


def result_of(*records: RunRecord) -> CaseResult:
    return CaseResult(case=records[0].case, rounds=records)


RISING = [float(index) for index in range(ITERATIONS)]


def test_time_is_that_of_all_iterations_up_to_the_reward_the_first_included() -> None:
    found = time_to_reward(result_of(learning(0, RISING)), 7.0, smoothing_window=1)
    assert found.round_iterations == {0: 8}
    assert found.time_s == pytest.approx(10 * 0.5 + 7 * 0.5)


def test_the_median_of_the_window_must_reach_the_reward() -> None:
    found = time_to_reward(result_of(learning(0, RISING)), 7.0)
    assert found.round_iterations == {0: 10}  # the median of 5, 6, 7, 8 and 9 is 7
    peak = [0.0, 0.0, 0.0, 100.0, *[0.0] * 8]
    assert iterations_to_reward(peak, 50.0, smoothing_window=1) == 4
    assert iterations_to_reward(peak, 50.0, smoothing_window=3) is None


def test_a_window_with_a_missing_reward_does_not_count() -> None:
    assert iterations_to_reward([None, 9.0, 9.0], 9.0, smoothing_window=2) == 3
    assert iterations_to_reward([9.0, None, 9.0], 9.0, smoothing_window=2) is None
    assert iterations_to_reward([9.0], 9.0, smoothing_window=2) is None


def test_the_slowest_rank_times_and_the_mean_of_the_ranks_learns() -> None:
    case = make_case(world_size=2)
    record = make_record(case, iteration_time_s=[0.5, 0.6])
    high, low = ([value] * ITERATIONS for value in (8.0, 4.0))
    ranks = tuple(
        replace(rank, samples={**rank.samples, "reward_mean": tuple(column)})
        for rank, column in zip(record.ranks, (high, low), strict=True)
    )
    found = time_to_reward(result_of(replace(record, ranks=ranks)), 6.0, smoothing_window=2)
    assert found.time_s == pytest.approx(6.0 + 0.6)
    assert time_to_reward(result_of(learning(0, high, other_rank=low)), 6.1).time_s is None


def test_mean_and_interval_over_rounds() -> None:
    records = [learning(index, RISING, time_s=time_s) for index, time_s in enumerate((0.4, 0.4, 0.8))]
    found = time_to_reward(result_of(*records), 0.0, smoothing_window=1)
    assert found.round_times_s == pytest.approx({0: 4.0, 1: 4.0, 2: 8.0})
    assert found.time_s == pytest.approx(128 ** (1 / 3))
    assert found.interval_s == pytest.approx(mean_of([4.0, 4.0, 8.0]).interval)
    assert time_to_reward(result_of(*records[:2]), 0.0).interval_s is None


def test_a_round_that_never_gets_there_is_longer_than_any() -> None:
    never = [0.0] * ITERATIONS
    records = [learning(0, RISING), learning(1, RISING), learning(2, never)]
    found = time_to_reward(result_of(*records), 7.0, smoothing_window=1)
    assert found.round_times_s == {0: 8.5, 1: 8.5, 2: None}
    assert (found.time_s, found.interval_s) == (8.5, None)
    mostly_never = time_to_reward(result_of(records[0], records[2]), 7.0)
    assert mostly_never.time_s is None


def test_nothing_completed_is_no_time() -> None:
    found = time_to_reward(failed_result(make_case(), outcome="oom", reason="out of memory"), 1.0)
    assert (found.time_s, found.interval_s, found.round_times_s) == (None, None, {})


def test_a_window_is_at_least_one_iteration() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        time_to_reward(result_of(learning(0, RISING)), 1.0, smoothing_window=0)


def test_the_common_reward_is_the_most_that_every_round_reached() -> None:
    high, low = (result_of(learning(0, [factor * value for value in RISING])) for factor in (1.0, 0.5))
    assert smoothed(RISING, 5)[-1] == pytest.approx(9.0)
    assert common_reward([high]) == pytest.approx(9.0)
    assert common_reward([high, low]) == pytest.approx(4.5)
    found = time_to_reward(high, common_reward([high, low]) or 0)
    assert found.round_iterations == {0: 8}, "the median of 3.0 to 7.0 is 5.0, and of the window before 4.0"


def test_there_is_no_common_reward_that_a_round_began_with() -> None:
    falling = result_of(learning(0, RISING[::-1]))
    assert common_reward([result_of(learning(0, RISING)), falling]) is None
    assert common_reward([]) is None
    assert common_reward([result_of(learning(0, [None] * ITERATIONS))]) is None


def test_a_round_without_rewards_leaves_no_common_one() -> None:
    """A common reward would otherwise ignore the round that learned nothing."""
    silent = result_of(learning(1, [None] * ITERATIONS))
    assert common_reward([result_of(learning(0, RISING)), silent]) is None


def test_the_leap_of_a_round_that_ends_with_its_first_full_episodes_is_not_its_reward() -> None:
    """A mean over the last iterations took the end of all episodes that had not failed for learning."""
    version = committed_version()
    results = [result for one in version.sets for result in one.campaign.results if result.case.learns]
    curves = [
        [reward for reward in mean_rewards(record) if reward is not None]
        for result in results
        if (result.case.task, result.case.rl_library, result.case.iterations) == ("Isaac-Ant", "rl_games", 60)
        for record in result.completed
    ]
    assert curves
    for curve in curves:
        *before, last = (later - earlier for earlier, later in pairwise(curve[-SMOOTHING_WINDOW * 2 :]))
        assert last > max(before)
        assert smoothed(curve, SMOOTHING_WINDOW)[-1] <= curve[-2]
