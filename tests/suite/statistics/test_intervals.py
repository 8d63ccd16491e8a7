import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from suite.statistics import stopping_rule as repeats
from suite.statistics.intervals import (
    CONFIDENCE,
    MAX_ROUNDS_OF_A_RANGE,
    MIN_ROUNDS_FOR_INTERVAL,
    estimate,
    held_by_range,
    median_interval,
    of_few_rounds,
    pairing_of,
    resampled_medians,
)


def test_interval_of_the_median_needs_three_rounds_and_is_repeatable() -> None:
    assert median_interval([1.0, 2.0]) is None
    assert median_interval([1.0, 2.0, 3.0]) == (1.0, 3.0)
    assert median_interval([2.0] * 5) == (2.0, 2.0)
    values = dict(enumerate([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 9.0]))
    other = dict.fromkeys(values, 1.0)
    ratios = [estimate([values, other], lambda medians: medians[0] / medians[1], "paired").interval for _ in range(2)]
    assert ratios[0] == ratios[1]
    assert ratios[0] is not None
    assert 1.0 < ratios[0][0] < 1.3 < ratios[0][1] < 9.0


@pytest.mark.parametrize("rounds", range(MIN_ROUNDS_FOR_INTERVAL, MAX_ROUNDS_OF_A_RANGE + 1))
def test_up_to_five_rounds_an_interval_is_their_range(rounds: int) -> None:
    values = [float(value) for value in range(rounds)]
    assert median_interval(values) == (values[0], values[-1])


@pytest.mark.parametrize("rounds", range(MAX_ROUNDS_OF_A_RANGE + 1, 15))
def test_with_more_rounds_the_interval_of_a_case_is_that_by_which_it_is_decided(rounds: int) -> None:
    """Only an interval of few rounds contains the true median less often than its level says."""
    values = [float(value) for value in range(1, rounds + 1)]
    low, high = median_interval(values) or (0.0, 0.0)
    assert (low, high) == repeats.exact_median_interval(values)
    below = low - 1  # values that are below the interval, and as many above
    missed = 2 * sum(math.comb(rounds, number) for number in range(int(below) + 1)) / 2**rounds
    assert 1 - missed >= CONFIDENCE
    fps = estimate([dict(enumerate(values))], lambda medians: 1 / medians[0], "unpaired")
    assert fps.interval == (1 / high, 1 / low)


@pytest.mark.parametrize("rounds", [3, 4, 5])
def test_the_range_of_few_rounds_holds_the_median_less_often_than_it_says(rounds: int) -> None:
    """Drawn: rounds in pairs, of which the true ratio is 1. Rounds alone have their range, as the tests above say."""
    generator = random.Random(rounds)  # noqa: S311 - rounds, not secrets
    draws = 300

    def spans_the_true_ratio() -> bool:
        common = [1 + 0.03 * generator.gauss(0, 1) for _ in range(rounds)]
        first, second = ({i: c * (1 + 0.02 * generator.gauss(0, 1)) for i, c in enumerate(common)} for _ in range(2))
        ratio = estimate([first, second], lambda medians: medians[1] / medians[0], "paired").interval
        assert ratio is not None
        return ratio[0] <= 1 <= ratio[1]

    assert sum(spans_the_true_ratio() for _ in range(draws)) / draws == pytest.approx(held_by_range(rounds), abs=0.05)


def test_what_few_rounds_are_worth_is_said_of_those_that_are_there() -> None:
    assert of_few_rounds([1, 2, 6, 10]) == ""
    said = of_few_rounds([1, 3, 3, 4, 10])
    assert said.endswith("with a probability below 95%: 75% with 3 rounds, 88% with 4 rounds.")


@dataclass(frozen=True, kw_only=True)
class Ran:
    times_s: Mapping[int, float]
    started: Mapping[int, datetime]


def ran(**minutes: int) -> Ran:
    """Rounds by number and the minute in which each began: ``r0=5``."""
    begin = datetime(2026, 11, 21, tzinfo=UTC)
    numbers = {int(name.removeprefix("r")): minute for name, minute in minutes.items()}
    return Ran(
        times_s=dict.fromkeys(numbers, 1.0),
        started={number: begin + timedelta(minutes=minute) for number, minute in numbers.items()},
    )


def test_rounds_are_paired_when_all_ran_the_same_round_by_round() -> None:
    assert pairing_of([ran(r0=0, r1=2), ran(r1=3, r0=1)]) == "paired"
    assert pairing_of([ran(r0=0, r1=3), ran(r0=1, r1=2)]) == "paired"  # the order within a round may change
    assert pairing_of([ran(r0=0, r1=1), ran(r0=2, r1=3)]) == "unpaired"  # one case after the other
    assert pairing_of([ran(r0=0, r1=2), ran(r0=1, r2=3)]) == "unpaired"
    assert pairing_of([ran(r0=0), replace(ran(r0=0), started={})]) == "unpaired"


def test_paired_rounds_are_drawn_together() -> None:
    one = {0: 1.0, 1: 2.0, 2: 4.0}
    ten = {index: 10 * value for index, value in one.items()}
    drawn = resampled_medians([one, ten], "paired")
    assert drawn is not None
    assert {high / low for low, high in drawn} == {10.0}
    apart = resampled_medians([one, ten], "unpaired")
    assert apart is not None
    assert {high / low for low, high in apart} > {10.0}


def test_different_rounds_cannot_be_paired() -> None:
    rounds = {0: 1.0, 1: 2.0, 2: 4.0}
    with pytest.raises(ValueError, match="cannot be paired"):
        resampled_medians([rounds, {1: 1.0, 2: 2.0, 3: 4.0}], "paired")


def test_too_few_rounds_of_one_sample_are_no_interval() -> None:
    found = estimate([{0: 2.0, 1: 4.0}, {0: 1.0, 1: 1.0, 2: 1.0}], lambda medians: medians[0] / medians[1], "unpaired")
    assert (found.value, found.interval) == (3.0, None)
