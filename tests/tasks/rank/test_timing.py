"""Sections count what they should, by a clock whose every mark is one second after the last."""

import pytest

from suite.install.worker import Worker
from tests.fixtures.runs.worker_probes import probe


@pytest.mark.worker
def test_sections_count_each_call_once(worker: Worker) -> None:
    results = probe(worker, "timing")["sections"]
    assert results["never_called"] == {"time_s": None, "calls": 0}  # not measured is not 0
    assert (results["returned"], results["one_call"]) == (7, {"time_s": 1.0, "calls": 1})
    assert results["nested_calls"] == {"time_s": 1.0, "calls": 1}  # the outer alone, without marks inside it
    assert results["after_an_error"] == {"time_s": 2.0, "calls": 2}  # the one that failed too
    assert results["discarded"] == {"time_s": None, "calls": 0}
    assert results["passed_on"] == [["first", 5], ["second", 6]]
    assert results["two_sums"] == [4 * 5 + 2 * 6, {"time_s": 2.0, "calls": 2}, 0]
    assert results["not_counted"] == 0
