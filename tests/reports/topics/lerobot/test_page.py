"""What the report says of LeRobot, of GENERATED results."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.analysis.curves import task_name
from reports.display.addresses import page_of_task
from reports.sets.version import Version, read_version
from reports.site.pages import page_sources
from reports.topics.explore.model import points
from reports.topics.lerobot import page
from reports.topics.lerobot.page import acting, recordings
from reports.topics.lerobot.topic import TOPIC as LEROBOT
from reports.topics.losses.topic import TOPIC as LOSSES
from reports.topics.results import what_worked
from reports.topics.tasks import curves_page, overview
from reports.topics.tasks.section import section
from reports.topics.tasks.series_answer import series_answer
from suite.schema.record import Case, CaseResult, Device, Workload
from tests.fixtures.results.generated_results import (
    GPU_HOST,
    failed_result,
    make_case,
    make_record,
    write_results,
)
from tests.fixtures.runs.camera_cartpole import CAMERA_CARTPOLE

ACTS, RECORDS = "camera-policy", "camera-recording"
FEW, MANY = 1, 512
TASK = task_name(CAMERA_CARTPOLE)


def case_of(workload: Workload, num_envs: int, *, device: Device = "cuda") -> Case:
    plain = make_case(device=device, scaling="weak", rl_library="lerobot", num_envs_global=num_envs)
    series = ACTS if workload == "policy_rollout" else RECORDS
    name = plain.case_id.partition("/")[2]
    return replace(plain, case_id=f"{series}/{name}", series=series, task=CAMERA_CARTPOLE, workload=workload)


def ran(case: Case, *runs_s: float, **columns: float) -> CaseResult:
    """Runs with the same value in every iteration of a column; latencies are of marked ones alone."""
    rounds = []
    for index, time_s in enumerate(runs_s):
        record = make_record(case, index=index, iteration_time_s=time_s)
        (rank,) = record.ranks
        marked = tuple(float(iteration % 4 == 2) for iteration in range(rank.num_iterations))
        of_lerobot = {
            f"lerobot.{name}": tuple(value if mark or not name.startswith("latency") else None for mark in marked)
            for name, value in columns.items()
        }
        rank = replace(rank, samples={**rank.samples, "marked": marked, **of_lerobot})
        environment = GPU_HOST if case.device == "cuda" else record.environment
        rounds.append(replace(record, ranks=(rank,), environment=environment))
    return CaseResult(case=case, rounds=tuple(rounds))


def results(device: Device = "cuda") -> list[CaseResult]:
    """A policy in one and in many environments, and a data set of one."""
    quick, slow = {"latency_median_s": 0.01, "latency_p99_s": 0.02}, {"latency_median_s": 0.1, "latency_p99_s": 0.2}
    return [
        ran(case_of("policy_rollout", FEW, device=device), 0.5, 0.5, 0.5, **quick),
        ran(case_of("policy_rollout", MANY, device=device), 1.0, 1.0, 1.0, **slow),
        ran(case_of("dataset_recording", FEW, device=device), 0.5, 0.5, 0.5, written_time_s=0.25, bytes_per_frame=300),
    ]


@pytest.fixture
def version(tmp_path: Path) -> Version:
    return read_version(write_results(results(), tmp_path), name="v")


def test_figures_are_those_of_the_samples() -> None:
    quick, slow = acting(results())
    assert (quick.case.num_envs, slow.case.num_envs) == (FEW, MANY)
    assert [one and one.value for one in (quick.latency_s, quick.rare_latency_s)] == pytest.approx([0.01, 0.02])
    assert slow.fps is not None
    assert slow.fps.value == pytest.approx(slow.case.frames_per_iteration)
    (recording,) = recordings(results())
    assert recording.written_fps is not None
    assert recording.written_fps.value == pytest.approx(recording.case.frames_per_iteration / 0.25)
    assert recording.bytes_per_frame is not None
    assert recording.bytes_per_frame.value == pytest.approx(300)


def test_the_page_opens_with_how_fast_it_acts_and_writes(version: Version) -> None:
    assert "lerobot" in page_sources(version)
    frames = acting(results())[1].case.frames_per_iteration
    written = round(recordings(results())[0].case.frames_per_iteration / 0.25)
    said = page.answer(version).text
    for value in (f"{frames:,} frames", "10.0 ms", "20.0 ms", f"{written:,} frames", "300 bytes"):
        assert value in said
    lines = [line.split("\t") for line in page.sets(version).text.splitlines()]
    acted, many, recorded = (line for line in lines if line[0].startswith("camera-"))
    assert acted[1::4] == ["1", "3"]
    assert many[3:] == ["100 (100 to 100)", "200 (200 to 200)", "3"]
    assert recorded[-2:] == ["300 (300 to 300)", "3"]


def test_the_tasks_page_has_its_figures_and_nothing_of_training(version: Version) -> None:
    assert page_of_task(TASK) in page_sources(version)
    parts = version.series(ACTS)
    assert "Nothing is trained." in series_answer(parts, ())
    listed = overview.details(version, TASK).text
    assert "from few to many environments on 1 rank, a policy of LeRobot acting without training" in listed
    assert "Latency, ms" in section(version, TASK, ACTS, LEROBOT.series_parts).text
    assert [part.shown(version, parts) for part in LOSSES.series_parts] == [[], []]


def test_three_sizes_have_a_chart_and_are_in_order(tmp_path: Path) -> None:
    """The ids of cases are in another order: 512 before 64."""
    middle = ran(case_of("policy_rollout", 64), 0.8, 0.8, 0.8, latency_median_s=0.05, latency_p99_s=0.06)
    version = read_version(write_results([*results(), middle], tmp_path), name="v")
    shown = page.sets(version)
    assert "A policy makes 32 in 1 environment and 8,192 in 512 environments, in frames a second" in shown.text
    assert shown.markup.count("<figure") == 1
    rows = [line.split("\t") for line in shown.text.splitlines() if line.startswith(f"{ACTS}/")]
    assert [row[1] for row in rows] == ["1", "64", "512"]
    assert "<figure" not in page.sets(read_version(write_results(results(), tmp_path / "two"), name="v")).markup


def test_explore_has_a_point_for_every_size(version: Version) -> None:
    found = [(point.library, point.num_envs) for point in points(version)]
    assert found == [
        ("LeRobot's data set writer", FEW), ("LeRobot's policy acting", FEW), ("LeRobot's policy acting", MANY),
    ]  # fmt: skip


def test_every_curve_has_all_sizes_and_calls_none_training(version: Version) -> None:
    said = curves_page.answers(version).text
    (sweep, parts) = said.split("One part of an iteration and nothing else")
    assert "Frames per second by number of environments:" in sweep
    assert "camera-policy: lerobot, kitless\t" in sweep
    assert "camera-policy" not in parts
    assert "camera-recording: " in parts


def test_without_lerobot_there_is_no_page_and_a_series_has_no_table(tmp_path: Path) -> None:
    other = ran(make_case("cartpole-weak", device="cuda", scaling="weak"), 0.5)
    version = read_version(write_results([other], tmp_path), name="v")
    assert "lerobot" not in page_sources(version)
    assert page.of_series(version, version.series("cartpole-weak")) == []


def test_runs_that_failed_say_why_and_have_no_figure(tmp_path: Path) -> None:
    failed = failed_result(case_of("policy_rollout", FEW), outcome="crashed", reason="rank 0: no memory")
    (found,) = acting([failed])
    assert (found.fps, found.latency_s, found.rare_latency_s) == (None, None, None)
    version = read_version(write_results([failed, results()[2]], tmp_path), name="v")
    assert page.answer(version).text.startswith("Its data set writer keeps")
    assert "crashed. rank 0: no memory" in page.sets(version).text


def test_on_a_cpu_nothing_was_trained(tmp_path: Path) -> None:
    version = read_version(write_results(results("cpu"), tmp_path), name="v")
    assert "lerobot" not in page_sources(version)
    assert what_worked.opening(version).text.startswith("Nothing was trained here")
