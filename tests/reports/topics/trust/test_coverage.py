"""Intervals of ratios contain the truth as often as they say, of stored runs and of simulated ones."""

from dataclasses import replace

from reports.topics.trust import coverage
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.version_2026_12 import version

LEAST = 0.93  # of intervals at 95 %


def test_intervals_contain_the_truth() -> None:
    checks = {check.name: check for check in coverage.checks(replace(version(), older=(committed_version(),)))}
    assert len(checks) == 6
    assert {name: check.coverage for name, check in checks.items() if check.coverage < LEAST} == {}
    halves = checks["Halves of the runs of one configuration"]
    assert halves.ratios > 500
    assert halves.half_width < 0.6 * halves.old_half_width
