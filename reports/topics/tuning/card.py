"""What tuned settings gain, as a card of the first page."""

from collections.abc import Sequence

from reports.analysis.curves import task_name
from reports.analysis.divisions import Gain, gains
from reports.analysis.series_kind import change_of
from reports.display.card import Card
from reports.display.division_tables import has_seeds, time_to_reward
from reports.display.html import estimated, seconds
from reports.display.series_tables import ranks_text
from reports.sets.version import Version
from suite.statistics.intervals import Estimate


def card(version: Version) -> Card | None:
    """Time to a reward over the most seeds if known; else the largest gain, or None if none is clear."""
    found = _tuned(version)
    best = _best(found)
    if best is None:
        return None
    if _has_time(best):
        return _of_seeds(best)
    return _of_frames(best, [each for each in _sure(found) if each[0].closed == best.closed])


def _best(found: Sequence[Gain]) -> Gain | None:
    seeded = [(min(gain.seeds), gain.sooner.value, gain) for gain in found if _has_time(gain) and gain.sooner]
    if seeded:
        return max(seeded, key=lambda each: each[:2])[2]
    return max(_sure(found), key=lambda each: each[1].value, default=(None, None))[0]


def _tuned(version: Version) -> list[Gain]:
    every = [gain for one in version.scaling for gain in gains(one.campaign.results, one.campaign.twins)]
    return [gain for gain in every if change_of(gain.case) == "tuned"]


def _has_time(gain: Gain) -> bool:
    return has_seeds(gain) and gain.sooner is not None


def _sure(found: Sequence[Gain]) -> list[tuple[Gain, Estimate]]:
    """Those whose frames per second are surely more."""
    return [(gain, gain.gain) for gain in found if gain.gain and gain.speed == "faster"]


def _of_seeds(best: Gain) -> Card:
    times = (f"as shipped, {best.closed.num_envs:,} environments", ", ".join(best.changes))
    known_s = {name: value.value for name, value in zip(times, best.time_to_target_s, strict=True) if value}
    low = best.sooner.interval[0] if best.sooner and best.sooner.interval else 0.0
    frames = "" if best.gain is None else f"{best.gain.value:.1f} times the frames "
    brings = "bring the reward sooner" if low > 1 else "do not surely bring the reward sooner"
    return Card(
        title=f"{task_name(best.case.task)}, tuned: {frames}{brings}",
        text=f"{ranks_text(best.case)}, {best.case.rl_library}. {time_to_reward(best)}",
        bars={name: (time_s / max(known_s.values()), f"{seconds(time_s)} s") for name, time_s in known_s.items()},
        link="Tuned settings, and what they do to learning",
        address="division.html",
    )


def _of_frames(best: Gain, of_case: Sequence[tuple[Gain, Estimate]]) -> Card:
    value = next(value for gain, value in of_case if gain is best)
    bars = {f"as shipped, {best.closed.num_envs:,} environments": (1 / value.value, "1.0")}
    for gain, each in sorted(of_case, key=lambda pair: pair[1].value):
        bars[", ".join(gain.changes)] = (each.value / value.value, f"{each.value:.1f}")
    late = f"{best.runs_with_target} reached the reward of the settings as shipped"
    learned = (
        f"The reward of the settings as shipped comes {estimated(best.sooner)} times as soon, with one seed."
        if best.sooner
        else f"More frames are not more learning: {late}."
    )
    return Card(
        title=f"Settings gain more than GPUs: {task_name(best.case.task)} makes {value.value:.1f} times the frames",
        text=f"{ranks_text(best.case)}, {best.case.rl_library}, compared with the settings as shipped:"
        f" {estimated(value)}. {learned}",
        bars=bars,
        link="Tuned settings, and what they do to learning",
        address="division.html",
    )
