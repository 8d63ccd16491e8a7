"""Sections count what they should, by a clock whose every mark is one second after the last; and so does success."""

from typing import Any

import pytest


@pytest.mark.worker
def test_sections_count_each_call_once(parts: dict[str, Any]) -> None:
    """Each result is the time [s] and the number of calls."""
    assert parts["sections"] == {
        "never_called": [None, 0],  # not measured is not 0
        "returned": 7,
        "one_call": [1.0, 1],
        "nested_calls": [1.0, 1],  # the outer alone, without marks inside it
        "after_an_error": [2.0, 2],  # the one that failed too
        "discarded": [None, 0],
        "passed_on": [["first", 5], ["second", 6]],
        "two_sums": [4 * 5 + 2 * 6, 2.0, 2, 0],
        "not_counted": 0,
    }


@pytest.mark.worker
def test_success_is_of_as_many_episodes_as_there_are_environments(parts: dict[str, Any]) -> None:
    before, first, again, by_mask, more, last = parts["successes"]
    assert before is None  # not 0
    assert first == again == by_mask == 0.75  # the mean of four, not that of the last
    assert more == pytest.approx((0.5 * 2 + 0.0 + 1.0 * 3) / 6)  # the first three are the fourth
    assert last == pytest.approx((0.0 + 0.5 * 2) / 5)
