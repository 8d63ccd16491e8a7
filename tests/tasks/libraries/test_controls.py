"""The controls: parts of training alone, run for real on the CPU.

The third, ``all_reduce``, runs on two hosts in ``tests.suite.launch.nodes.test_ssh``.
"""

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from suite.install.worker import Worker
from suite.schema.record import Environment, RankRecord, RunRecord, Workload
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of, train

MATRIX = matrix_of(
    cartpole("rsl_rl", name="step", workload="environment_step", iterations=4),
    cartpole(
        "rsl_rl", name="render", task="Isaac-Reorient-Cube-Shadow-Camera-Direct", workload="rendering",
        num_envs=4, num_steps_per_env=6, iterations=4,
    ),
)  # fmt: skip

Run = Callable[[str], RunRecord]


@pytest.fixture(scope="module")
def run(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("controls")
    environment = Environment(host_label=None, cpu_model=None, num_cpus=None, memory_gb=None, os=None, kernel=None)

    def run_it(series: str) -> RunRecord:
        (case,) = (case for case in cases_of(MATRIX, folder) if case.series == series)
        return train(launch_of(worker, case, folder / series), environment)

    return run_it


def marked(rank: RankRecord, column: str) -> float:
    """What a column has in the third iteration, the first whose sections are timed."""
    value = rank.samples[column][2]
    assert value is not None, column
    return value


@pytest.mark.worker
def test_stepping_alone_learns_nothing_and_spends_its_time_in_the_environment(run: Run) -> None:
    record = run("step")
    assert (record.outcome, record.reason) == ("completed", None)
    (rank,) = record.ranks
    step_s, iteration_s = marked(rank, "environment_step_time_s"), marked(rank, "iteration_time_s")
    assert 0.9 < step_s / iteration_s <= 1
    assert set(rank.samples["all_reduce_calls"]) == {None, 0.0}
    assert record.workload is not None
    assert record.workload["workload"] == "environment_step"


@pytest.mark.worker
def test_drawing_alone_draws_every_picture_of_a_rollout_and_steps_no_physics(run: Run) -> None:
    record = run("render")
    assert (record.outcome, record.reason) == ("completed", None)
    (rank,) = record.ranks
    assert set(rank.samples["control.pictures"]) == {6.0 * 4}
    assert rank.samples["simulate_time_s"] == rank.samples["environment_step_time_s"] == (None,) * 4
    render_s, iteration_s = marked(rank, "render_time_s"), marked(rank, "iteration_time_s")
    assert 0.5 < render_s / iteration_s <= 1
    assert {check.verdict for check in rank.validity if check.feature == "cameras"} == {"ok"}


def test_every_control_runs_for_real(tmp_path: Path) -> None:
    """Here, one on two hosts, and four in environments of their own (``test_torchrl``, ``test_lerobot``)."""
    here = {case.workload for case in cases_of(MATRIX, tmp_path)}
    elsewhere = {"all_reduce", "collection", "collection_ray", "policy_rollout", "dataset_recording"}
    assert here | elsewhere == set(get_args(Workload)) - {"train", "async_pipeline"}
