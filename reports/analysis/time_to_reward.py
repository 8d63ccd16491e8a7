"""Time to a reward: how long training runs until it is as good as asked for. Pure.

The time is that of the iterations alone, the first with its compilation included, each as long as its slowest rank.
Start-up before the first iteration is not in it. More environments learn more per iteration, but not in proportion:
this is the figure that throughput is for.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.analysis.analysed_set import Campaign
from suite.records.learning_check import mean_over_ranks
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.intervals import Interval, mean_of
from suite.statistics.reduce import iteration_times_s

# Iterations that a reward is the median of, the current one and those before, as in suite.records.learning_check. The
# libraries take the mean of a hundred episodes already, but one iteration may leap: when the first episodes of full
# length end, all that did not fail do so together.
SMOOTHING_WINDOW: Final = 5


@dataclass(frozen=True, kw_only=True)
class TimeToReward:
    """``time_s`` is the geometric mean over the completed rounds if all of them got there.

    Otherwise it is their median, where one that never got there counts as longer than any: None where half of them or
    more did not, and without an interval.
    """

    reward: float
    round_times_s: Mapping[int, float | None]  # None: the round ended before
    round_iterations: Mapping[int, int | None]  # iterations needed, from 1
    time_s: float | None
    interval_s: Interval | None


def time_to_reward(result: CaseResult, reward: float, *, smoothing_window: int = SMOOTHING_WINDOW) -> TimeToReward:
    """Raises ValueError as ``suite.statistics.reduce.iteration_times_s`` does, and for a window below 1."""
    if smoothing_window < 1:
        raise ValueError(f"smoothing_window is {smoothing_window}; it is a number of iterations, at least 1")
    iterations = {
        record.round: iterations_to_reward(mean_rewards(record), reward, smoothing_window=smoothing_window)
        for record in result.completed
    }
    times_s = {record.round: _time_s(record, iterations[record.round]) for record in result.completed}
    reached = [time_s for time_s in times_s.values() if time_s is not None]
    censored = statistics.median([math.inf if time_s is None else time_s for time_s in times_s.values()] or [math.inf])
    of_all = mean_of(reached) if reached and len(reached) == len(times_s) else None
    median_s = censored if math.isfinite(censored) else None
    return TimeToReward(
        reward=reward,
        round_times_s=times_s,
        round_iterations=iterations,
        time_s=of_all.value if of_all else median_s,
        interval_s=of_all.interval if of_all else None,
    )


def common_reward(results: Sequence[CaseResult]) -> float | None:
    """Of every completed round of every case, as ``reward_of_all``."""
    return reward_of_all([mean_rewards(record) for result in results for record in result.completed])


def reward_of_all(curves: Sequence[Sequence[float | None]]) -> float | None:
    """The highest reward that every curve reached, smoothed as ``time_to_reward`` does by default.

    None where a curve began with as much: then nobody waits for it. None too for one without enough rewards.
    """
    known = [smoothed(curve, SMOOTHING_WINDOW) for curve in curves]
    if not known or not all(known):
        return None
    reward = min(map(max, known))
    return reward if reward > max(curve[0] for curve in known) else None


def mean_rewards(record: RunRecord) -> list[float | None]:
    """Per iteration, as ``suite.records.learning_check.mean_over_ranks``."""
    return mean_over_ranks(rank.samples.get("reward_mean", ()) for rank in record.ranks)


def smoothed(rewards: Sequence[float | None], smoothing_window: int) -> list[float]:
    """The median of every window that is full and has a reward in every iteration, in their order."""
    windows = (rewards[end - smoothing_window : end] for end in range(smoothing_window, len(rewards) + 1))
    known = ([value for value in window if value is not None] for window in windows)
    return [statistics.median(window) for window in known if len(window) == smoothing_window]


def iterations_to_reward(rewards: Sequence[float | None], reward: float, *, smoothing_window: int) -> int | None:
    """Iterations until the median of the last ``smoothing_window`` rewards is at least ``reward``; None if never.

    A window counts only when it is full and every iteration in it has a reward.
    """
    for end in range(smoothing_window, len(rewards) + 1):
        window = [value for value in rewards[end - smoothing_window : end] if value is not None]
        if len(window) == smoothing_window and statistics.median(window) >= reward:
            return end
    return None


def _time_s(record: RunRecord, iterations: int | None) -> float | None:
    return None if iterations is None else math.fsum(iteration_times_s(record)[:iterations])


def rewarded_curves(campaign: Campaign) -> list[tuple[str, list[CaseResult], float | None]]:
    """Name, completed cases from the fewest ranks, and common reward of each curve that has a completed case."""
    found = []
    for series, curve in dict.fromkeys((row.series, row.curve) for row in campaign.rows):
        ids = {row.case_id for row in campaign.rows if (row.series, row.curve) == (series, curve)}
        results = [result for result in campaign.results if result.case.case_id in ids and result.completed]
        if results:  # what did not run is no matter of how long rounds are; Limits has it
            results.sort(key=lambda result: result.case.world_size)
            found.append((f"{series}: {curve}", results, common_reward(results)))
    return found
