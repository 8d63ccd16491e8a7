"""Feasibility, estimates, and the command of a round."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from suite.errors import UsageError
from suite.matrix.catalog import Catalog, load_catalog
from suite.matrix.plan import EMPTY_CACHE, plan, render_launch, shell_command
from suite.matrix.resources import Cores, cores_of_gpus
from suite.schema.record import ROUND_VARIABLE, Case, Device, Launch, PlannedCase, Stack
from tasks.rank.case_file import round_of

GOLDEN = Path(__file__).parents[2] / "golden" / "plan"
CATALOG = load_catalog()
HAND = "Isaac-Reorient-Cube-Shadow-Camera-Direct"

ANT = Case(
    case_id="ant/rl_games-kitless-n2048-1x2",
    series="ant",
    scaling="weak",
    task="Isaac-Ant",
    rl_library="rl_games",
    stack="kitless",
    device="cuda",
    nnodes=1,
    nproc_per_node=2,
    num_envs=1024,
    num_envs_global=2048,
    num_steps_per_env=16,
    iterations=60,
    minibatch_rule="fixed_minibatch",
    minibatch_size=16384,
    optimiser_steps=4,
    seed=42,
    assets="offline",
)
RSL = replace(ANT, rl_library="rsl_rl", num_steps_per_env=32, minibatch_size=8192, optimiser_steps=20)

CARTPOLE = replace(
    RSL, task="Isaac-Cartpole-Direct", rl_library="torchrl", nproc_per_node=1, num_envs_global=1024,
    num_steps_per_env=16, minibatch_size=4096,
)  # fmt: skip


def planned(
    case: Case,
    *,
    gpus: int = 8,
    cpus: int = 16,
    nnodes: int = 1,
    device: Device | None = None,
    stacks: Collection[Stack] = get_args(Stack),
    catalog: Catalog = CATALOG,
) -> PlannedCase:
    [result] = plan(
        [case],
        gpus_available=gpus,
        cpus_available=cpus,
        device=device or case.device,
        available_stacks=stacks,
        nnodes_available=nnodes,
        rounds=3,
        catalog=catalog,
    )
    return result


@pytest.mark.parametrize("case", [ANT, RSL, CARTPOLE, replace(ANT, device="cpu"), replace(ANT, stack="ovphysx")])
def test_what_fits_is_feasible(case: Case) -> None:
    assert planned(case).infeasible is None


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (replace(ANT, nproc_per_node=16, num_envs=128, minibatch_size=2048), "needs 16 GPUs, available: 8"),
        (
            replace(ANT, device="cpu", nproc_per_node=32, num_envs=64, minibatch_size=1024),
            "needs 32 CPU cores, one per rank, available: 16",
        ),
        (
            replace(ANT, nnodes=2, num_envs=512, minibatch_size=8192),
            "needs a multi-node launcher and 2 nodes, available: 1",
        ),
        (replace(ANT, num_envs_global=2049), "2049 environments do not divide by 2 ranks; needs a multiple of 2"),
        (
            replace(ANT, minibatch_size=32768, optimiser_steps=0),
            (
                "rl_games cannot cut a rank's 16384 samples (1024 environments x 16 steps) into minibatches of 32768; "
                "needs minibatches of 16384"
            ),
        ),
        (
            replace(ANT, minibatch_size=10000),
            (
                "rl_games cannot cut a rank's 16384 samples (1024 environments x 16 steps) into minibatches of 10000; "
                "needs minibatches of 8192 or 16384"
            ),
        ),
        (
            replace(RSL, minibatch_size=65536, optimiser_steps=0),
            (
                "rsl_rl cannot cut a rank's 32768 samples (1024 environments x 32 steps) into minibatches of 65536; "
                "needs minibatches of 32768"
            ),
        ),
        (
            replace(RSL, minibatch_size=20000, optimiser_steps=5),
            (
                "rsl_rl cannot cut a rank's 32768 samples (1024 environments x 32 steps) into minibatches of 20000; "
                "needs minibatches of 16384 or 32768"
            ),
        ),
        (
            replace(ANT, stack="ovphysx", device="cpu"),
            "stack ovphysx does not run on cpu; needs cuda",
        ),
        (
            replace(RSL, stack="ovphysx", task=HAND),
            (
                "stack ovphysx does not run Isaac-Reorient-Cube-Shadow-Camera-Direct; "
                "it runs Isaac-Cartpole-Direct, Isaac-Ant"
            ),
        ),
        (
            replace(ANT, task=HAND, rl_library="skrl"),
            "Isaac-Reorient-Cube-Shadow-Camera-Direct has no agent for skrl; needs rl_games or rsl_rl",
        ),
        (
            replace(ANT, rl_library="sb3"),
            ("sb3 trains in one process only, and the case has 2 ranks; needs the topology 1x1, or another RL library"),
        ),
        (
            replace(CARTPOLE, nproc_per_node=2, num_envs_global=2048),
            (
                "torchrl trains in one process only, and the case has 2 ranks; needs the topology 1x1, or another RL "
                "library"
            ),
        ),
        (
            replace(CARTPOLE, workload="async_pipeline", nproc_per_node=4),
            "is a pipeline of 2 processes, and has 4 ranks; needs the topology 1x1 or 1x2",
        ),
        (
            replace(CARTPOLE, num_envs=255, num_envs_global=255, num_steps_per_env=6, minibatch_size=382),
            (
                "torchrl cannot cut a rank's 1530 samples (255 environments x 6 steps) into minibatches of 382; "
                "needs minibatches of 306 or 510"
            ),
        ),
        (
            replace(CARTPOLE, workload="collection", rl_library="rsl_rl"),
            "is the control collection, which is not run with rsl_rl; needs torchrl",
        ),
        (
            replace(CARTPOLE, workload="collection_ray", rl_library="rsl_rl"),
            "is the control collection_ray, which is not run with rsl_rl; needs torchrl",
        ),
        (
            replace(ANT, rl_library="sb3", nproc_per_node=1, num_envs_global=1024, minibatch_size=32768),
            (
                "sb3 cannot cut a rank's 16384 samples (1024 environments x 16 steps) into minibatches of 32768; "
                "needs minibatches of 16384"
            ),
        ),
    ],
)
def test_each_reason_for_refusal(case: Case, reason: str) -> None:
    result = planned(case)
    assert result.infeasible == reason
    lacks_hardware = reason.startswith("needs ")
    assert (result.estimated_wall_s is not None) == lacks_hardware
    assert (result.estimated_gpu_minutes is not None) == lacks_hardware


@pytest.mark.parametrize(
    ("stack", "needed"),
    [
        ("kitless", ""),
        ("ovphysx", "; needs ovphysx==0.6.4.72118723, ovstage==0.2.1.385922 in the worker"),
        ("isaacsim", "; needs the container image isaacsim"),
    ],
)
def test_a_stack_that_is_not_installed(stack: Stack, needed: str) -> None:
    assert planned(replace(ANT, stack=stack), stacks=()).infeasible == f"stack {stack} is not installed here{needed}"


def test_a_stack_that_the_catalog_lacks() -> None:
    catalog = CATALOG.model_copy(update={"stacks": {"ovphysx": CATALOG.stacks["ovphysx"]}})
    assert planned(ANT, catalog=catalog).infeasible == "stack kitless is not in the catalog, which has ovphysx"


def test_a_case_for_the_other_device() -> None:
    assert planned(ANT, device="cpu").infeasible == "is a case for cuda, and this plan is for cpu"


def test_all_reasons_are_given_and_gpus_count_per_node() -> None:
    case = replace(ANT, nnodes=2, nproc_per_node=4, num_envs=256, minibatch_size=4096)
    assert planned(case, gpus=4, nnodes=2).infeasible is None
    assert planned(case, gpus=2).infeasible == (
        "needs a multi-node launcher and 2 nodes, available: 1; needs 4 GPUs per node, available: 2"
    )


def test_a_remainder_is_no_reason_where_the_library_takes_it() -> None:
    # 1023 x 32 samples in 4 minibatches: rsl_rl leaves some out, skrl makes them unequal; neither refuses.
    case = replace(RSL, num_envs=1023, num_envs_global=2046, num_steps_per_env=33, minibatch_size=1023 * 33 // 4)
    assert (case.num_envs * case.num_steps_per_env) % 4 != 0
    assert planned(case).infeasible is None


def test_an_estimate_is_start_up_plus_iterations_for_every_round_and_gpu() -> None:
    cost = CATALOG.tasks["Isaac-Ant"].costs[0]
    result = planned(ANT)
    assert result.estimated_wall_s == pytest.approx(cost.start_up_s + 60 * cost.iteration_s)
    assert result.estimated_wall_s is not None
    assert result.estimated_gpu_minutes == pytest.approx(3 * 2 * result.estimated_wall_s / 60)
    assert planned(replace(ANT, device="cpu")).estimated_gpu_minutes == 0


def test_nothing_known_is_none() -> None:
    ant = CATALOG.tasks["Isaac-Ant"].model_copy(update={"costs": ()})
    result = planned(ANT, catalog=CATALOG.model_copy(update={"tasks": {"Isaac-Ant": ant}}))
    assert (result.infeasible, result.estimated_wall_s, result.estimated_gpu_minutes) == (None, None, None)


def launch_of(
    case: Case, asset_root: Path | None = Path("/assets"), *, cores: Cores = (), visible_gpus: str | None = None
) -> Launch:
    return render_launch(
        case,
        round_index=1,
        worker_python=Path("/venv/bin/python"),
        project_root=Path("/project"),
        run_dir=Path("/out/raw/ant weak/case/r1"),
        asset_root=asset_root,
        cache_dir=Path("/cache"),
        cpus=16,
        cores=cores,
        visible_gpus=visible_gpus,
    )


def test_a_cold_case_has_its_caches_in_the_folder_of_its_run_and_all_else_is_alike() -> None:
    warm, cold = launch_of(ANT).env, launch_of(replace(ANT, kernel_cache="empty")).env
    differing = {name: cold[name] for name in cold if cold[name] != warm[name]}
    kernels = Path(launch_of(ANT).run_dir) / EMPTY_CACHE
    assert differing == {
        "WARP_CACHE_PATH": f"{kernels}/warp",
        "TORCHINDUCTOR_CACHE_DIR": f"{kernels}/torchinductor",
        "TRITON_CACHE_DIR": f"{kernels}/triton",
        "CUDA_CACHE_PATH": f"{kernels}/cuda",
    }
    assert cold.keys() == warm.keys()


def test_ranks_of_all_rounds_have_seeds_of_their_own_only_if_the_matrix_asks() -> None:
    two = replace(ANT, nproc_per_node=2)
    assert [two.seed_of(rank=rank, round_index=1) for rank in (0, 1)] == [ANT.seed, ANT.seed + 1]
    seeded = replace(two, seed_per_round=True)
    found = [seeded.seed_of(rank=rank, round_index=number) for number in range(3) for rank in (0, 1)]
    assert found == [ANT.seed + index for index in range(6)]
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
    assert "needs 2 CPU cores, one per rank" in on_cpu


@pytest.mark.parametrize("gpus", [1, 2])
def test_a_pipeline_is_two_processes_of_which_one_simulates(gpus: int) -> None:
    case = replace(CARTPOLE, workload="async_pipeline", nproc_per_node=gpus)
    assert planned(case).infeasible is None
    assert (case.num_processes, case.num_simulating, case.world_size) == (2, 1, gpus)
    assert (case.global_minibatch_size, case.agent_library) == (case.minibatch_size, "torchrl")
    assert planned(replace(case, device="cpu"), cpus=1).infeasible is not None


def test_without_turns_nobody_starts_trainings_together() -> None:
    case = replace(ANT, nproc_per_node=1, trainings_per_gpu=2, division="open")
    (found,) = plan(
        [case], gpus_available=1, cpus_available=16, device="cuda", available_stacks=["kitless"], takes_turns=False,
        rounds=1, catalog=CATALOG,
    )  # fmt: skip
    assert found.infeasible == "needs turns, in which its trainings run together; this campaign takes none"


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
    assert " taskset --cpu-list 8,9,10,11 /venv/bin/python -m torch.distributed.run " in shell_command(launch)


def test_the_cores_of_a_host_are_shared_out_evenly() -> None:
    shares = cores_of_gpus(num_gpus=4, cores=range(10, 28), num_cpus=18)
    assert (shares[0], shares[3]) == ((10, 11, 12, 13), (22, 23, 24, 25))
    assert cores_of_gpus(num_gpus=2, cores=range(8), num_cpus=4) == ((0, 1), (2, 3))  # a quota
    assert cores_of_gpus(num_gpus=1, cores=range(16), num_cpus=16) == ()
    assert cores_of_gpus(num_gpus=4, cores=range(3), num_cpus=3) == ()


def test_the_callers_own_packages_stay_on_the_python_path() -> None:
    """An air-gapped host keeps the worker's packages there; the project comes first."""
    launch = render_launch(
        ANT,
        round_index=0,
        worker_python=Path("python"),
        project_root=Path("/project"),
        run_dir=Path("/out"),
        asset_root=Path("/assets"),
        cache_dir=Path("/cache"),
        cpus=1,
        python_path="/site:/more",
    )
    assert launch.env["PYTHONPATH"] == "/project:/site:/more"


def as_text(launch: Launch) -> str:
    return "".join(f"{line}\n" for line in (*(f"{k}={v}" for k, v in sorted(launch.env.items())), *launch.argv))


@pytest.mark.parametrize(
    ("name", "case", "asset_root"),
    [
        ("launch_cpu.txt", replace(ANT, device="cpu"), Path("/assets")),
        ("launch_cuda_official.txt", replace(ANT, nproc_per_node=8, num_envs=256, assets="official"), None),
    ],
)
def test_the_launch_is_as_reviewed(name: str, case: Case, asset_root: Path | None) -> None:
    launch = launch_of(case, asset_root)
    assert (launch.round, launch.run_dir, launch.case) == (1, "/out/raw/ant weak/case/r1", case)
    assert as_text(launch) == (GOLDEN / name).read_text(encoding="utf-8")


def test_the_shell_command_is_one_line_that_quotes() -> None:
    expected = (GOLDEN / "shell_command.txt").read_text(encoding="utf-8")
    assert shell_command(launch_of(replace(ANT, device="cpu"))) + "\n" == expected


def test_ranks_never_get_less_than_one_thread() -> None:
    assert launch_of(replace(ANT, nproc_per_node=32)).env["OMP_NUM_THREADS"] == "1"


def test_a_launch_of_several_nodes_is_for_each_of_them() -> None:
    argv = launch_of(replace(ANT, nnodes=2)).argv
    assert argv[1:4] == ("-m", "suite.launch.nodes.node", f"{argv[-1]}/logs")
    assert argv[4:6] == ("--nnodes=2", "--nproc-per-node=2")
    assert not [part for part in argv if part.startswith(("--rdzv", "--log-dir"))], "these differ from node to node"


def test_a_launch_needs_an_asset_root_for_offline_assets() -> None:
    with pytest.raises(UsageError, match="offline assets, but no asset root"):
        launch_of(ANT, asset_root=None)
