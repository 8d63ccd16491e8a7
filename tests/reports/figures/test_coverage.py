"""Intervals of ratios contain the truth as often as they say, of stored runs and of simulated ones."""

from pathlib import Path

import pytest

from reports.figures import coverage
from reports.sets.version import read_version
from tests.fixtures.results.committed_results import committed_version, newest_version
from tests.fixtures.results.generated_results import make_case, make_result, write_results

LEAST = 0.93  # of intervals at 95 %


def test_times_that_mean_nothing_are_left_out(tmp_path: Path) -> None:
    speeds, learned = (
        make_result(make_case(device="cuda", variant=name, only_learning=name == "learning"), *[0.5] * 4)
        for name in ("speed", "learning")
    )
    on_cpu = make_result(make_case(), *[0.5] * 4)
    version = read_version(write_results([speeds, learned, on_cpu], tmp_path), name="v")
    assert {record.case.case_id for series in coverage.series_of(version) for record in series} == {speeds.case.case_id}


def test_intervals_contain_the_truth() -> None:
    figures = coverage.coverage_values([newest_version(), committed_version()])
    contain = {name.split("/")[1]: value for name, value in figures.items() if name.endswith("/contain")}
    assert len(contain) == 6
    assert {check: value for check, value in contain.items() if value < LEAST} == {}
    assert figures["coverage/halves/ratios"] > 500
    assert figures["coverage/halves/half_width"] < 0.6 * figures["coverage/halves/unpaired_half_width"]
    # If runs were added: `python -m reports.figures.coverage reports/results`.
    assert {name: row["value"] for name, row in coverage.stored().items()} == pytest.approx(figures, rel=1e-5)
