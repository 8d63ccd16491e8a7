"""GPU models at equal core speed: what the page says of the stored machines, and how it words a ratio."""

import math
from collections import defaultdict
from dataclasses import replace
from functools import cache
from statistics import fmean

import numpy as np
import pytest

from reports.analysis.curves import as_shipped
from reports.analysis.trainings import Training
from reports.sets.version import Version
from reports.topics.hardware.core_speed import NOTHING, answer, core_speed, core_speed_of, name_of
from suite.schema.record import RunRecord
from suite.statistics.machine_model import FULL_SPEED_LOG_PROBE, MachineRuns
from tests.fixtures.results import version_2026_12
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import make_case

CLOSE = 0.02
CASE = make_case("ant-weak", scaling="weak", num_envs_global=1024, device="cuda")


@cache
def stored() -> Version:
    return replace(version_2026_12.version(), older=(committed_version(),))


def by_another_way(task: str, library: str, environments: int) -> tuple[dict[str, float], float]:
    """The logarithms of the time at a probe of 100 µs by GPU model, and the slope, with dummies for GPU models."""
    machines: dict[tuple[str, str], list[RunRecord]] = defaultdict(list)
    for one in (one for version in (stored(), *stored().older) for one in version.sets if one.shared_machine != "yes"):
        for result in as_shipped(one.campaign.results):
            case = result.case
            work = (case.task, case.rl_library, case.stack, case.num_envs, case.world_size)
            if work == (task, library, "kitless", environments, 1):
                for record in result.completed:
                    where = record.environment
                    if where.host_label and any(record.ranks[0].samples.get("core_probe_time_s", ())):
                        machines[where.gpus[0].name, where.host_label].append(record)
    shortest = min(record.case.iterations for records in machines.values() for record in records)
    means = {
        key: np.mean([_logs(record, shortest // 5, shortest) for record in records], axis=0)
        for key, records in machines.items()
    }
    gpus = sorted({gpu for gpu, _ in machines})
    rows = [[*(float(gpu == name) for name in gpus), probe - math.log(1e-4)] for (gpu, _), (_, probe) in means.items()]
    times = [time for time, _ in means.values()]
    prior = math.sqrt(0.05)  # one more row, which says 0.5 of the slope
    solved = np.linalg.lstsq([*rows, [*(0.0 for _ in gpus), prior]], [*times, 0.5 * prior], rcond=None)[0]
    return dict(zip(gpus, solved, strict=False)), float(solved[-1])


def _logs(record: RunRecord, first: int, end: int) -> tuple[float, float]:
    samples = record.ranks[0].samples
    marks = samples["marked"][first:end]
    times = [
        time or math.nan
        for time, marked in zip(samples["iteration_time_s"][first:end], marks, strict=True)
        if not marked or all(marks)
    ]
    return math.log(fmean(times)), fmean(math.log(probe) for probe in samples["core_probe_time_s"][first:end] if probe)


@pytest.mark.parametrize(
    ("training", "task", "library", "environments"),
    [
        ("Ant, rl_games, Newton, 1,024 environments", "Isaac-Ant", "rl_games", 1024),
        ("Cartpole, rsl_rl, Newton, 4,096 environments", "Isaac-Cartpole-Direct", "rsl_rl", 4096),
    ],
)
def test_h100_and_h200_stand_beside_each_other(training: str, task: str, library: str, environments: int) -> None:
    (row,) = (line for line in core_speed(stored()).text.splitlines() if line.startswith(f"{training}\t"))
    _, of_h100, of_h200, slope, h100, h200, ratio, verdict = row.split("\t")
    times, expected_slope = by_another_way(task, library, environments)
    case = next(each.case for each in stored().trainings if name_of(each) == training)
    for shown, gpu in ((h100, "NVIDIA H100 80GB HBM3"), (h200, "NVIDIA H200")):
        fps = case.frames_per_iteration / math.exp(times[gpu])
        assert float(shown.split()[0].replace(",", "")) == pytest.approx(fps, rel=CLOSE)
    log_h100, log_h200 = times["NVIDIA H100 80GB HBM3"], times["NVIDIA H200"]
    assert float(ratio.split()[0]) == pytest.approx(math.exp(log_h100 - log_h200), rel=CLOSE)
    assert float(slope.split()[0]) == pytest.approx(expected_slope, abs=0.01)
    assert int(of_h100) >= 3
    assert int(of_h200) >= 8
    assert verdict == "within noise"


def test_the_page_of_a_gpu_has_the_same_table_and_the_way_to_its_machines() -> None:
    whole, of_gpu = core_speed(stored()).text, core_speed_of(stored(), "H200").text
    assert of_gpu.partition("\nEach machine")[0] in whole
    assert "no training is clearly faster or slower on one H200 than on one H100 80GB HBM3" in of_gpu


def test_a_version_of_one_machine_says_so() -> None:
    one = replace(stored(), older=(), sets=tuple(each for each in stored().sets if each.name == "h200-x4"))
    assert core_speed(one).text == NOTHING
    assert core_speed_of(one, "H200").text == NOTHING


def test_machines_that_others_used_and_contributed_ones_are_left_out() -> None:
    alone = {machine.label for training in stored().trainings for machine in training.machines}
    used = tuple(replace(one, shared_machine="yes") if one.name == "h100-turns" else one for one in stored().sets)
    without = {machine.label for training in replace(stored(), sets=used).trainings for machine in training.machines}
    assert without < alone


def of_machines(new_over_old: float, cores: tuple[float, ...]) -> Training:
    machines = tuple(
        MachineRuns(
            label=f"{gpu} {place}",
            gpu=gpu,
            runs=((level + 0.7 * core + 0.01 * (-1) ** place, FULL_SPEED_LOG_PROBE + core),),
        )
        for gpu, level in (("new", 0.0), ("old", math.log(new_over_old)))
        for place, core in enumerate(cores)
    )
    return Training(case=CASE, machines=machines, iterations=range(10))


def test_the_answer_says_what_is_clear_what_is_noise_and_what_too_few_machines_ran() -> None:
    cores = (0.2, 0.4, 0.6, 0.8)
    faster, alike, few = of_machines(1.5, cores), of_machines(1.0, cores), of_machines(1.5, cores[:1])
    clear = answer([faster], "old", "new")
    assert "of one new over those of one old are 1.50 (" in clear
    assert "noise" not in clear
    assert "no training is clearly faster" in answer([alike], "old", "new")
    both = answer([faster, alike, few], "old", "new")
    assert "Within noise is 1 training" in both
    assert "Too few machines ran 1 other training" in both
    assert answer([faster], "old", "a third one") == ""
