"""Flag what is odd about the rounds of a case: their times, CPU time used by others, warnings of ranks. Pure.

A flag is a sentence for the reader. It rejects nothing: the numbers stay as they are.
"""

import itertools
import random
import statistics
from collections.abc import Iterator, Sequence
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
    of_times = filter(None, (bimodal(times_s), drifting(times_s)))
    return (*of_times, *short_of_cpu_time(completed), *warned(completed))


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
        f"bimodal: {len(low)} runs around {statistics.median(low):.4g} s and {len(high)} around "
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
    return f"drifting: {change:+.1%} from the first run to the last in the order they started (p = {p:.3f})"


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


def short_of_cpu_time(completed: Sequence[RunRecord]) -> Iterator[str]:
    """Flag the rounds in which a hypervisor withheld CPU time, and those during which other processes used the host."""
    telemetry = {record.round: record.telemetry for record in completed if record.telemetry}
    shares = {number: seen.stolen_share for number, seen in telemetry.items()}
    stolen = {number: share for number, share in shares.items() if share is not None and share > MATTERS}
    if stolen:
        most = f"a hypervisor gave up to {max(stolen.values()):.1%} of the CPU time in use here to others"
        yield f"{listed('run', [*stolen])}: {most}"
    percents = {number: seen.host_others_percent for number, seen in telemetry.items()}
    others = {number: share for number, share in percents.items() if share is not None and share > OTHERS_PERCENT}
    if others:
        most = f"other processes took up to {max(others.values()):.0f}% of the machine's CPU time"
        yield f"{listed('run', [*others])}: {most}"


def warned(completed: Sequence[RunRecord]) -> list[str]:
    """Flag the warnings of ranks about their own work: for each kind its rounds and its first message."""
    warnings: dict[str, dict[int, str]] = {}
    for record in completed:
        for rank in record.ranks:
            for check in (check for check in rank.validity if check.verdict == "warning"):
                message = f"rank {rank.rank} says of {check.name}: {check.found}"
                warnings.setdefault(check.fault or check.name, {}).setdefault(record.round, message)
    return [f"{listed('run', [*messages])}: {next(iter(messages.values()))}" for messages in warnings.values()]


def _inversion_counts(size: int) -> list[int]:
    """Count the permutations of ``size`` items that have 0, 1, 2, … inversions."""
    counts = [1]
    for items in range(2, size + 1):  # one more item adds up to ``items - 1`` inversions
        counts = [sum(counts[max(0, most - items + 1) : most + 1]) for most in range(len(counts) + items - 1)]
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
