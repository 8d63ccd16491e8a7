"""Whether a group of cases scales, in one word with its reason. Pure.

The rule, in this order:

1. ``above ideal``: at some number of ranks the whole interval of the efficiency is above ``SUPERLINEAR_EFFICIENCY``.
   That is mostly a mistake: environments per GPU counted as all of them, or a baseline that was disturbed.
2. ``failed``: no round of the largest number of ranks, or of the baseline, completed.
3. ``too few runs``: the efficiency there has no interval.
4. ``at least 80 %`` or ``below 80 %``: the whole interval lies on that side. The law that describes the points says
   what limits the efficiency.
5. ``within noise``: the interval contains 80 %.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from reports.analysis.scaling.scaling_groups import ScalingGroup, point_efficiency
from reports.analysis.scaling.scaling_laws import SUPERLINEAR_EFFICIENCY, Fit, NoFit, fit
from suite.files.wording import counted
from suite.statistics.intervals import Estimate
from suite.statistics.series_model import MIN_FREEDOM
from suite.statistics.speed import SCALES_EFFICIENCY, Side, side_of

type Word = Side | Literal["failed", "above ideal"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """``efficiency`` is the one at ``world_size`` that decided; None where there is none to speak of."""

    word: Word | None  # None for one number of ranks
    text: str  # the word as it is shown, with what to do where there is something
    reason: str
    world_size: int | None
    efficiency: Estimate | None


def verdict(group: ScalingGroup) -> Verdict:
    """By the rule of this module."""
    efficiencies = {
        point.world_size: efficiency
        for point in group.points[1:]
        if (efficiency := point_efficiency(group, point)) is not None
    }
    for world_size, efficiency in efficiencies.items():
        if efficiency.interval is not None and efficiency.interval[0] > SUPERLINEAR_EFFICIENCY:
            return _verdict(
                "above ideal",
                f"more than {SUPERLINEAR_EFFICIENCY:.2f} of ideal at {world_size} ranks",
                (world_size, efficiency),
                advice="check per-GPU versus global environments",
            )
    if len(group.points) == 1:
        why = f"only {group.baseline.world_size} was measured, and scaling needs two numbers of ranks"
        return _verdict(None, why, None)
    for point in (group.baseline, group.points[-1]):
        if not point.times_s:
            return _verdict("failed", f"no round of {_ranks(point.world_size)} completed", None)
    largest = group.points[-1].world_size
    efficiency = efficiencies[largest]
    said = _of_largest(group, largest, efficiency)
    return replace(said, reason=said.reason + _by_other_windows(group, said.word))


def _of_largest(group: ScalingGroup, largest: int, efficiency: Estimate) -> Verdict:
    side, decided = side_of(efficiency), (largest, efficiency)
    if efficiency.interval is None:
        return _verdict(side, f"an interval needs {MIN_FREEDOM} degrees of freedom", decided)
    low, high = efficiency.interval
    if side == "at least 80 %":
        return _verdict(side, f"at least {SCALES_EFFICIENCY:.2f} of ideal at {largest} ranks", decided)
    if side == "below 80 %":
        slower = high * largest < group.baseline.world_size  # not even the frames of the fewest ranks
        loss = f"; {_ranks(largest)} are slower than {group.baseline.world_size}" if slower else ""
        return _verdict(side, limit(group) + loss, decided)
    reason = f"the interval at {largest} ranks, {low:.1%} to {high:.1%}, contains {SCALES_EFFICIENCY:.0%}"
    return _verdict(side, reason, decided)


def _by_other_windows(group: ScalingGroup, word: Word | None) -> str:
    """Which other verdict the largest number of ranks has if more or fewer of the first iterations are left out."""
    largest, ideal = group.points[-1], group.points[-1].world_size / group.baseline.world_size
    found = {
        share: side_of(speedup.mapped(lambda times: times / ideal)) for share, speedup in largest.speedup_over.items()
    }
    return "".join(
        f"; {other} by the last {share:.0%} of the iterations" for share, other in found.items() if other != word
    )


def limit(group: ScalingGroup) -> str:
    """What keeps ``group`` from scaling, as far as a law describes its points, see ``limiting_law``."""
    serial = limiting_law(group)
    if isinstance(serial, Fit) and serial.law == "usl":
        peak, kappa = serial.parameters["peak_world_size"], serial.parameters["kappa"]
        return (
            f"by what every rank has to do with every other (universal scalability law, kappa {_words(kappa)}):"
            f" throughput is predicted to peak at {_ranks(round(peak.value))}"
        )
    if isinstance(serial, NoFit):
        return f"by what is not known: {serial.reason}"
    fraction = serial.parameters["serial_fraction"]
    if not serial.describes:
        return f"by what is not known: {serial.law.capitalize()}'s law misses a point by {serial.worst_residual:.0%}"
    if serial.law == "gustafson":
        return f"by a part that does not grow with the ranks (Gustafson, serial fraction {_words(fraction)})"
    most = 1 / fraction.value if fraction.value else math.inf
    return f"by a serial part (Amdahl, serial fraction {_words(fraction)}): at most {most:.1f} times one rank"


def limiting_law(group: ScalingGroup) -> Fit | NoFit:
    """The law that says what keeps ``group`` from scaling; the special one is tried first.

    Communication that grows with every rank (kappa of the universal scalability law) is named only when its interval
    excludes zero: any curve is fitted better by one more coefficient. It is of one rank's own time, so where the law
    leaves that none it is infinite and says nothing.
    """
    usl = fit("usl", group)
    if isinstance(usl, Fit) and usl.describes and _surely_positive(usl.parameters["kappa"]):
        return usl
    return fit("amdahl" if group.scaling == "strong" else "gustafson", group)


def _ranks(world_size: int) -> str:
    return counted(world_size, "rank")


def _surely_positive(value: Estimate) -> bool:
    return value.interval is not None and value.interval[0] > 0 and math.isfinite(value.interval[1])


def _words(value: Estimate) -> str:
    if value.interval is None:
        return f"{value.value:.3g}"
    return f"{value.value:.3g} ({value.interval[0]:.3g} to {value.interval[1]:.3g})"


def _verdict(
    word: Word | None, reason: str, decided: tuple[int, Estimate] | None, *, advice: str | None = None
) -> Verdict:
    world_size, efficiency = decided or (None, None)
    text = (word or "none") if advice is None else f"{word}: {advice}"
    return Verdict(word=word, text=text, reason=reason, world_size=world_size, efficiency=efficiency)
