"""The model of a series: ratios, their intervals and the slope of the core. Coverage has tests in reports."""

import math

import numpy as np
import pytest
from scipy import stats

from suite.statistics.intervals import ratio_of
from suite.statistics.series_model import RunTime, SeriesModel
from suite.statistics.set_model import SetModel
from suite.statistics.twins import with_twins
from tests.fixtures.results.generated_results import make_case, make_result


def a_run(configuration: str, log_time: float, block: int | None = 0, log_probe: float | None = None) -> RunTime:
    return RunTime(configuration=configuration, block=block, log_time=log_time, log_probe=log_probe)


def test_a_ratio_is_that_of_the_times_and_inverts() -> None:
    noise = (0.01, -0.02, 0.0, 0.01)
    runs = [a_run("one", math.log(2) + by + block, block) for block, by in enumerate(noise)]
    runs += [a_run("two", math.log(5) - by + block, block) for block, by in enumerate(noise)]
    model = SeriesModel(runs)
    ratio, inverse = model.ratio("two", "one"), model.ratio("one", "two")
    assert ratio.value == pytest.approx(2.5)
    assert ratio.interval is not None
    assert inverse.interval is not None
    low, high = ratio.interval
    assert low < 2.5 < high
    assert math.sqrt(low * high) == pytest.approx(2.5)  # the figure is the centre
    paired = stats.sem([2 * by for by in noise]) * stats.t.ppf(0.975, 3)
    assert math.log(high / low) / 2 == pytest.approx(paired)
    assert inverse.interval == pytest.approx((1 / high, 1 / low))
    shuffled = SeriesModel([runs[place] for place in (3, 0, 7, 5, 2, 1, 4, 6)]).ratio("two", "one")
    assert shuffled.interval == pytest.approx(ratio.interval)


def test_a_slow_block_is_no_noise() -> None:
    runs = [a_run("one", by, block) for block, by in enumerate((0.0, 0.5, 0.1, 0.3))]
    runs += [a_run("two", 1 + by, block) for block, by in enumerate((0.0, 0.5, 0.1, 0.3))]
    assert SeriesModel(runs).ratio("two", "one").interval == pytest.approx((math.e, math.e))


def test_configurations_that_shared_no_block_are_compared_unpaired() -> None:
    """A slow block is a part of what they differ by, so the interval has the spread of blocks."""
    blocks = {"one": (0.0, 0.2, 0.1), "two": (1.1, 1.0, 1.3)}
    runs = [a_run("one", by, block) for block, by in enumerate(blocks["one"])]
    runs += [a_run("two", by, 3 + block) for block, by in enumerate(blocks["two"])]
    ratio = SeriesModel(runs).ratio("two", "one")
    unpaired = ratio_of([math.exp(by) for by in blocks["two"]], [math.exp(by) for by in blocks["one"]])
    assert ratio.value == pytest.approx(unpaired.value)
    assert ratio.interval == pytest.approx(unpaired.interval)


def test_the_core_explains_runs_alone_and_not_those_in_turns() -> None:
    probes = (-9.6, -9.2, -9.0, -9.5)
    alone = [a_run("one", 0.6 * probe, None, probe) for probe in probes]
    alone += [a_run("two", 1 + 0.6 * probe, None, probe) for probe in reversed(probes)]
    model = SeriesModel(alone)
    assert model.slope == pytest.approx(0.6, abs=0.02)  # a little towards 0.5
    assert model.core_slope is not None
    assert model.core_slope.value == model.slope
    assert model.ratio("two", "one").value == pytest.approx(math.e, rel=0.001)
    in_turns = [a_run(run.configuration, run.log_time, 1, run.log_probe) for run in alone]
    assert SeriesModel(in_turns).slope is None
    assert SeriesModel(in_turns, needs_probe=True).slope == pytest.approx(0.6, abs=0.02)
    alike = [a_run(run.configuration, run.log_time, None, -9.6) for run in alone]
    assert SeriesModel(alike).core_slope is None  # nothing but the pseudo-observation


@pytest.mark.parametrize(
    ("num_blocks", "names", "has_interval"), [(2, "abc", False), (3, "ab", False), (3, "abc", True), (4, "ab", True)]
)
def test_an_interval_needs_four_blocks_or_three_and_another_configuration(
    num_blocks: int, names: str, *, has_interval: bool
) -> None:
    runs = [
        a_run(name, 0.1 * block * place**2, block) for block in range(num_blocks) for place, name in enumerate(names)
    ]
    assert (SeriesModel(runs).ratio("a", "b").interval is not None) is has_interval


def test_another_configuration_adds_one_degree_of_freedom() -> None:
    """Computed by hand: the variance of the differences of a and b with two degrees, that of all residuals with one."""
    a, b, c = np.array([0.0, 0.1, 0.05]), np.array([1.0, 1.2, 1.0]), np.array([2.0, 2.0, 2.3])
    runs = [a_run(name, times[block], block) for block in range(3) for name, times in (("a", a), ("b", b), ("c", c))]
    table = np.stack([a, b, c])
    residuals = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    own, of_all = np.var(b - a, ddof=1) / 3, np.sum(residuals**2) / 4 * 2 / 3
    half_width = stats.t.ppf(0.975, 3) * math.sqrt((2 * own + of_all) / 3)
    ratio = SeriesModel(runs).ratio("b", "a")
    assert ratio.interval is not None
    assert math.log(ratio.interval[1] / ratio.interval[0]) / 2 == pytest.approx(half_width)


def test_a_repeat_of_the_baseline_is_the_same_configuration() -> None:
    base, twin = with_twins([make_case()])
    two = make_case(world_size=2)
    results = [make_result(base, 1.0, 2.0), make_result(twin, 4.0, 8.0), make_result(two, 0.5, 2.0)]
    speedup = SetModel.of(results).speedup(two, base)
    assert speedup is not None
    assert speedup.value == pytest.approx(math.sqrt(8))  # the geometric means are sqrt(8) s and 1 s
    assert SetModel.of(results[:2]).speedup(two, base) is None
