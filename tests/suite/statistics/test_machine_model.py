"""Machines at equal core speed: a known slope and ratio are found, and intervals contain them often enough."""

import math

import numpy as np
import pytest

from suite.statistics.machine_model import FULL_SPEED_LOG_PROBE, MachineModel, MachineRuns

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


def test_machines_of_equal_cores_say_nothing_of_the_slope() -> None:
    alike = [machine(gpu, 0.5 + 0.01 * place, 0.0) for gpu in ("old", "new") for place in range(5)]
    model = MachineModel(alike)
    assert model.slope is None
    assert model.ratio("old", "new").interval is not None


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
