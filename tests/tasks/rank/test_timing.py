"""Sections count what they should, by a clock whose every mark is one second after the last."""

import pytest

from suite.install.worker import Worker
from tests.fixtures.runs.worker_probes import probe


@pytest.mark.worker
def test_sections_count_each_call_once(worker: Worker) -> None:
    """Each result is the time [s] and the number of calls."""
    assert probe(worker, "parts")["sections"] == {
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
