"""The steady part of a process: what the rule drops, what it keeps, and when it says that there is none."""

import random
import statistics

import pytest

from suite.statistics.steady import AT_LIMIT, MIN_STEADY, SETTLED_WITHIN, steady_window


def noisy(seed: int, *levels: float) -> list[float]:
    generator = random.Random(seed)  # noqa: S311  (the same numbers every time)
    return [level * (1 + 0.01 * generator.gauss(0, 1)) for level in levels]


@pytest.mark.parametrize("slow", [1, 2, 5, 9])
def test_a_step_down_is_found_where_it_is(slow: int) -> None:
    window = steady_window([3.0] * slow + [1.0] * (30 - slow))
    assert (window.start, window.stop, window.flag) == (slow, 30, None)
    assert slow <= steady_window(noisy(1, *[3.0] * slow, *[1.0] * (30 - slow))).start <= 15


@pytest.mark.parametrize(("count", "latest"), [(2, 1), (3, 1), (4, 1), (5, 1), (6, 2), (7, 3), (8, 4), (20, 10)])
def test_short_rounds_keep_what_they_can(count: int, latest: int) -> None:
    """The later an iteration the faster it is, so that the rule drops all it may."""
    window = steady_window([2.0 ** (count - index) for index in range(count)])
    assert (window.start, window.stop) == (latest, count)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_too_few_iterations_are_used_and_flagged(count: int) -> None:
    window = steady_window([9.0] + [1.0] * (count - 1))
    assert window.length == count - 1
    assert window.flag is not None
    assert steady_window([9.0] + [1.0] * MIN_STEADY).flag is None


@pytest.mark.parametrize("count", [0, 1])
def test_a_round_of_one_iteration_has_no_steady_part(count: int) -> None:
    window = steady_window([1.0] * count)
    assert window.length == 0
    assert window.of([1.0] * count) == ()


def test_times_that_go_on_falling_are_flagged() -> None:
    window = steady_window([0.9**index for index in range(20)])
    assert "41.0%" in (window.flag or "")


def test_a_warm_up_of_more_than_half_is_at_the_limit_and_has_not_settled() -> None:
    """The halves of what is left are alike, but a later start was never tried."""
    window = steady_window([3.0] * 16 + [1.0] * 14)
    assert (window.start, window.is_at_limit, window.is_level) == (15, True, True)
    assert window.flag == f"not steady: {AT_LIMIT}; more iterations are needed"
    earlier = steady_window([3.0] * 14 + [1.0] * 16)
    assert (earlier.start, earlier.is_at_limit, earlier.flag) == (14, False, None)


@pytest.mark.parametrize(("later", "steady"), [(1 + 0.9 * SETTLED_WITHIN, True), (1 + 1.1 * SETTLED_WITHIN, False)])
def test_the_halves_may_differ_by_so_much(later: float, steady: bool) -> None:
    # so few that the rule may not start later than the second
    assert (steady_window([9.0, 1.0, 1.0, later, later]).flag is None) == steady


@pytest.mark.parametrize("hiccup", [10, 25, 29])
def test_a_single_slow_iteration_decides_nothing(hiccup: int) -> None:
    times_s = [9.0, *noisy(6, *[1.3] * 7, *[1.0] * 22)]
    start = steady_window(times_s).start
    times_s[hiccup] *= 10
    window = steady_window(times_s)
    assert start >= 8
    assert window.start >= 8
    assert window.flag is None
    assert statistics.median(window.of(times_s)) == pytest.approx(1.0, abs=0.01)
