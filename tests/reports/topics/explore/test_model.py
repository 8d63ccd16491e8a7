"""The points of Explore: what is one, its metrics, and what may be compared; on generated and committed results."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean

import pytest

from reports.export.downloads import DATA_FOLDER, files
from reports.sets.manifest import Contributor
from reports.sets.version import Version, read_version
from reports.topics.explore.metrics import FRAMES, METRICS, OVER_BASELINE
from reports.topics.explore.model import Point, points
from suite.schema.record import CaseResult, CheckResult
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, mean_of
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import (
    failed_result,
    full_results,
    make_case,
    make_result,
    node_results,
    smoke_results,
    stack_results,
    sweep_results,
    write_results,
)
from tests.reports.analysis.test_interconnect import emulated
from tests.reports.analysis.test_time_split import with_telemetry


def version_of(results: Sequence[CaseResult], folder: Path) -> Version:
    return read_version(write_results(results, folder), name="v")


def found(results: Sequence[CaseResult], folder: Path) -> dict[str, Point]:
    return {point.key: point for point in points(version_of(results, folder))}


def test_each_metric_of_a_point_is_that_of_its_runs(tmp_path: Path) -> None:
    four = found(full_results(), tmp_path)["cartpole-strong/rsl_rl-kitless-n8192-1x4"]
    frames = 8192 * 16
    times_s = [0.22 * (0.04 + 0.96 / 4) * (1 + 0.03 * index) * (1 + 0.01 * 3 / 4) for index in range(3)]
    fps = frames / geometric_mean(times_s)
    assert four.samples["time"] == pytest.approx(times_s)
    assert four.figures["fps"].value == pytest.approx(fps)
    assert four.figures["fps"].interval == pytest.approx(
        [frames / s for s in reversed(mean_of(times_s).interval or ())]
    )
    assert four.figures["hours"].value == pytest.approx(FRAMES / fps / 3600)
    assert four.figures["gpu-hours"].value == pytest.approx(4 * FRAMES / fps / 3600)
    # One GPU has no slower rank: 0.22 * 1.03 s.
    assert four.figures["speedup"].value == pytest.approx(0.22 * 1.03 / times_s[1])
    assert four.figures["efficiency"].value == pytest.approx(25 * 0.22 * 1.03 / times_s[1])
    assert four.figures["speedup"].interval is not None
    assert four.baseline == "cartpole-strong/rsl_rl-kitless-n8192-1x1"
    assert (four.runs, four.gpu, four.gpus, four.num_envs) == (3, "Generated Accelerator", 4, 2048)
    assert (four.task, four.library, four.settings, four.physics) == (
        "Cartpole", "rsl_rl", "as shipped", "Newton (no Isaac Sim)",
    )  # fmt: skip
    assert {"energy", "memory"} & four.figures.keys() == set()


def test_what_did_not_complete_on_gpus_is_no_point(tmp_path: Path) -> None:
    reduced = make_result(make_case(device="cuda", workload="all_reduce", num_envs_global=64), 0.1)
    crashed = failed_result(make_case(device="cuda", num_envs_global=256), outcome="crashed", reason="generated")
    keys = found([*full_results(), *smoke_results(), reduced, crashed], tmp_path).keys()
    assert len(keys) == 16
    assert not any("-cpu-" in key or "16384" in key for key in keys)


def test_only_a_case_with_other_numbers_of_gpus_has_a_speed_up(tmp_path: Path) -> None:
    swept = found(sweep_results(), tmp_path / "sweep").values()
    assert [point.num_envs for point in swept] == [1024, 2048, 4096, 8192]
    assert all("speedup" not in point.figures and point.baseline is None for point in swept)
    assert len({point.sweep for point in swept}) == 1
    assert len({point.curve for point in swept}) == 4
    scaled = found(full_results(), tmp_path / "full").values()
    assert all("efficiency" in point.figures for point in scaled)
    assert len({point.curve for point in scaled}) == 4


def test_physics_set_points_apart(tmp_path: Path) -> None:
    stacks = found(stack_results(), tmp_path).values()
    assert {(point.physics, point.curve) for point in stacks} == {
        ("Newton (no Isaac Sim)", "/cartpole-physics/rsl_rl, kitless"),
        ("PhysX (no Isaac Sim)", "/cartpole-physics/rsl_rl, ovphysx"),
    }
    assert len({point.name for point in stacks}) == 4


def test_telemetry_gives_energy_and_memory_but_not_the_memory_of_others(tmp_path: Path) -> None:
    (shown,) = sweep_results()[:1]
    rounds = tuple(with_telemetry(record, frames_per_joule=2e3, memory_gb=8.0) for record in shown.rounds)
    (point,) = found([replace(shown, rounds=rounds)], tmp_path / "alone").values()
    assert (point.figures["energy"].value, point.figures["memory"].value) == pytest.approx((500, 8))
    check = CheckResult(name="other_processes", feature="gpu", verdict="warning", found="1 process", fault="x")
    beside = tuple(replace(record, environment=replace(record.environment, checks=(check,))) for record in rounds)
    (point,) = found([replace(shown, rounds=beside)], tmp_path / "beside").values()
    assert point.figures.keys() & {"energy", "memory"} == {"energy"}
    assert point.name.endswith("other processes on the GPU")


def test_simulated_nodes_and_contributors_are_named(tmp_path: Path) -> None:
    one, four, spread = node_results()
    version = version_of([one, four, emulated(spread)], tmp_path)
    theirs = replace(version.sets[0], contributor=Contributor(name="Lab", link=None))
    shown = points(replace(version, sets=(theirs,)))
    assert sorted(point.hardware for point in shown) == [
        "1 x Generated Accelerator",
        "4 x Generated Accelerator",
        "4 x Generated Accelerator, 2 simulated nodes",
    ]
    assert all(point.machine.endswith(", by Lab") for point in shown)


def test_machines_that_are_alike_have_names_of_their_own() -> None:
    version = committed_version()
    named = {machine.name for machine in version.machines}
    labels: dict[str, set[str | None]] = {}
    for point in points(version):
        labels.setdefault(point.machine, set()).add(point.together[1])
    assert labels.keys() <= named
    assert all(len(found) == 1 for found in labels.values())
    alike = [name for name in labels if name.startswith("4 x H200, 64 vCPU, 22 Nov 2026, ")]
    assert len(alike) > 1


def test_every_shown_case_of_the_published_version_is_a_point_and_its_file_is_offered() -> None:
    version = committed_version()
    shown = points(version)
    expected = {
        f"{one.name}/{result.case.case_id}"
        for one in version.scaling
        for result in one.campaign.results
        if result.completed and result.case.workload in ("train", "environment_step")
    }
    assert {point.key for point in shown} == expected
    offered = {f"{DATA_FOLDER}/{name}" for name in files(version)}
    assert {point.file for point in shown} <= offered
    assert {point.task for point in shown} == {"Ant", "Cartpole", "Shadow Hand with camera"}
    known = {metric.key for metric in METRICS if any(metric.key in point.figures for point in shown)}
    assert known == {metric.key for metric in METRICS}


def test_figures_of_the_published_version_are_those_of_its_rows() -> None:
    version = committed_version()
    rows = {f"{one.name}/{row.case_id}": row for one in version.scaling for row in one.campaign.rows}
    inside = {f"{one.name}/{name}": each for one in version.scaling for name, each in one.campaign.inside.items()}
    shown = {point.key: point for point in points(version)}
    for point in shown.values():
        row = rows[point.key]
        assert point.figures["fps"].value == pytest.approx(row.total_fps)
        energy = inside[point.key].joules_per_million_frames
        assert energy is not None
        assert point.figures["energy"].value == pytest.approx(geometric_mean(point.samples["energy"]))
        assert (min(point.samples["energy"]), max(point.samples["energy"])) == pytest.approx((energy.low, energy.high))
        for metric in METRICS:
            if metric.key in point.figures:
                interval = point.figures[metric.key].interval
                if metric.key in OVER_BASELINE:
                    assert point.baseline is not None
                    assert (interval is None) == (row.speedup_interval is None)
                    assert interval is None or point.baseline != point.key
                else:
                    enough = len(point.samples[metric.sample]) >= MIN_ROUNDS_FOR_INTERVAL
                    assert (interval is not None) == enough, (point.key, metric.key)
