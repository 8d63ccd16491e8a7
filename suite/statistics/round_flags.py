"""Flag what is odd about the rounds of a case: their times, CPU time used by others, warnings of ranks. Pure.

A flag is a sentence for the reader. It rejects nothing: the numbers stay as they are.
"""

import itertools
import random
import statistics
from collections.abc import Sequence
from functools import cache
from typing import Final

from suite.files.wording import listed
from suite.schema.record import RunRecord
from suite.statistics.reduce import round_time_s

MIN_ROUNDS: Final = 5  # with fewer rounds, no order of them is rarer than 5 %
# Of all cores. The services of a quiet host and the launcher take under 1 %; a busy loop took 34 to 50 % of two.
OTHERS_PERCENT: Final = 5.0
MATTERS: Final = 0.01  # relative; smaller gaps and drifts may be real but change no conclusion
DRIFT_LEVEL: Final = 0.05
GAP_LEVEL: Final = 0.01
_NORMAL_SAMPLES: Final = 2000


def flags(records: Sequence[RunRecord]) -> tuple[str, ...]:
    """All flags of the completed rounds of one case, a sentence each.

    Raises ValueError if a completed round has no number, as ``suite.statistics.reduce.round_time_s`` does.
    """
    completed = [record for record in records if record.counts]
    started = sorted(completed, key=lambda record: (record.started_utc or "", record.round))
    times_s = [round_time_s(record) for record in started]
    found = [bimodal(times_s), drifting(times_s), stolen(completed), shared(completed)]
    found += warned(completed)
    return tuple(flag for flag in found if flag)


def bimodal(times_s: Sequence[float]) -> str | None:
    """Flag two groups of rounds, one of which may be a single round.

    The rule: the largest gap between sorted neighbours is over 1 % of the median, and a larger part of the range than
    in 99 % of normal samples of that size (2000 samples with a fixed seed). None for fewer than 5 rounds.
    """
    if len(times_s) < MIN_ROUNDS:
        return None
    ordered = sorted(times_s)
    gap_s, above = max((high - low, index) for index, (low, high) in enumerate(itertools.pairwise(ordered), start=1))
    if gap_s <= MATTERS * statistics.median(ordered):
        return None
    if gap_s / (ordered[-1] - ordered[0]) <= _usual_largest_gap(len(ordered)):
        return None
    low, high = ordered[:above], ordered[above:]
    return (
        f"bimodal: {len(low)} rounds around {statistics.median(low):.4g} s and {len(high)} around "
        f"{statistics.median(high):.4g} s ({statistics.median(high) / statistics.median(low) - 1:+.1%})"
    )


def drifting(times_s: Sequence[float]) -> str | None:
    """Flag a trend in ``times_s``, which are in the order in which the rounds started.

    The rule: Kendall's rank correlation of time and order has an exact two-sided permutation p below 0.05, and the
    Theil-Sen line changes by over 1 % of the median from the first round to the last. None for fewer than 5 rounds.
    """
    if len(times_s) < MIN_ROUNDS:
        return None
    slopes = [(later - earlier) / (j - i) for (i, earlier), (j, later) in itertools.combinations(enumerate(times_s), 2)]
    change = statistics.median(slopes) * (len(times_s) - 1) / statistics.median(times_s)
    p = trend_p_value(times_s)
    if p >= DRIFT_LEVEL or abs(change) <= MATTERS:
        return None
    return f"drifting: {change:+.1%} from the first round to the last in the order they started (p = {p:.3f})"


def trend_p_value(values: Sequence[float]) -> float:
    """Exact two-sided permutation p of Kendall's rank correlation of ``values`` with their order.

    The null distribution is that of the number of inversions of a permutation. Equal values count as half an inversion,
    rounded towards no trend, so with them p is too large rather than too small.
    """
    pairs = len(values) * (len(values) - 1) // 2
    inversions = sum((a > b) + (a == b) / 2 for a, b in itertools.combinations(values, 2))
    extreme = int(min(inversions, pairs - inversions) + 0.5)
    counts = _inversion_counts(len(values))
    return min(1.0, 2 * sum(counts[: extreme + 1]) / sum(counts))


def stolen(completed: Sequence[RunRecord]) -> str | None:
    """Flag the rounds in which a hypervisor withheld CPU time from the machine."""
    shares = stolen_shares(completed)
    if not shares:
        return None
    most = max(shares.values())
    return f"{listed('round', [*shares])}: a hypervisor gave up to {most:.1%} of the CPU time in use here to others"


def stolen_shares(completed: Sequence[RunRecord]) -> dict[int, float]:
    """Return number -> share of the wanted CPU time of the rounds in which a hypervisor withheld some that matters."""
    counted = {record.round: record.telemetry.stolen_share for record in completed if record.telemetry}
    return {number: share for number, share in counted.items() if share is not None and share > MATTERS}


def shared(completed: Sequence[RunRecord]) -> str | None:
    """Flag the rounds during which other processes used the host."""
    found = others_percent(completed)
    if not found:
        return None
    return f"{listed('round', [*found])}: other processes took up to {max(found.values()):.0f}% of the host's CPU time"


def others_percent(completed: Sequence[RunRecord]) -> dict[int, float]:
    """Return number -> percent of all cores that other processes used, of the rounds in which that is much."""
    counted = {record.round: record.telemetry.host_others_percent for record in completed if record.telemetry}
    return {number: percent for number, percent in counted.items() if percent is not None and percent > OTHERS_PERCENT}


def warned(completed: Sequence[RunRecord]) -> list[str]:
    """Flag the warnings of ranks about their own work: for each kind its rounds and its first message."""
    found: dict[str, dict[int, str]] = {}
    for record in completed:
        for rank in record.ranks:
            for check in (check for check in rank.validity if check.verdict == "warning"):
                said = f"rank {rank.rank} says of {check.name}: {check.found}"
                found.setdefault(check.fault or check.name, {}).setdefault(record.round, said)
    return [f"{listed('round', [*said])}: {next(iter(said.values()))}" for said in found.values()]


def _inversion_counts(size: int) -> list[int]:
    """Count the permutations of ``size`` items that have 0, 1, 2, … inversions."""
    counts = [1]
    for items in range(2, size + 1):
        longer = [0] * (len(counts) + items - 1)
        for inversions, count in enumerate(counts):
            for more in range(items):
                longer[inversions + more] += count
        counts = longer
    return counts


@cache
def _usual_largest_gap(size: int) -> float:
    """The part of the range that the largest gap does not exceed, except in ``GAP_LEVEL`` of normal samples."""
    generator = random.Random(0)  # noqa: S311  (no secret, and the same answer every time)
    shares = []
    for _ in range(_NORMAL_SAMPLES):
        ordered = sorted(generator.gauss(0, 1) for _ in range(size))
        shares.append(max(high - low for low, high in itertools.pairwise(ordered)) / (ordered[-1] - ordered[0]))
    return sorted(shares)[int((1 - GAP_LEVEL) * _NORMAL_SAMPLES)]
