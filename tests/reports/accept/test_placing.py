"""Where a value stands among those of other machines."""

from collections.abc import Sequence

import pytest

from reports.accept.parts import Word, placed

OTHERS = {"a": (1.0, 1.1, 1.21), "b": (1.5,), "c": (1.3, 2.925)}  # geometric means 1.1, 1.5, 1.95


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ((2.0, 2.01, 2.02), "slow"),
        ((1.9, 2.0, 2.1), "within"),  # its interval reaches into the range
        ((1.4, 1.5, 1.6), "within"),
        ((1.0, 1.1, 1.2), "within"),
        ((1.0, 1.001, 1.002), "fast"),
        ((9.0, 9.0), "open"),
    ],
)
def test_only_a_whole_interval_beyond_all_machines_is_slow_or_fast(values: Sequence[float], word: Word) -> None:
    place = placed(values, OTHERS)
    assert (place.word, place.runs) == (word, len(values))
    assert (min(place.others.values()), place.middle, place.slowest) == pytest.approx((1.1, 1.5, 1.95))


def test_an_interval_says_from_which_slowness_on_it_would_show_and_what_it_may_hide() -> None:
    assert placed((2.0, 2.0, 2.0), OTHERS).would_see == pytest.approx(1.95 / 1.5 - 1)
    assert placed((1.4, 1.5, 1.6), OTHERS).hides is None
    wide = placed((1.0, 1.5, 2.25), OTHERS)  # from 0.55 to 4.1
    assert wide.word == "within"
    assert wide.hides == pytest.approx(1.74, abs=0.01)


def test_without_another_machine_nothing_is_said() -> None:
    place = placed((1.0, 1.0, 1.0), {})
    assert (place.word, place.middle, place.over_slowest, place.added) == ("open", None, 0.0, None)


def test_a_share_that_may_be_0_is_placed_by_its_range() -> None:
    never = {"a": (0.0, 0.0), "b": (0.0,)}
    assert placed((0.0, 0.0, 0.0), never).word == "within"
    assert placed((0.0, 8.0, 9.0), never).word == "within"
    throttled = placed((4.0, 8.0, 16.0), never)
    assert (throttled.word, throttled.over_slowest) == ("slow", 0.0)
    assert throttled.added == pytest.approx(8.0)
