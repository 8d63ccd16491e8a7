"""*Tuned settings*: what a change of settings gains over its case as shipped, and what it does to learning."""

from collections.abc import Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.figures import rewards
from reports.verification.figures.estimates import median_of
from reports.verification.figures.rows import of_pair
from reports.verification.finding import Json
from reports.verification.pages.tuning import changed_settings as changed
from reports.verification.pages.tuning.changed_settings import Pair
from reports.verification.samples.stored_version import StoredVersion

MIN_RUNS: Final = 3  # that learned otherwise, of either side, before one side surely learns less


def figures(version: StoredVersion) -> dict[str, Json]:
    found = {
        f"{one.folder.name}: {pair[1].case_id}": _figures(pair, one.noise(pair[1].case["series"]))
        for one in version.with_speeds
        for pair in changed.changed_pairs(one)
    }
    best = _of_card(version)
    return {**found, **({"card": _card(best)} if best else {})}


def _figures(pair: Pair, noise: float | None) -> Json:
    learned = [changed.distinct_curves(stored) for stored in pair]
    reward = changed.reward_as_shipped(pair)
    needed = [[None if reward is None else rewards.iterations_to(curve, reward) for curve in side] for side in learned]
    at = {
        equal: [_rewards_after(*side) for side in zip(learned, ends, strict=True)]
        for equal, ends in _equal_ends(pair).items()
    }
    gain, span = changed.gain_of(pair) or (None, None)
    shipped_s, changed_s = (rewards.times_to(stored, reward) for stored in pair)
    return {
        "compared_with": pair[0].case_id,
        "noise": noise,
        "noise_band": [1 / (1 + noise), 1 + noise] if noise else None,
        "against_noise": formulas.against_noise(gain, span, noise),
        "learns": _word(learned, at["frames"]),
        "seeds": changed.num_seeds(pair),
        "rewards_at_equal": {equal: [formulas.median_of_known(side) for side in both] for equal, both in at.items()},
        "reward_as_shipped": reward,
        "runs_with_reward": [sum(iterations is not None for iterations in needed[1]), len(learned[1])],
        "iterations_to_reward": [_median_of_all(side) for side in needed],
        **of_pair("seconds_to_reward_as_shipped", median_of(shipped_s.values())),
        **of_pair("seconds_to_reward", median_of(changed_s.values())),
        **of_pair("times_as_soon", changed.times_as_soon(pair)),
    }


def _equal_ends(pair: Pair) -> dict[str, list[int]]:
    """Return the iterations of both after which the one ends that has less: of frames, iterations, time."""
    frames = min(stored.frames * stored.case["iterations"] for stored in pair)
    iterations = min(stored.case["iterations"] for stored in pair)
    ends = {"frames": [frames // stored.frames for stored in pair], "iterations": [iterations] * 2}
    if all(stored.published_s for stored in pair):
        paces_s = [stored.seconds_per_iteration for stored in pair]
        known = [(stored.case["iterations"], pace_s) for stored, pace_s in zip(pair, paces_s, strict=True)]
        time_s = min(most * pace_s for most, pace_s in known)
        ends["time"] = [min(most, round(time_s / pace_s)) for most, pace_s in known]
    return ends


def _rewards_after(curves: Sequence[rewards.Curve], end: int) -> list[float]:
    found = (rewards.reward_after(curve, end) for curve in curves)
    return [reward for reward in found if reward is not None]


def _word(learned: Sequence[Sequence[rewards.Curve]], after: Sequence[Sequence[float]]) -> str:
    """Return what is said of learning: ``less`` where every run with the change is below every run as shipped."""
    if len(learned[1]) == 1 and learned[0] == learned[1]:
        return "the same"
    if min(map(len, after)) < MIN_RUNS:
        return "unknown"
    return "less" if max(after[1]) < min(after[0]) else "not surely less"


def _median_of_all(needed: Sequence[int | None]) -> float | None:
    """Return the median; None where a run never has the reward."""
    known = [iterations for iterations in needed if iterations is not None]
    return formulas.median(known) if known and len(known) == len(needed) else None


# --- the card of the first page ---


def _of_card(version: StoredVersion) -> Pair | None:
    """Return the tuned case that is soonest over the most seeds; else the one that gains most beyond the noise."""
    tuned = [
        (pair, one.noise() or 0.0)
        for one in version.with_speeds
        for pair in changed.changed_pairs(one)
        if changed.is_tuned(pair[1])
    ]
    seeds = [(min(changed.num_seeds(pair)), changed.times_as_soon(pair), pair) for pair, _ in tuned]
    seeded = [(number, sooner[0], pair) for number, sooner, pair in seeds if number > 1 and sooner]
    if seeded:
        return max(seeded, key=lambda each: each[:2])[2]
    gains = [(changed.gain_of(pair), noise, pair) for pair, noise in tuned]
    sure = [(gain[0], pair) for gain, noise, pair in gains if gain and gain[1] and min(gain[1][0], gain[0] - noise) > 1]
    return max(sure, key=lambda each: each[0])[1] if sure else None


def _card(best: Pair) -> Json:
    return {
        "case": best[1].case_id,
        "compared_with": best[0].case_id,
        **of_pair("gain", changed.gain_of(best)),
        **of_pair("times_as_soon", changed.times_as_soon(best)),
    }
