"""Intervals over rounds: which medians other processes could have given. Pure; the seed is fixed.

One case with enough rounds has the exact interval of ``suite.statistics.stopping_rule``, by which a campaign also
decides when to stop. A bootstrap would be worse: with seven rounds, its interval contains the true median in 88 % of
cases, less often than with five. All other intervals are bootstrap percentile intervals. The same results give the same
report. An interval of few rounds is too narrow: with three rounds it is their range, and the true median lies inside it
three times out of four, not 19 times out of 20.
"""

import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Final, Literal, Protocol

from suite.statistics.stopping_rule import exact_median_interval

CONFIDENCE: Final = 0.95
MIN_ROUNDS_FOR_INTERVAL: Final = 3  # two rounds show only their difference
MAX_ROUNDS_OF_A_RANGE: Final = 5  # up to here an interval is from the fastest round to the slowest
BOOTSTRAP_RESAMPLES: Final = 2000

type Interval = tuple[float, float]
type Rounds = Mapping[int, float]  # number of the round -> its value
type Pairing = Literal["paired", "unpaired"]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value with its interval at ``CONFIDENCE``, which is None for too few rounds."""

    value: float
    interval: Interval | None


class Timed(Protocol):
    """Times and starts of rounds, by the number of the round."""

    @property
    def times_s(self) -> Rounds: ...

    @property
    def started(self) -> Mapping[int, datetime]: ...


def pairing_of(samples: Sequence[Timed]) -> Pairing:
    """``paired`` if all completed the same rounds, and every round r started before any round r + 1.

    A disturbance of the machine during a round then affects all of them, so their rounds are drawn together. Otherwise
    the numbers of rounds mean nothing, and each sample is drawn by itself.
    """
    numbers = {frozenset(sample.times_s) for sample in samples}
    if len(numbers) != 1 or any(sample.times_s.keys() - sample.started.keys() for sample in samples):
        return "unpaired"
    starts = [[sample.started[number] for sample in samples] for number in sorted(samples[0].times_s)]
    return "paired" if all(max(one) < min(following) for one, following in pairwise(starts)) else "unpaired"


def resampled_medians(samples: Sequence[Rounds], pairing: Pairing) -> tuple[tuple[float, ...], ...] | None:
    """Draw one median per sample, ``BOOTSTRAP_RESAMPLES`` times; None if a sample has too few rounds.

    Raises ValueError for ``paired`` samples of different rounds.
    """
    if min(map(len, samples), default=0) < MIN_ROUNDS_FOR_INTERVAL:
        return None
    if pairing == "paired" and len({frozenset(rounds) for rounds in samples}) > 1:
        rounds = "; ".join(str(sorted(sample)) for sample in samples)
        raise ValueError(f"samples of different rounds cannot be paired: {rounds}")
    return _medians(tuple(tuple(sample[number] for number in sorted(sample)) for sample in samples), pairing)


@lru_cache(maxsize=256)  # a page's table, its figure and other pages need the same medians
def _medians(values: tuple[tuple[float, ...], ...], pairing: Pairing) -> tuple[tuple[float, ...], ...]:
    # Few rounds can be drawn only in few ways.
    median_of = [cache(partial(_median, own)) for own in values]
    return tuple(
        tuple(median(places) for median, places in zip(median_of, drawn, strict=True))
        for drawn in _draws(tuple(map(len, values)), pairing)
    )


@lru_cache(maxsize=256)
def _draws(lengths: tuple[int, ...], pairing: Pairing) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Draw places of rounds for samples of these lengths, ``BOOTSTRAP_RESAMPLES`` times; always the same draws."""
    generator = random.Random(0)  # noqa: S311 - resampling, not secrets
    places = [range(length) for length in lengths]

    def draw() -> tuple[tuple[int, ...], ...]:
        if pairing == "paired":
            return (tuple(generator.choices(places[0], k=lengths[0])),) * len(lengths)
        return tuple(tuple(generator.choices(rounds, k=len(rounds))) for rounds in places)

    return tuple(draw() for _ in range(BOOTSTRAP_RESAMPLES))


def resampled_rounds(samples: Sequence[Timed]) -> tuple[tuple[tuple[int, ...], ...], ...] | None:
    """Draw numbers of rounds for each sample, ``BOOTSTRAP_RESAMPLES`` times; None if a sample has too few rounds."""
    numbers = [sorted(sample.times_s) for sample in samples]
    if min(map(len, numbers), default=0) < MIN_ROUNDS_FOR_INTERVAL:
        return None
    return tuple(
        tuple(tuple(own[place] for place in places) for own, places in zip(numbers, drawn, strict=True))
        for drawn in _draws(tuple(map(len, numbers)), pairing_of(samples))
    )


def _median(values: Sequence[float], places: Sequence[int]) -> float:
    return statistics.median([values[place] for place in places])


def percentile_interval(values: Sequence[float]) -> Interval:
    """The middle ``CONFIDENCE`` of resampled values."""
    ordered = sorted(values)
    tail = round(len(ordered) * (1 - CONFIDENCE) / 2)
    return ordered[tail], ordered[-tail - 1]


def estimate(samples: Sequence[Rounds], statistic: Callable[[tuple[float, ...]], float], pairing: Pairing) -> Estimate:
    """Estimate ``statistic`` of the samples' medians. For a single sample it must be monotonic.

    Raises ValueError for an empty sample, and as ``resampled_medians`` does.
    """
    medians = tuple(statistics.median(rounds.values()) for rounds in samples)
    exact = exact_median_interval(list(samples[0].values())) if len(samples) == 1 else None
    if exact is not None:
        low, high = sorted(statistic((bound,)) for bound in exact)
        return Estimate(value=statistic(medians), interval=(low, high))
    resampled = resampled_medians(samples, pairing)
    interval = None if resampled is None else percentile_interval([statistic(drawn) for drawn in resampled])
    return Estimate(value=statistic(medians), interval=interval)


def median_interval(values: Sequence[float]) -> Interval | None:
    """The interval of the median of ``values``; None for fewer than ``MIN_ROUNDS_FOR_INTERVAL``."""
    return estimate([dict(enumerate(values))], lambda medians: medians[0], "unpaired").interval if values else None


def held_by_range(rounds: int) -> float:
    """Probability that the range of this many rounds contains the true median: not all of them lie on one side."""
    return 1 - 2.0 ** (1 - rounds)


def of_few_rounds(numbers: Iterable[int]) -> str:
    """A sentence on how reliable intervals of few rounds are; empty if none has so few.

    The probabilities are exact for one case and for paired rounds, and a little too low for unpaired ones.
    """
    few = sorted({number for number in numbers if MIN_ROUNDS_FOR_INTERVAL <= number <= MAX_ROUNDS_OF_A_RANGE})
    if not few:
        return ""
    probabilities = ", ".join(f"{held_by_range(number):.0%} with {number} rounds" for number in few)
    inside = f"The true median lies inside it with a probability below {CONFIDENCE:.0%}"
    return f"The interval of a few rounds is their range. {inside}: {probabilities}."
