"""The verifier's formulas against those of scipy, of pytest-benchmark, and its constants against the report's."""

import math
import random
import statistics
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_benchmark.stats import Stats
from scipy import stats as scipy_stats

from reports.verification import formulas
from reports.verification.figures import series_ratio
from reports.verification.figures.core_probes import MIN_LOOKS, SLOWED
from reports.verification.figures.published import SCALES
from reports.verification.finding import differing
from reports.verification.samples.rank import FIRST_ITERATIONS, FIRST_MARKED, LEAST_OF_TURN, MARKED_EVERY
from reports.verification.samples.telemetry import AGREEMENT, HELD_BACK
from suite.campaign.runs.keeper import MIN_ITERATIONS
from suite.files.paths import ROOT
from suite.records.telemetry import summary as telemetry_summary
from suite.schema import turns
from suite.statistics import core_speed, intervals, reduce, series_model
from suite.statistics.speed import SCALES_EFFICIENCY

SPREAD = [0.10, 0.12, 0.11]


def samples() -> Iterator[list[float]]:
    generator = random.Random(7)  # noqa: S311 - data, not secrets
    for count in range(1, 16):
        yield [generator.uniform(0.9, 1.1) for _ in range(count)] + ([3.0] if count > 5 else [])


def test_figures_of_a_document_agree_with_pytest_benchmark() -> None:
    for data in samples():
        theirs: Any = Stats()  # type: ignore[no-untyped-call]
        for value in data:
            theirs.update(value)
        ours = dict(formulas.benchmark_stats(data))
        assert (ours.pop("data"), ours.pop("iterations")) == (data, 1)
        expected = {name: theirs.as_dict()[name] for name in ours}
        assert [str(one) for one in differing("x", "stats", ours, expected)] == [], data
        assert ours["median"] == statistics.median(data)


@pytest.mark.parametrize("degrees", [1, 2, 2.7, 3, 4.5, 9, 30, 400])
def test_quantiles_of_students_distribution_agree_with_scipy(degrees: float) -> None:
    assert formulas.student_t(degrees) == pytest.approx(scipy_stats.t.ppf(0.975, degrees), rel=1e-9)


def test_an_interval_is_students_on_logarithms() -> None:
    logs = [math.log(value) for value in SPREAD]
    low, high = scipy_stats.t.interval(0.95, 2, loc=statistics.mean(logs), scale=statistics.stdev(logs) / math.sqrt(3))
    assert formulas.interval(SPREAD) == pytest.approx((math.exp(low), math.exp(high)), rel=1e-9)
    assert formulas.interval([2.0, 2.0, 2.0]) == pytest.approx((2.0, 2.0))
    assert formulas.interval(SPREAD[:2]) is None


def test_what_is_written_twice_is_the_same() -> None:
    """Written a second time on purpose: another rule there is another version of what is stored."""
    assert reduce.ROUND_STATISTIC == formulas.RULE
    assert (reduce.WINDOW, intervals.MIN_ROUNDS_FOR_INTERVAL) == (formulas.SHARE, formulas.MIN_PROCESSES)
    of_model = (series_model.PRIOR_SLOPE, series_model.PRIOR_WEIGHT, series_model.MIN_FREEDOM)
    assert of_model == (series_ratio.SLOPE, series_ratio.PULL, series_ratio.LEAST_FREEDOM)
    assert SCALES == SCALES_EFFICIENCY
    assert (FIRST_ITERATIONS, LEAST_OF_TURN) == (turns.FIRST_ITERATIONS, MIN_ITERATIONS)
    assert telemetry_summary.AGREEMENT == AGREEMENT
    assert telemetry_summary.THROTTLING == HELD_BACK
    assert (core_speed.SLOWED, core_speed.MIN_LOOKS) == (SLOWED, MIN_LOOKS)
    timing = (ROOT / "tasks" / "rank" / "timing.py").read_text(encoding="utf-8")  # needs torch to be imported
    assert f"MARKED_EVERY: Final = {MARKED_EVERY} " in timing
    assert f"FIRST_MARKED: Final = {FIRST_MARKED} " in timing
