"""What is said of tuned cases and of other changes of settings, besides figures.json. Pure."""

import statistics
from collections.abc import Mapping

from reports.analysis.divisions import Gain, Rewards, gains
from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.tuning.card import gain_of_card
from suite.statistics.noise import noise_band


def division_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures, of every case with a change; and which case the card of the first page is of."""
    found = {
        f"{one.name}: {gain.case.case_id}": gain
        for one in version.scaling
        for series in map(one.campaign.series, one.campaign.series_names)
        for gain in gains(series.results, series.twins)
    }
    rows = {of: _figures(gain) for of, gain in found.items()}
    best = gain_of_card(version)
    return rows if best is None else {**rows, "card": _card(best)}


def _card(best: Gain) -> Figures:
    return {
        "case": best.case.case_id,
        "compared_with": best.closed.case_id,
        **with_interval("gain", best.gain),
        **with_interval("times_as_soon", best.sooner),
    }


def _figures(gain: Gain) -> Figures:
    shipped_s, tuned_s = gain.time_to_target_s
    return {
        "compared_with": gain.closed.case_id,
        "noise": gain.noise,
        "noise_band": [*noise_band(gain.noise)] if gain.noise else None,
        "against_noise": gain.speed,
        "learns": gain.learning,
        "seeds": [*gain.seeds],
        "rewards_at_equal": {equal: _medians(at) for equal, at in gain.rewards.items()},
        "reward_as_shipped": gain.target,
        "runs_with_reward": [*gain.reached],
        "iterations_to_reward": [*gain.iterations_to_target],
        **with_interval("seconds_to_reward_as_shipped", shipped_s),
        **with_interval("seconds_to_reward", tuned_s),
        **with_interval("times_as_soon", gain.sooner),
    }


def _medians(at: Rewards) -> list[float | None]:
    return [statistics.median(side) if side else None for side in (at.closed, at.tuned)]
