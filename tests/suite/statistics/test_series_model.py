"""The intervals of a series' ratios hold what they promise: on stored runs without an effect, and on simulated ones."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pytest
from scipy import stats

from suite.files.paths import ROOT
from suite.records.store import load_results
from suite.schema.record import RunRecord
from suite.statistics.series_model import RunTime, SeriesModel, SetModel, run_time
from suite.statistics.twins import with_twins
from tests.fixtures.results.generated_results import make_case, make_result

VERSIONS = ("2026.11", "2026.12")
LEAST = 0.93  # of intervals at 95 %
SPREAD = 0.0435  # of a run's log time within its block, root mean square of version 2026.12
SPREAD_OF_BLOCKS = 0.06


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
    """By hand: the variance of the differences of a and b with two degrees, that of all residuals with one."""
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


# --- coverage ---


@cache
def stored_series() -> tuple[tuple[RunRecord, ...], ...]:
    """The completed runs of each series and RL library of each set of both versions."""
    series: dict[tuple[str, ...], list[RunRecord]] = defaultdict(list)
    for folder in sorted(
        path.parent for version in VERSIONS for path in (ROOT / "reports/results" / version).glob("*/cases")
    ):
        for kind in (folder, folder / "a_a"):
            for result in load_results(kind) if kind.is_dir() else ():
                case = result.case
                key = (str(folder), case.series, case.rl_library, case.workload, case.minibatch_rule)
                if case.device == "cuda" and case.kernel_cache == "kept":
                    series[key] += result.completed
    return tuple(map(tuple, series.values()))


def halves() -> Iterator[list[RunTime]]:
    """Six or more runs of one configuration as two configurations: every second run, and runs at random."""
    for records in stored_series():
        runs = [run_time(record) for record in records]
        for name in dict.fromkeys(run.configuration for run in runs):
            own = [run for run in runs if run.configuration == name]
            if len(own) >= 6:
                for chosen in itertools.islice(itertools.combinations(range(len(own)), len(own) // 2), 10):
                    yield [relabelled(run, "one" if place in chosen else "two") for place, run in enumerate(own)]


def relabelled(run: RunTime, configuration: str) -> RunTime:
    return a_run(configuration, run.log_time, None, run.log_probe)


def covers(runs: Sequence[RunTime], ratio: float = 1.0) -> bool:
    interval = SeriesModel(runs).ratio("two", "one").interval
    return interval is not None and interval[0] <= ratio <= interval[1]


def test_halves_of_stored_runs_do_not_differ() -> None:
    outcomes = [covers(runs) for runs in halves()]
    assert len(outcomes) > 300
    assert np.mean(outcomes) >= LEAST


@pytest.mark.parametrize("noisy", [None, "one", "two", "three"])
@pytest.mark.parametrize("num_blocks", [4, 6, 10])
def test_simulated_runs_in_turns(noisy: str | None, num_blocks: int) -> None:
    generator = np.random.default_rng(20261129)
    outcomes = []
    for _ in range(1000):
        blocks = generator.normal(0, SPREAD_OF_BLOCKS, num_blocks)
        runs = [
            a_run(name, level + blocks[block] + generator.normal(0, SPREAD * (3 if name == noisy else 1)), block)
            for block in range(num_blocks)
            for name, level in (("one", 0.0), ("one", 0.0), ("two", 1.0), ("three", 2.0))
        ]
        outcomes.append(covers(runs, math.e))
    assert np.mean(outcomes) >= LEAST
