"""A deterministic case in real runs: what each RL library leaves set after its training.

On the CPU runs of one seed are equal as shipped too: ``tests/suite/campaign/runs/test_real_turns.py``.
"""

import pytest

from tests.fixtures.runs.trained_runs import DETERMINISTIC, SERIES, TrainedRun

IN_USE = {
    "deterministic_algorithms": True,
    "cublas_workspace_config": ":4096:8",
    "cudnn_deterministic": True,
    "cudnn_benchmark": False,
    "warp_deterministic": "run_to_run",
}
SET_BACK = {"cudnn_deterministic": False, "cudnn_benchmark": True}  # by skrl's reset with a seed, upstream too


@pytest.mark.worker
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_what_is_asked_for_is_still_set_after_training(
    name: str, run_of_campaign: TrainedRun, trained_run: TrainedRun
) -> None:
    """Seeding an environment sets cuDNN back."""
    record = (run_of_campaign if name in SERIES else trained_run)(name).record
    for rank in record.ranks:
        assert {setting: rank.settings[setting] for setting in IN_USE} == IN_USE | (
            SET_BACK if name == "skrl-1x2" else {}
        )
    assert record.workload is not None
    assert record.workload["env.sim.physics.deterministic"] is True
