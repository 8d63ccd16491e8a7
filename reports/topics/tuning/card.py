"""What tuned settings gain, as a card of the first page."""

from collections.abc import Sequence

from reports.analysis.curves import task_name
from reports.analysis.divisions import Gain, gains
from reports.display.card import Card
from reports.display.html import estimated
from reports.sets.version import Version
from suite.statistics.intervals import Estimate


def card(version: Version) -> Card | None:
    """Of the case as shipped that gains most; None if no gain is more than noise."""
    found = [gain for one in version.scaling for gain in gains(one.campaign.results, one.campaign.twins)]
    sure = [(gain, gain.gain) for gain in found if gain.gain and gain.gain.interval and gain.gain.interval[0] > 1]
    sure = [(gain, value) for gain, value in sure if gain.noise is None or value.value > 1 + gain.noise]
    if not sure:
        return None
    best, value = max(sure, key=lambda each: each[1].value)
    return _card(best, value, [each for each in sure if each[0].closed == best.closed])


def _card(best: Gain, value: Estimate, of_case: Sequence[tuple[Gain, Estimate]]) -> Card:
    bars = {f"as shipped, {best.closed.num_envs:,} environments": (1 / value.value, "1.0")}
    for gain, each in sorted(of_case, key=lambda pair: pair[1].value):
        bars[", ".join(gain.changes)] = (each.value / value.value, f"{each.value:.1f}")
    late = f"{best.runs_with_target} reached the reward of the settings as shipped"
    learned = (
        f"The reward of the settings as shipped comes {estimated(best.sooner)} times sooner, with one seed."
        if best.sooner
        else f"More frames are not more learning: {late}."
    )
    return Card(
        title=f"Settings gain more than GPUs: {task_name(best.case.task)} makes {value.value:.1f} times the frames",
        text=f"One GPU, {best.case.rl_library}, beside the settings as shipped: {estimated(value)}. {learned}",
        bars=bars,
        link="Tuned settings, and what they do to learning",
        address="division.html",
    )
