"""A deterministic case in real runs: what each RL library leaves set after its training.

On the CPU runs of one seed are equal as shipped too: ``tests/suite/campaign/runs/test_real_turns.py``.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from suite.install.worker import Worker
from suite.schema.record import Environment
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of, train

LIBRARIES = ("rl_games", "rsl_rl", "skrl")
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


@pytest.mark.worker
@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_asked_for_is_still_set_after_training(
    library: str, worker: Worker, environment: Environment, tmp_path: Path
) -> None:
    """Seeding an environment sets cuDNN back."""
    (case,) = cases_of(matrix_of(cartpole(library, minibatch_size=1024)), tmp_path)
    record = train(launch_of(worker, replace(case, deterministic=True), tmp_path / "r0"), environment)
    assert record.outcome == "completed", record.reason
    (rank,) = record.ranks
    assert {name: rank.settings[name] for name in IN_USE} == IN_USE | (SET_BACK if library == "skrl" else {})
    assert record.workload is not None
    assert record.workload["env.sim.physics.deterministic"] is True
