"""Intervals of ratios contain the truth as often as they say, of stored runs and of simulated ones."""

from pathlib import Path

import numpy as np
import pytest

from reports.figures import coverage
from reports.figures.kinds import Declaration, Figure, _product
from reports.sets.version import read_version
from suite.statistics.intervals import mean_of, ratio_of
from tests.fixtures.results.committed_results import committed_version, newest_version
from tests.fixtures.results.generated_results import make_case, make_result, write_results

LEAST = 0.93  # of intervals at 95 %
SIMULATIONS = 3000


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


@pytest.mark.parametrize("seeds", [3, 4, 7])
def test_how_much_sooner_a_reward_comes_contains_the_truth(seeds: int) -> None:
    """Seeds differ by a fifth in the frames that they need, and the speeds of six runs by a twentieth."""
    generator, inside = np.random.default_rng(20261201), 0
    declared = {name: Declaration(id=name, kind="", column="", of={}) for name in ("fewer_frames", "over_gpus")}
    product = Declaration(id="sooner", kind="product", column="", of=dict.fromkeys(declared, "1"))
    for _ in range(SIMULATIONS):
        fewer = mean_of(np.exp(generator.normal(0, 0.2, seeds)).tolist())
        faster = ratio_of(*np.exp(generator.normal(0, 0.05, (2, 6))).tolist())
        figures = {}
        for (name, own), ratio in zip(declared.items(), (fewer, faster), strict=True):
            low, high = ratio.interval or (0.0, 0.0)
            figures[name] = Figure(declaration=own, value=ratio.value, low=low, high=high, runs=seeds)
        inside += _product(product, figures).status == "within noise"
    assert inside / SIMULATIONS > LEAST
