"""Intervals of ratios contain the truth as often as they say, of stored runs and of simulated ones."""

import pytest

from reports.figures import coverage
from tests.fixtures.results.committed_results import committed_version, newest_version

LEAST = 0.93  # of intervals at 95 %


def test_intervals_contain_the_truth() -> None:
    figures = coverage.coverage_values([newest_version(), committed_version()])
    contain = {name.split("/")[1]: value for name, value in figures.items() if name.endswith("/contain")}
    assert len(contain) == 6
    assert {check: value for check, value in contain.items() if value < LEAST} == {}
    assert figures["coverage/halves/ratios"] > 500
    assert figures["coverage/halves/half_width"] < 0.6 * figures["coverage/halves/unpaired_half_width"]
    # If runs were added: `python -m reports.figures.coverage reports/results`.
    assert {name: row["value"] for name, row in coverage.stored().items()} == pytest.approx(figures, rel=1e-5)
