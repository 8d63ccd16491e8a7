"""How a planned case becomes a launch: processes, threads, cores, seeds, caches, and the command as reviewed."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import UsageError
from suite.files.paths import ROOT
from suite.matrix.plan import render_launch, shell_command
from suite.matrix.resources import Cores, Room, cores_of_gpus
from suite.schema.rank_protocol import round_of
from suite.schema.record import ROUND_VARIABLE, Case, Launch
from tests.suite.matrix.test_plan import ANT, planned

GOLDEN = Path(__file__).parents[2] / "golden" / "plan"


def launch_of(
    case: Case, asset_root: Path | None = Path("/assets"), *, cores: Cores = (), visible_gpus: str | None = None
) -> Launch:
    return render_launch(
        case, round_index=1, worker_python=Path("/venv/bin/python"), project_root=Path("/project"),
        run_dir=Path("/out/raw/ant weak/case/r1"), asset_root=asset_root, cache_dir=Path("/cache"), cpus=16,
        cores=cores, visible_gpus=visible_gpus,
    )  # fmt: skip


def test_ranks_of_all_rounds_have_seeds_of_their_own_only_if_the_matrix_asks() -> None:
    two = replace(ANT, nproc_per_node=2)
    assert [two.seed_of(rank=rank, round_index=1) for rank in (0, 1)] == [ANT.seed, ANT.seed + 1]
    seeded = replace(two, seed_per_round=True)
    seeds = [seeded.seed_of(rank=rank, round_index=number) for number in range(3) for rank in (0, 1)]
    assert seeds == [ANT.seed + index for index in range(6)]
    apart = replace(two, seed_per_round=1000)
    assert [apart.seed_of(rank=1, round_index=number) for number in range(2)] == [ANT.seed + 1, ANT.seed + 1001]
    assert ROUND_VARIABLE not in launch_of(two).env
    assert launch_of(seeded).env[ROUND_VARIABLE] == "1"
    assert (round_of(two, {}), round_of(seeded, {ROUND_VARIABLE: "4"})) == (0, 4)
    with pytest.raises(KeyError):
        round_of(seeded, {})  # a launcher that drops the variable must not repeat a seed unseen


def test_trainings_that_share_a_gpu_are_processes_of_one_launch_on_one_gpu() -> None:
    case = replace(ANT, nproc_per_node=1, trainings_per_gpu=2, division="open")
    launch = launch_of(case, cores=(8, 9, 10, 11))
    assert "--nproc-per-node=2" in launch.argv
    assert launch.env["CUDA_VISIBLE_DEVICES"] == "0"
    assert launch.env["OMP_NUM_THREADS"] == "2"
    assert [case.seed_of(rank=training, round_index=3) for training in (0, 1)] == [42, 43]
    assert planned(case, gpus=1).infeasible is None
    assert planned(replace(case, num_envs_global=1024)).infeasible is not None
    on_cpu = planned(replace(case, device="cpu"), cpus=1).infeasible
    assert on_cpu is not None
    assert "needs 2 CPU cores, one per process" in on_cpu


def test_ranks_of_which_only_what_they_learn_counts_share_one_gpu() -> None:
    case = replace(ANT, only_learning=True)
    assert (case.num_gpus, case.processes_per_gpu, case.num_processes, case.has_speed) == (1, 2, 2, False)
    launch = launch_of(case, cores=(8, 9, 10, 11))
    assert "--nproc-per-node=2" in launch.argv
    assert launch.env["CUDA_VISIBLE_DEVICES"] == "0"
    here, on_two = planned(case, gpus=1), planned(ANT, gpus=2)
    assert here.infeasible is None
    assert here.estimated_wall_s == on_two.estimated_wall_s is not None
    many = planned(replace(case, nproc_per_node=16, num_envs_global=16 * case.num_envs), gpus=1)
    assert many.estimated_wall_s is not None
    assert here.estimated_wall_s is not None
    assert here.estimated_wall_s < many.estimated_wall_s < 16 * here.estimated_wall_s
    for room, reason in (
        (Room(gpu_gb=99, host_gb=9, ranks=1), "its 2 processes need 13 GB of memory, available: 9"),
        (Room(gpu_gb=2, host_gb=99, ranks=2), "its 2 processes need 9 GB of the GPU that they share, available: 2"),
    ):
        assert planned(case, gpus=1, room=room).infeasible == reason
        assert planned(ANT, gpus=2, room=room).infeasible is None
        alone = replace(case, nproc_per_node=1, num_envs_global=case.num_envs)
        assert planned(alone, gpus=1, room=replace(room, host_gb=3)).infeasible is None  # as without only_learning
    every = str(planned(case, gpus=1, cpus=1, room=Room(gpu_gb=2, host_gb=9, ranks=1)).infeasible).split("; ")
    assert [reason for reason in every if "core" in reason] == ["needs 2 CPU cores, one per process, available: 1"]
    assert len(every) == 3
    jax = replace(case, rl_library="skrl_jax")
    own_gpu = "gives each process a GPU of its own"
    assert own_gpu in str(planned(jax, gpus=1).infeasible)
    assert own_gpu not in str(planned(replace(jax, device="cpu")).infeasible)


@pytest.mark.parametrize(
    ("visible", "expected"),
    [(None, "0,1"), ("4,5,6,7", "4,5"), ("GPU-a, GPU-b,GPU-c, GPU-d", "GPU-a,GPU-b"), ("3", "3")],
    ids=["all", "numbers", "names", "too few: plan shows such a case too"],
)
def test_a_round_with_cores_of_its_own_keeps_to_them_and_to_as_many_gpus(visible: str | None, expected: str) -> None:
    case = replace(ANT, device="cuda", nproc_per_node=2)
    launch = launch_of(case, cores=(8, 9, 10, 11), visible_gpus=visible)
    assert launch.env["CUDA_VISIBLE_DEVICES"] == expected
    assert launch.env["OMP_NUM_THREADS"] == "2"  # of four cores for two ranks
    assert launch.cpus == (8, 9, 10, 11)
    assert " taskset --cpu-list 8,9,10,11 /venv/bin/python -m suite.launch.nodes.node " in shell_command(launch)


def test_the_cores_of_a_host_are_shared_out_evenly() -> None:
    shares = cores_of_gpus(num_gpus=4, cores=range(10, 28), num_cpus=18)
    assert (shares[0], shares[3]) == ((10, 11, 12, 13), (22, 23, 24, 25))
    assert cores_of_gpus(num_gpus=2, cores=range(8), num_cpus=4) == ((0, 1), (2, 3))  # a quota
    assert cores_of_gpus(num_gpus=1, cores=range(16), num_cpus=16) == ()
    assert cores_of_gpus(num_gpus=4, cores=range(3), num_cpus=3) == ()


@pytest.mark.parametrize("is_safe", [True, False])
def test_a_folder_tasks_where_a_person_stands_is_not_taken_for_that_of_labscale(
    tmp_path: Path, *, is_safe: bool
) -> None:
    (tmp_path / "tasks.py").write_text("raise SystemExit('another tasks')\n")
    env = {name: value for name, value in launch_of(ANT).env.items() if is_safe or name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, "-m", "tasks.worker"], env={**os.environ, **env, "PYTHONPATH": str(ROOT)}, cwd=tmp_path,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ("another tasks" in done.stderr) is not is_safe


@pytest.mark.parametrize(
    ("name", "case", "asset_root"),
    [
        ("launch_cpu.txt", replace(ANT, device="cpu"), Path("/assets")),
        ("launch_cuda_official.txt", replace(ANT, nproc_per_node=8, num_envs=256, assets="official"), None),
        ("shell_command.txt", replace(ANT, device="cpu"), Path("/assets")),
    ],
)
def test_the_launch_is_as_reviewed(name: str, case: Case, asset_root: Path | None) -> None:
    launch = launch_of(case, asset_root)
    assert (launch.round, launch.run_dir, launch.case) == (1, "/out/raw/ant weak/case/r1", case)
    lines = [*(f"{variable}={value}" for variable, value in sorted(launch.env.items())), *launch.argv]
    text = shell_command(launch) if name == "shell_command.txt" else "\n".join(lines)
    assert f"{text}\n" == (GOLDEN / name).read_text(encoding="utf-8")


def test_a_launch_needs_an_asset_root_for_offline_assets() -> None:
    with pytest.raises(UsageError, match="offline assets, but no asset root"):
        launch_of(ANT, asset_root=None)
