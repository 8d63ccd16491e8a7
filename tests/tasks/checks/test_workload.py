"""The fingerprint of a workload is the same in another process and folder, and says what differs."""

from collections.abc import Mapping

import pytest

from suite.files.paths import ROOT
from suite.records.collect import workload_differences
from suite.records.store import read_case
from suite.schema.record import Scalar
from tests.fixtures.runs.trained_runs import TrainedRun

pytestmark = pytest.mark.worker

Fingerprint = Mapping[str, Scalar]


@pytest.fixture(scope="module")
def first(run_of_campaign: TrainedRun) -> Fingerprint:
    """What a rank wrote that trained."""
    workload = run_of_campaign("rsl_rl-1x1").record.workload
    assert workload is not None
    return workload


def test_overrides_and_determinism_change_it_and_nothing_else_does(
    run_of_campaign: TrainedRun, first: Fingerprint
) -> None:
    """Another process and folder change nothing. A second rank doubles the minibatch of all."""
    second = run_of_campaign("rsl_rl-1x2").record.workload
    assert second is not None
    differences = workload_differences(first, second)
    assert [difference.partition(":")[0] for difference in differences] == [
        "agent.algorithm.gamma",
        "env.scene.robot",
        "env.sim.physics.deterministic",
        "env.sim.physics.solver_cfg.disable_sensors",  # by Isaac Lab, for a deterministic run
        "env.sim.physics.solver_cfg.iterations",
        "global_minibatch_size",
    ]
    assert differences[0] == "agent.algorithm.gamma: 0.99 and 0.9"
    assert differences[4].endswith(": 100 and 50")
    assert differences[5] == "global_minibatch_size: 384 and 768"
    assert list(first) == list(second)


def test_a_seed_does_not_change_it() -> None:
    folders = [ROOT / "reports" / "results" / "2026.11" / f"h200-physx-learning-{seed}" for seed in (1, 2)]
    one_seed, other_seed = (read_case(folder / "cases/ant-physics/rsl_rl-kitless-n1024-1x1.json") for folder in folders)
    assert one_seed.case.seed != other_seed.case.seed
    assert one_seed.completed[0].workload == other_seed.completed[0].workload is not None


def test_it_holds_what_the_task_is(first: Fingerprint) -> None:
    wanted = {
        "task": "Small-Swing-Up",
        "observation_size.policy": "4",
        "action_size": "1",
        "reward_terms": "alive,terminating,pole_pos,cart_vel,pole_vel,success_rate",
        "physics": "newton_mjwarp",
        "renderer": "none",
        "decimation": 2,
        "episode_length_s": 5.0,
        "networks": "[32, 32]",
        "learning_epochs": 5,
        "mixed_precision": False,
    }
    assert {name: first[name] for name in wanted} == wanted
    assert first["physics_dt_s"] == pytest.approx(1 / 120)
