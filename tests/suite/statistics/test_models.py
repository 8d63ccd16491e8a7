"""Intervals, and the models of a series and of machines: against scipy, values computed by hand, and their coverage."""

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from suite.statistics.intervals import mean_of, ratio_of, t_quantile, two_sided_tail
from suite.statistics.machine_model import FULL_SPEED_LOG_PROBE, MachineModel, MachineRuns
from suite.statistics.series_model import RunTime, SeriesModel
from suite.statistics.set_model import SetModel
from suite.statistics.twins import with_twins
from tests.fixtures.results.generated_results import make_case, make_result

ONE_S, MANY_S = [1.00, 1.10, 1.21], [0.50, 0.52, 0.60, 0.55]


def test_the_interval_of_a_ratio_is_welchs() -> None:
    logs = [[math.log(value) for value in values] for values in (ONE_S, MANY_S)]
    expected = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    ratio = ratio_of(ONE_S, MANY_S)
    assert ratio.value == pytest.approx(statistics.geometric_mean(ONE_S) / statistics.geometric_mean(MANY_S))
    assert ratio.interval == pytest.approx((math.exp(expected.low), math.exp(expected.high)))


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_processes_of_any_sample_have_no_interval(count: int) -> None:
    assert mean_of([1.0] * count).interval is None
    ratio = ratio_of([2.0] * 5, [1.0] * count)
    assert (ratio.value, ratio.interval) == (2.0, None)
    with pytest.raises(ValueError, match="no value"):
        mean_of([])


@pytest.mark.parametrize("degrees", [0.5, 1.3, 2.001, 3.7, 7.25, 11.9, 40.5, 1e3, 1e5])
def test_degrees_of_freedom_need_not_be_whole(degrees: float) -> None:
    assert t_quantile(0.95, degrees) == pytest.approx(float(stats.t.ppf(0.975, degrees)), rel=1e-8)
    assert two_sided_tail(0.1, degrees) == pytest.approx(float(2 * stats.t.sf(0.1, degrees)), rel=1e-9)


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


LEAST = 0.93  # of intervals at 95 %
SPREAD = 0.06  # of machines with one GPU model at equal core speed, of the stored trainings


def machine(gpu: str, core: float, *rests: float, level: float = 0.0, slope: float = 0.7) -> MachineRuns:
    """``core``: how much slower than at full speed, as a logarithm; ``rests``: of each run."""
    runs = tuple((level + slope * core + rest, FULL_SPEED_LOG_PROBE + core) for rest in rests)
    return MachineRuns(label=f"{gpu} {core}", gpu=gpu, runs=runs)


def machines_of(gpu: str, cores: list[float], *, level: float, slope: float = 0.7) -> list[MachineRuns]:
    """Machines of two runs each, which differ by as much as the machines do."""
    signs = (1, -1, -1, 1, 0)
    return [
        machine(gpu, core, 0.04 * sign, 0.0, level=level, slope=slope) for core, sign in zip(cores, signs, strict=False)
    ]


OLD = machines_of("old", [0.2, 0.4, 0.6, 0.8, 1.0], level=math.log(3))
NEW = machines_of("new", [0.1, 0.3, 0.4, 0.5, 0.7], level=math.log(2))


def test_the_slope_and_the_ratio_at_equal_core_speed_are_found() -> None:
    model = MachineModel([*OLD, *NEW])
    assert model.gpus == ("new", "old")
    assert model.slope is not None
    assert model.slope.value == pytest.approx(0.7, abs=0.03)  # a little towards 0.5
    assert model.slope.interval is not None
    assert model.slope.interval[0] < 0.7 < model.slope.interval[1]
    ratio, inverse = model.ratio("old", "new"), model.ratio("new", "old")
    assert ratio.value == pytest.approx(1.5, rel=0.01)
    assert ratio.interval is not None
    assert inverse.interval == pytest.approx((1 / ratio.interval[1], 1 / ratio.interval[0]))
    assert model.time_s("new").value == pytest.approx(2, rel=0.01)


def test_a_machine_counts_once_however_many_runs_it_has() -> None:
    often = [MachineRuns(label=old.label, gpu=old.gpu, runs=5 * old.runs) for old in OLD]
    once, oftener = (MachineModel([*old, *NEW]).ratio("old", "new").interval for old in (OLD, often))
    assert oftener == pytest.approx(once)


def test_a_machine_is_brought_to_full_core_speed_with_the_interval_of_its_runs() -> None:
    model = MachineModel([*OLD, *NEW])
    slow = machine("new", 0.9, -0.01, 0.0, 0.01, level=math.log(2))
    time_s = model.time_of(slow)
    assert time_s.value == pytest.approx(2, rel=0.03)
    assert time_s.interval is not None
    assert time_s.interval[0] > 0.95 * time_s.value
    assert model.time_of(NEW[0]).interval is None  # two runs


@pytest.mark.parametrize(("of_each", "has_interval"), [(2, False), (3, True)])
def test_two_machines_of_each_model_are_too_few(of_each: int, *, has_interval: bool) -> None:
    model = MachineModel([*OLD[:of_each], *NEW[:of_each]])
    assert (model.ratio("old", "new").interval is not None) is has_interval
    assert (model.slope is not None) is has_interval


@pytest.mark.parametrize("slope", [0.1, 0.9])
def test_intervals_of_five_machines_of_each_model_contain_the_ratio(slope: float) -> None:
    """Machines of one model have slower cores, and runs differ within a machine too."""
    rng, tries, contained = np.random.default_rng(7), 400, 0
    for _ in range(tries):
        cores = {"old": rng.normal(0.6, 0.2, 5), "new": rng.normal(0.45, 0.2, 5)}
        every = [
            machine(gpu, core, *(rng.normal(0, SPREAD) + rng.normal(0, 0.04, 3)), level=level, slope=slope)
            for gpu, level in (("old", math.log(1.1)), ("new", 0.0))
            for core in cores[gpu]
        ]
        interval = MachineModel(every).ratio("old", "new").interval
        assert interval is not None
        contained += interval[0] < 1.1 < interval[1]
    assert contained >= LEAST * tries
