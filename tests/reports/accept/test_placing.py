"""Where a value stands among those of other machines."""

from collections.abc import Sequence

import pytest

from reports.accept.parts import Word, placed

OTHERS = {"a": (1.0, 1.1, 5.0), "b": (1.5,), "c": (2.0, 1.9)}  # medians 1.1, 1.5, 1.95


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ((2.0, 2.01, 2.02), "slow"),
        ((1.9, 2.0, 2.1), "within"),  # its interval reaches into the range
        ((1.4, 1.5, 1.6), "within"),
        ((1.0, 1.1, 1.2), "within"),
        ((1.0, 1.001, 1.002), "fast"),
        ((9.0, 9.0), "open"),
        ((), "open"),
    ],
)
def test_only_a_whole_interval_beyond_all_machines_is_slow_or_fast(values: Sequence[float], word: Word) -> None:
    found = placed(values, OTHERS)
    assert found.word == word
    assert (found.quickest, found.middle, found.slowest) == (1.1, 1.5, 1.95)
    assert found.runs == len(values)


def test_without_another_machine_nothing_is_said() -> None:
    for others in ({}, {"a": ()}):
        found = placed((1.0, 1.0, 1.0), others)
        assert (found.word, found.quickest, found.over_slowest, found.added) == ("open", None, None, None)


def test_a_share_that_may_be_0_is_placed_by_its_range() -> None:
    never = {"a": (0.0, 0.0), "b": (0.0,)}
    assert placed((0.0, 0.0, 0.0), never).word == "within"
    assert placed((0.0, 8.0, 9.0), never).word == "within"
    throttled = placed((4.0, 8.0, 16.0), never)
    assert (throttled.word, throttled.over_slowest) == ("slow", None)
    assert throttled.added == pytest.approx(8.0)
