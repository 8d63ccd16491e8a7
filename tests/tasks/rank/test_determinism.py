"""A deterministic case in real runs: what each RL library leaves set after its training.

On the CPU runs of one seed are equal as shipped too: ``tests/suite/campaign/runs/test_real_turns.py``.
"""

import pytest

from tests.fixtures.runs.real_runs import cartpole
from tests.fixtures.runs.trained_runs import TrainSeries

IN_USE = {
    "deterministic_algorithms": True,
    "cublas_workspace_config": ":4096:8",
    "cudnn_deterministic": True,
    "cudnn_benchmark": False,
    "warp_deterministic": "run_to_run",
}
SET_BACK = {"cudnn_deterministic": False, "cudnn_benchmark": True}  # by skrl's reset with a seed, upstream too


@pytest.mark.worker
@pytest.mark.parametrize("library", ["rl_games", "rsl_rl", "skrl"])
def test_what_is_asked_for_is_still_set_after_training(library: str, train_series: TrainSeries) -> None:
    """Seeding an environment sets cuDNN back."""
    record = train_series(cartpole(library, minibatch_size=1024), deterministic=True).record
    (rank,) = record.ranks
    assert {name: rank.settings[name] for name in IN_USE} == IN_USE | (SET_BACK if library == "skrl" else {})
    assert record.workload is not None
    assert record.workload["env.sim.physics.deterministic"] is True
