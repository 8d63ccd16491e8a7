"""Nodes that are parts of this machine: how it is shared out, how they end together, and a real round of two."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import UsageError
from suite.install.worker import Worker
from suite.launch.emulated.launcher import EmulatedSettings
from suite.launch.emulated.run import parts_of, run, visible_gpus
from suite.launch.registry import resources
from suite.matrix.plan import plan
from suite.matrix.resources import Resources
from suite.records.collect import collect
from suite.schema.record import Case, Environment, Launch, Stack
from tests.conftest import CaseMaker
from tests.fixtures.runs.asked_options import changed, options_with
from tests.fixtures.runs.real_runs import MARK, NUM_CPUS, cartpole, cases_of, launch_of, marked_processes, matrix_of
from tests.suite.matrix.test_plan import ANT, CATALOG

# A rank in torchrun's place: says who it is, then does as its node was told.
RANK = """
import json, os, pathlib, sys, time
seen = {name: os.environ.get(name) for name in ("NCCL_HOSTID", "CUDA_VISIBLE_DEVICES", "LABSCALE_NODE_RANK")}
seen |= {"cpus": sorted(os.sched_getaffinity(0)), "port": os.environ["LABSCALE_RENDEZVOUS_PORT"]}
node = seen["LABSCALE_NODE_RANK"]
pathlib.Path(sys.argv[1], f"seen-{node}.json").write_text(json.dumps(seen))
while not all(pathlib.Path(sys.argv[1], f"seen-{other}.json").exists() for other in (0, 1)):
    time.sleep(0.01)
"""
WAITS = "time.sleep(600)"
STACKS: tuple[Stack, ...] = ("kitless",)


def stand_in(case: Case, run_dir: Path, *, then: str = "") -> Launch:
    """Two nodes of this program, after which both do ``then``."""
    argv = (sys.executable, "-c", RANK + then, str(run_dir))
    return Launch(case=case, round=0, argv=argv, env={MARK: str(run_dir)}, run_dir=str(run_dir))


@pytest.fixture
def two_nodes(make_case: CaseMaker) -> Case:
    return make_case(nnodes=2, nproc_per_node=1)


def test_each_node_has_its_own_gpus_and_cores() -> None:
    case = replace(ANT, nnodes=2, nproc_per_node=2)
    parts = parts_of(case, gpus=("4", "5", "6", "7"), cpus=(0, 2, 4, 6, 1, 3, 5))
    assert [part.gpus for part in parts] == [("4", "5"), ("6", "7")]
    assert [part.cpus for part in parts] == [(0, 2, 4), (6, 1, 3)]
    on_cpu = parts_of(replace(case, device="cpu"), gpus=(), cpus=(0, 1))
    assert [(part.gpus, part.cpus) for part in on_cpu] == [((), (0,)), ((), (1,))]


@pytest.mark.parametrize(("visible", "names"), [(None, ("0", "1")), ("3, 5", ("3", "5")), ("", ())])
def test_gpus_are_those_that_the_caller_may_use(visible: str | None, names: tuple[str, ...]) -> None:
    assert visible_gpus(visible, 2) == names


@pytest.mark.parametrize(
    ("nodes", "ranks", "reason"), [(1, 4, None), (2, 2, None), (2, 4, "needs 8 GPUs, available: 4")]
)
def test_all_nodes_together_have_what_the_host_has(nodes: int, ranks: int, reason: str | None) -> None:
    world = nodes * ranks
    case = replace(ANT, nnodes=nodes, nproc_per_node=ranks, num_envs_global=1024 * world)
    (item,) = plan(
        [case],
        resources=Resources(nnodes=2, gpus_per_node=4, cpus_per_node=16, is_one_host=True),
        device="cuda",
        available_stacks=STACKS,
        rounds=1,
        catalog=CATALOG,
    )
    assert item.infeasible == reason


def test_the_host_is_one_place_with_so_many_nodes(environment: Environment) -> None:
    options = options_with(matrix="full", launcher="emulated", launcher_settings=EmulatedSettings(emulate_nodes=2))
    machine = replace(environment, num_cpus=8)
    expected = Resources(nnodes=2, gpus_per_node=len(machine.gpus), cpus_per_node=8, is_one_host=True)
    assert resources(options, machine) == expected
    with pytest.raises(UsageError, match="--emulate-nodes is 9"):
        resources(changed(options, launcher_settings=EmulatedSettings(emulate_nodes=9)), machine)
    with pytest.raises(UsageError, match="--emulate-nodes N"):
        resources(changed(options, launcher_settings=None), machine)


def test_nccl_takes_each_part_for_a_host(two_nodes: Case, tmp_path: Path) -> None:
    case = replace(two_nodes, device="cuda")
    result = run(stand_in(case, tmp_path / "r0"), gpus=("6", "7"), cpus=(0, NUM_CPUS - 1))
    assert (result.exit_code, result.ended_by) == (0, None)
    seen = [json.loads((tmp_path / "r0" / f"seen-{node}.json").read_text()) for node in (0, 1)]
    assert [one["CUDA_VISIBLE_DEVICES"] for one in seen] == ["6", "7"]
    assert len({one["NCCL_HOSTID"] for one in seen}) == 2
    assert len({one["port"] for one in seen}) == 1
    assert [len(one["cpus"]) for one in seen] == [1, 1]


@pytest.mark.parametrize(
    ("then", "exit_code"),
    [("if node == '1': sys.exit(3)", 3), ("if node == '0': os.kill(os.getpid(), 9)", -9)],
    ids=["fails", "killed"],
)
def test_one_node_that_ends_badly_ends_the_other(
    then: str, exit_code: int, two_nodes: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("suite.launch.emulated.run.PEER_PATIENCE_S", 0.2)
    result = run(stand_in(two_nodes, tmp_path / "r0", then=f"{then}\n{WAITS}"), gpus=(), cpus=(0, 0))
    assert (result.exit_code, result.ended_by) == (exit_code, None)
    assert marked_processes(tmp_path / "r0") == []


def test_a_round_beyond_its_time_ends_on_every_node(two_nodes: Case, tmp_path: Path) -> None:
    case = replace(two_nodes, timeout_s=2.0)
    result = run(stand_in(case, tmp_path / "r0", then=WAITS), gpus=(), cpus=(0, 0))
    assert result.ended_by == "timeout"
    assert marked_processes(tmp_path / "r0") == []


@pytest.mark.slow  # what it adds to that of two hosts over ssh is above
@pytest.mark.worker
def test_two_emulated_nodes_train_to_a_complete_record(
    worker: Worker, environment: Environment, tmp_path: Path
) -> None:
    (one,) = cases_of(matrix_of(cartpole("rsl_rl", topologies=("1x2",))), tmp_path)
    launch = launch_of(worker, replace(one, nnodes=2, nproc_per_node=1), tmp_path / "r0")
    result = run(launch, gpus=(), cpus=(0, NUM_CPUS - 1))
    assert marked_processes(launch.run_dir) == []
    record = collect(tmp_path / "r0", launch.case, 0, result, environment, argv=launch.argv)
    assert record.outcome == "completed", record.reason
    assert record.transport is not None
    assert (record.transport.emulated, record.transport.interfaces) == (True, ("lo",))
    assert record.clocks is not None
    assert [clock.node for clock in record.clocks] == [1]
    assert len({rank.parameters_sha256 for rank in record.ranks}) == 1
