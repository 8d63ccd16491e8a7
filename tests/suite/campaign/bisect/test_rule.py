"""The bisection of releases, on simulated ones whose times are known."""

import math
import random
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import pytest

from suite.campaign.bisect import Answer, Change, Step, next_releases
from suite.statistics.intervals import Estimate
from suite.statistics.series_model import RunTime, SeriesModel

ROUNDS = 6


SPREAD = 0.03  # standard deviation of a process's logarithm


SEARCHES = 200


class Processes:
    """Times of processes, drawn around the true ones."""

    def __init__(self, times_s: Mapping[str, float], seed: int) -> None:
        self._true_s = times_s
        self._random = random.Random(seed)  # noqa: S311

    def _drawn_s(self, release: str) -> tuple[float, ...]:
        return tuple(self._true_s[release] * math.exp(self._random.gauss(0, SPREAD)) for _ in range(ROUNDS))

    def measure(self, releases: Sequence[str]) -> Step:
        times_s = {release: self._drawn_s(release) for release in releases}
        runs = [
            RunTime(configuration=release, block=block, log_time=math.log(time_s), log_probe=None)
            for release, of_release in times_s.items()
            for block, time_s in enumerate(of_release)
        ]
        return Step.of(times_s, SeriesModel(runs).ratio)

    def answer(self) -> Answer:
        steps: list[Step] = []
        while not isinstance(found := next_releases(list(self._true_s), steps), Answer):
            steps.append(self.measure(found))
        return found


RELEASES = tuple(f"1.{minor}.0" for minor in range(9))


def change(older: str, newer: str, value: float, half_width: float = 0.01) -> Change:
    ratio = Estimate(value=value, interval=(value - half_width, value + half_width))
    return Change(older=older, newer=newer, ratio=ratio)


def exact(times_s: Mapping[str, float], releases: Sequence[str]) -> Step:
    """A step whose ratios are those of the true times."""
    changes = tuple(change(old, new, times_s[old] / times_s[new]) for old, new in pairwise(releases))
    return Step(releases=tuple(releases), changes=changes)


def searched(times_s: Mapping[str, float], broken: Collection[str] = ()) -> tuple[Answer, list[tuple[str, ...]]]:
    """The answer for releases with these true times, and what was measured."""
    steps: list[Step] = []
    skipped: set[str] = set()
    while not isinstance(found := next_releases(list(times_s), steps, skipped), Answer):
        if failing := {*found} & {*broken}:
            skipped |= failing
        else:
            steps.append(exact(times_s, found))
    return found, [step.releases for step in steps]


@pytest.mark.parametrize("at", range(1, len(RELEASES)))
def test_the_pair_is_found_wherever_it_is(at: int) -> None:
    found, measured = searched({one: 1.0 if place < at else 1.2 for place, one in enumerate(RELEASES)})
    assert found.verdict == "found"
    assert found.change is not None
    assert (found.change.older, found.change.newer) == (RELEASES[at - 1], RELEASES[at])
    assert len(measured) <= 1 + math.ceil(math.log2(len(RELEASES) - 1))
    assert measured[:2] == [("1.0.0", "1.8.0"), ("1.0.0", "1.4.0", "1.8.0")]


@pytest.mark.parametrize("newest_s", [1.0, 1.005, 0.8])
def test_without_a_slower_end_nothing_more_is_measured(newest_s: float) -> None:
    found, measured = searched({**dict.fromkeys(RELEASES, 1.3), "1.0.0": 1.0, "1.8.0": newest_s})
    assert (found.verdict, measured) == ("not slower", [("1.0.0", "1.8.0")])


def test_what_cannot_be_run_is_passed_over_and_named_where_it_matters() -> None:
    times_s = {one: 1.0 if place < 5 else 1.2 for place, one in enumerate(RELEASES)}
    found, measured = searched(times_s, broken={"1.0.0", "1.4.0", "1.5.0", "1.8.0"})
    assert measured == [("1.1.0", "1.7.0"), ("1.1.0", "1.3.0", "1.7.0"), ("1.3.0", "1.6.0", "1.7.0")]
    assert found.change is not None
    assert (found.verdict, found.change.older, found.change.newer) == ("found", "1.3.0", "1.6.0")
    assert found.skipped == ("1.4.0", "1.5.0")


def test_fewer_than_two_that_run_have_no_answer() -> None:
    found, measured = searched(dict.fromkeys(RELEASES, 1.0), broken=RELEASES[1:])
    assert (found.verdict, found.change, measured) == ("too few", None, [])


def test_of_two_slower_halves_the_larger_change_is_followed() -> None:
    times_s = {"1": 1.0, "2": 1.05, "3": 1.05, "4": 1.3, "5": 1.3}
    found, _ = searched(times_s)
    assert found.change is not None
    assert (found.change.older, found.change.newer) == ("3", "4")


def test_a_change_in_two_small_parts_ends_with_the_range_that_is_sure() -> None:
    found, measured = searched({"1": 1.0, "2": 1.008, "3": 1.016})
    assert measured == [("1", "3"), ("1", "2", "3")]
    assert found.change is not None
    assert (found.verdict, found.change.older, found.change.newer, found.middle) == ("unsure", "1", "3", "2")


def test_a_large_difference_is_found_and_rarely_at_another_pair() -> None:
    times_s = {one: 1.0 if place < 6 else 1.25 for place, one in enumerate(RELEASES)}
    answers = [Processes(times_s, seed).answer() for seed in range(SEARCHES)]
    named = [(one.change.older, one.change.newer) for one in answers if one.verdict == "found" and one.change]
    assert len(named) >= 0.95 * SEARCHES
    assert sum(pair != ("1.5.0", "1.6.0") for pair in named) <= 0.05 * SEARCHES
