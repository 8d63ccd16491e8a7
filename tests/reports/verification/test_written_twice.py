"""What the verifier writes a second time on purpose: the same, or there is another version of what is stored."""

import random
from typing import Any

import pytest
from pytest_benchmark.stats import Stats

from reports.data import columns
from reports.data.rewards import CONVERGED_SHARE
from reports.verification import kinds, runs, samples
from reports.verification.stored import benchmark_stats
from suite.campaign.runs.keeper import MIN_ITERATIONS
from suite.files.paths import ROOT
from suite.records.rewards import SMOOTHING_WINDOW
from suite.statistics import core_speed, intervals, reduce, series_model, speed, start_up


def test_figures_of_a_document_agree_with_pytest_benchmark() -> None:
    generator = random.Random(7)  # noqa: S311 - data, not secrets
    for count in range(1, 16):
        data = [generator.uniform(0.9, 1.1) for _ in range(count)] + ([3.0] if count > 5 else [])
        theirs: Any = Stats()  # type: ignore[no-untyped-call]
        for value in data:
            theirs.update(value)
        ours = benchmark_stats(data)
        assert (ours.pop("data"), ours.pop("iterations")) == (data, 1)
        expected = {name: theirs.as_dict()[name] for name in ours}
        assert ours == pytest.approx(expected, rel=1e-9), data


def test_constants() -> None:
    assert samples.LEAST_OF_TURN == MIN_ITERATIONS
    timing = (ROOT / "tasks" / "rank" / "timing.py").read_text(encoding="utf-8")  # needs torch to be imported
    assert f"MARKED_EVERY: Final = {samples.MARKED_EVERY} " in timing
    assert f"FIRST_MARKED: Final = {samples.FIRST_MARKED} " in timing
    assert (reduce.WINDOW, core_speed.SLOWED, start_up.COLD_FACTOR) == (runs.WINDOW, runs.SLOWED, runs.COLD)
    assert (series_model.PRIOR_SLOPE, series_model.PRIOR_WEIGHT) == (kinds.SLOPE, kinds.PULL)
    assert (intervals.MIN_ROUNDS_FOR_INTERVAL, series_model.MIN_FREEDOM) == (kinds.LEAST_RUNS, kinds.LEAST_FREEDOM)
    assert (SMOOTHING_WINDOW, CONVERGED_SHARE) == (runs.SMOOTHING, kinds.RISE)
    assert (columns.COMPARABLE, columns.MOST_OTHERS_PERCENT) == (runs.COMPARABLE, runs.MOST_OTHERS_PERCENT)
    assert kinds.AGAINST["share_kept"] == speed.SCALES_EFFICIENCY


def test_columns_of_the_work() -> None:
    """Figures are declared by them; a column that the verifier lacks would be equal in all runs."""
    assert {column.name for column in columns.WORK} - {"seed"} == {*runs.WORK}
