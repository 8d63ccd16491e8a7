"""The fingerprint of a workload is the same in another process, folder and asset root, and says what differs."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from suite.identity import workload_differences
from suite.provision import Worker
from suite.schema import Case, Scalar
from tests.trained_runs import Trained, TrainedRun
from tests.worker_probes import probe

pytestmark = pytest.mark.worker

Fingerprint = Mapping[str, Scalar]


def fingerprint(worker: Worker, folder: Path, case: Case) -> Fingerprint:
    """That of the real task, made in a process of its own with an asset root of its own name."""
    folder.mkdir()
    assert worker.asset_root is not None
    assets = folder / "assets"
    assets.symlink_to(worker.asset_root)
    (folder / "case.json").write_text(json.dumps(asdict(case)), encoding="utf-8")
    return probe(replace(worker, asset_root=assets), "workload", str(folder))


@pytest.fixture(scope="module")
def trained(trained_run: TrainedRun) -> Trained:
    return trained_run("rsl_rl-1x1")


@pytest.fixture(scope="module")
def first(trained: Trained) -> Fingerprint:
    """What a rank wrote that trained."""
    assert trained.record.workload is not None
    return trained.record.workload


def test_an_override_changes_it_and_says_where_and_nothing_else_does(
    worker: Worker, tmp_path: Path, trained: Trained, first: Fingerprint
) -> None:
    """Another process, seed, folder and asset root, and fewer environments, are the same workload."""
    changed = replace(
        trained.case,
        seed=7,
        num_envs=16,
        overrides=(
            "env.sim.physics.solver_cfg.iterations=50",
            "env.scene.robot.init_state.pos=[0.0,0.0,2.5]",
            "agent.algorithm.gamma=0.9",
        ),
    )
    second = fingerprint(worker, tmp_path / "second", changed)
    differences = workload_differences(first, second)
    assert [difference.partition(":")[0] for difference in differences] == [
        "agent.algorithm.gamma",
        "env.scene.robot",
        "env.sim.physics.solver_cfg.iterations",
    ]
    assert differences[0] == "agent.algorithm.gamma: 0.99 and 0.9"
    assert differences[2].endswith(": 100 and 50")
    assert list(first) == list(second)


def test_it_holds_what_the_task_is(first: Fingerprint) -> None:
    wanted = {
        "task": "Isaac-Cartpole",
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


def test_it_holds_no_place_of_this_machine(first: Fingerprint, trained: Trained, worker: Worker) -> None:
    text = json.dumps(first)
    assert str(trained.run_dir) not in text
    assert str(worker.asset_root) not in text
    assert "0x" not in text  # an address
