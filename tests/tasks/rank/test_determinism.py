"""A deterministic case in real runs: what each RL library leaves set after its training.

On the CPU runs of one seed are equal as shipped too: ``tests/suite/campaign/runs/test_shared_gpu.py``.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from suite.install.worker import Worker
from suite.schema.record import Environment, RunRecord
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of, train
from tests.fixtures.runs.trained_runs import TrainedRun

pytestmark = pytest.mark.worker

IN_USE = {
    "deterministic_algorithms": True,
    "cublas_workspace_config": ":4096:8",
    "cudnn_deterministic": True,
    "cudnn_benchmark": False,
    "warp_deterministic": "run_to_run",
}
SET_BACK = {
    "cudnn_deterministic": False,
    "cudnn_benchmark": True,
}  # by skrl's reset with a seed, upstream too


def still_in_use(record: RunRecord) -> None:
    """Seeding an environment sets cuDNN back."""
    in_use = IN_USE | (SET_BACK if record.case.rl_library == "skrl" else {})
    for rank in record.ranks:
        assert {name: rank.settings[name] for name in in_use} == in_use
    assert record.workload is not None
    assert record.workload["env.sim.physics.deterministic"] is True


@pytest.mark.parametrize("library", ["rl_games", "rsl_rl"])
def test_what_is_asked_for_is_still_set_after_training(
    library: str, worker: Worker, environment: Environment, tmp_path: Path
) -> None:
    (case,) = cases_of(matrix_of(cartpole(library, minibatch_size=1024)), tmp_path)
    record = train(launch_of(worker, replace(case, deterministic=True), tmp_path / "r0"), environment)
    assert record.outcome == "completed", record.reason
    still_in_use(record)


def test_what_is_asked_for_is_still_set_after_training_with_skrl(trained_run: TrainedRun) -> None:
    still_in_use(trained_run("skrl-1x2").record)
