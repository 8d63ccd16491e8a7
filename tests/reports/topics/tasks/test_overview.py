"""The page of a task, on generated results and on the published version."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.analysis.trainings import Training
from reports.sets.version import read_version
from reports.site.pages import page_sources
from reports.topics.results import page
from reports.topics.tasks import overview
from suite.statistics.machine_model import FULL_SPEED_LOG_PROBE, MachineRuns
from tests.fixtures.results import version_2026_12
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import (
    full_results,
    make_case,
    make_result,
    on_gpus,
    sweep_results,
    write_results,
)


def test_the_page_of_a_task_says_how_it_scales_and_what_it_is() -> None:
    version = committed_version()
    assert overview.tasks(version) == ("Ant", "Cartpole", "Shadow Hand with camera")
    said = overview.opening(version, "Ant").text
    assert re.search(r"four H200s process \d\.\d to \d\.\d times the frames per second of one \(least: ", said)
    assert "The policy observes 60 numbers (policy); it acts with 8 numbers" in said
    assert "progress, alive, upright" in said
    assert "it acts with 1 number;" in overview.opening(version, "Cartpole").text
    shown = overview.scaling(version, "Ant").markup
    assert shown.count('<figure class="vega-figure"') == 1  # nobody split a fixed number of Ants
    assert "Cartpole" not in shown
    assert "ant-envs" in overview.sweeps(version, "Ant").text
    assert overview.sweeps(version, "Shadow Hand with camera").text == ""


def test_every_series_of_a_task_is_listed_with_its_runs(tmp_path: Path) -> None:
    version = read_version(write_results([*full_results(), *on_gpus(sweep_results())], tmp_path), name="v")
    rows = [row.split("\t") for row in overview.details(version, "Ant").text.splitlines()]
    assert [row[0] for row in rows[1:]] == ["ant-envs", "ant-weak"]
    weak = next(row for row in rows if row[0] == "ant-weak")
    assert weak[2:] == ["8", "23", "1"]  # cases that completed, of three runs each, one of which hung
    assert [row.split("\t")[0] for row in overview.details(version, "Cartpole").text.splitlines()] == [
        "Series",
        "cartpole-strong",
    ]
    assert {name for name in page_sources(version) if name.startswith("task-")} == {"task-ant", "task-cartpole"}


def test_a_task_on_one_number_of_gpus_has_no_chart(tmp_path: Path) -> None:
    version = read_version(write_results(on_gpus(sweep_results()), tmp_path), name="v")
    (task,) = overview.tasks(version)
    said = overview.opening(version, task).text
    assert "ran on one number of GPUs only" in said
    assert "No run stored what the task consists of." in said
    assert overview.scaling(version, task).markup == ""


def test_ranks_on_a_cpu_are_no_gpus(tmp_path: Path) -> None:
    results = [make_result(make_case("ant-weak", world_size=2), 0.5), *on_gpus([make_result(make_case(), 0.5)])]
    version = read_version(write_results(results, tmp_path), name="v")
    assert overview.most_frames(results[:1]) == ""  # no speed of a CPU is the most of anything
    assert "up to 2 ranks of one machine" in page.sureness(version).text


def test_a_task_says_how_far_training_goes_with_its_core_for_each_library_and_physics() -> None:
    said = overview.cpu_core(version_2026_12.version(), "Ant").text.splitlines()
    assert said[0] == "How far it goes with the CPU core"
    assert [re.findall(r"^With (\w+) on (\w+) ", line) for line in said[1:]] == [
        [("rl_games", "Newton")],
        [("rsl_rl", "Newton")],
        [("rsl_rl", "PhysX")],
    ]
    sentence = re.compile(r"makes it up to 1\.\d times as fast \(slope 0\.\d\d, .* machines\)\.$")
    assert all(sentence.search(line) for line in said[1:])
    assert overview.cpu_core(version_2026_12.version(), "Cartpole with camera").text == ""


@pytest.mark.parametrize(
    ("slope", "said"),
    [
        (0.0, "the CPU core hardly limits this training (0.0"),
        (0.7, "a core twice as fast makes it up to 1.6 times as fast"),
        (1.3, "a core twice as fast makes it up to 2.0 times as fast"),
    ],
)
def test_a_core_that_hardly_limits_training_is_said_so(slope: float, said: str) -> None:
    machines = tuple(
        MachineRuns(label=str(place), gpu="H200", runs=((slope * core, FULL_SPEED_LOG_PROBE + core),))
        for place, core in enumerate((0.0, 0.5, 1.0, 1.5, 2.0))
    )
    training = Training(case=make_case("ant-weak", device="cuda"), machines=machines, iterations=range(10))
    assert said in overview.of_core(training)
    assert overview.of_core(replace(training, machines=machines[:3])) == ""  # too few
