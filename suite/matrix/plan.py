"""Plan cases: which can run on this machine, why others cannot, what they cost, and which command starts a round.

Pure: nothing here looks at the machine or starts anything.
"""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import isqrt
from pathlib import Path
from typing import Final

from suite.errors import UsageError
from suite.files.paths import import_path
from suite.files.wording import counted
from suite.matrix.catalog import Catalog, LibraryEntry, TaskEntry
from suite.matrix.own_worker import own_worker_of
from suite.matrix.resources import Cores, Need, Resources, Room, load_of
from suite.schema.record import ROUND_VARIABLE, Case, Launch, PlannedCase, RlLibrary, Stack, Workload

THREAD_VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PXR_WORK_THREAD_LIMIT",  # USD
)
# The library of a control, if it is not rsl_rl.
CONTROLS_RUN_WITH: Final[Mapping[Workload, RlLibrary]] = {
    "collection": "torchrl",
    "collection_ray": "torchrl",
    "async_pipeline": "torchrl",
    "policy_rollout": "lerobot",
    "dataset_recording": "lerobot",
}
LOOK: Final[tuple[Workload, ...]] = ("rendering", "policy_rollout", "dataset_recording")  # at pictures
PIPELINE: Final = 2  # processes; with one GPU they share it
EMPTY_CACHE: Final = "kernels"  # in the folder of a run, for a case with an empty kernel cache


def plan(
    cases: Sequence[Case],
    *,
    resources: Resources,
    available_stacks: Collection[Stack],
    takes_turns: bool = True,
    one_worker: str | None = None,
    brings_python: bool = False,
    rounds: int,
    catalog: Catalog,
    room: Room | None = None,
) -> list[PlannedCase]:
    """Return for each case, in order, whether it can run here and what it costs.

    ``room`` is that of this machine, None if it is not known or another one measures. ``one_worker`` says why all
    cases have the same worker; with None, a case may have its own. If the user ``brings_python``, that may have what
    other pins have. The field ``infeasible`` has every reason why a case cannot
    run. Plans are made on login nodes, so a case that this machine is too small for still has an estimate; one whose
    stack or numbers do not work has none. Raises MatrixError for a task that the catalog does not have.
    """
    planned = []
    for case in cases:
        task = catalog.resolve(case.task)
        machine = list(_machine_reasons(case, resources))
        stack = list(_stack_reasons(case, task, catalog, available_stacks))
        workload = list(_workload_reasons(case, task, catalog.libraries[case.rl_library]))
        if case.trainings_per_gpu > 1 and not takes_turns:
            # Only the keeper of turns starts trainings at the same moment, again and again.
            machine.append("needs turns, in which its trainings run together; this campaign takes none")
        if case.only_learning and case.world_size > 1:
            machine += _sharing_reasons(case, Need.planned(case, catalog) or Need.without_gpu(case), room)
        machine += _worker_reasons(case, one_worker, brings_python=brings_python)
        reasons = [*machine, *stack, *workload]
        cost = None if stack or workload else task.cost_of(case)
        wall_s, load = None, load_of(case, renders=task.cameras)
        if cost is not None:
            wall_s = cost.start_up_s + case.iterations * max(1.0, load) * cost.iteration_of_s(case)
        planned.append(
            PlannedCase(
                case=case,
                rounds=rounds,
                infeasible="; ".join(reasons) or None,
                estimated_wall_s=wall_s,
                estimated_start_s=None if cost is None else cost.start_up_s,
                estimated_load=load,
            )
        )
    return planned


def render_launch(
    case: Case,
    *,
    round_index: int,
    worker_python: Path,
    project_root: Path,
    run_dir: Path,
    asset_root: Path | None,
    cache_dir: Path,
    cpus: int,
    cores: Cores = (),
    visible_gpus: str | None = None,
    python_path: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Launch:
    """Return the command of one round, which starts torchrun; each node runs it (``suite.launch.nodes.node``).

    ``asset_root`` is the folder of offline assets, unused for official ones. ``cpus`` is how many cores the node may
    use. With ``cores``, the round uses only those, and only as many GPUs as it needs: the first ones in
    ``visible_gpus``, the caller's CUDA_VISIBLE_DEVICES. ``python_path`` is the caller's PYTHONPATH, where an air-gapped
    host keeps the worker's packages. ``settings`` are the user's (``suite.schema.rank_protocol``); labscale's own
    win. Raises UsageError for offline assets without a root.
    """
    kernels = cache_dir if case.kernel_cache == "kept" else run_dir / EMPTY_CACHE
    env = dict(settings or {}) | _worker_env(case, cache_dir=kernels, cpus=len(cores) or cpus)
    env |= _asset_env(case, asset_root)
    if cores and case.device == "cuda":
        names = visible_gpus.split(",") if visible_gpus else map(str, range(case.gpus_per_node))
        env["CUDA_VISIBLE_DEVICES"] = ",".join(name.strip() for name in [*names][: case.gpus_per_node])
    if case.seed_per_round:
        env[ROUND_VARIABLE] = str(round_index)
    env |= import_path(project_root, python_path)  # the project is not installed in the worker's environment
    return Launch(
        case=case,
        round=round_index,
        argv=_argv(case, worker_python, run_dir),
        env=env,
        run_dir=str(run_dir),
        cpus=cores,
    )


def _argv(case: Case, worker_python: Path, run_dir: Path) -> tuple[str, ...]:
    return (
        str(worker_python),
        "-m",
        "suite.launch.nodes.node",
        str(run_dir / "logs"),
        f"--nnodes={case.nnodes}",
        f"--nproc-per-node={case.processes_per_node}",
        "--max-restarts=0",  # a restarted round would not be a single measurement
        "--redirects=3",
        "-m",
        "tasks.worker",
        str(run_dir),
    )


def shell_command(launch: Launch) -> str:
    """Return the launch as one line for a POSIX shell, with its environment."""
    settings = [f"{name}={shlex.quote(value)}" for name, value in sorted(launch.env.items())]
    cores = ("taskset", "--cpu-list", ",".join(map(str, launch.cpus))) if launch.cpus else ()
    return " ".join([*settings, shlex.join((*cores, *launch.argv))])


def _machine_reasons(case: Case, resources: Resources) -> Iterator[str]:
    gpus, cpus, nnodes = resources.gpus_per_node, resources.cpus_per_node, resources.nnodes
    nodes_here = case.nnodes if resources.is_one_host else 1
    wanted, processes = nodes_here * case.gpus_per_node, nodes_here * case.processes_per_node
    if case.nnodes > nnodes:
        yield f"needs a multi-node launcher and {case.nnodes} nodes, available: {nnodes}"
    if case.device == "cuda" and wanted > gpus:
        per_node = " per node" if case.nnodes > 1 and not resources.is_one_host else ""
        yield f"needs {counted(wanted, 'GPU')}{per_node}, available: {gpus}"
    if processes > cpus and (case.device == "cpu" or case.only_learning):
        # Ranks that share a core would measure the scheduler.
        yield f"needs {processes} CPU cores, one per process, available: {cpus}"


def _sharing_reasons(case: Case, need: Need, room: Room | None) -> Iterator[str]:
    """Yield why the ranks of a case cannot share one GPU, and which memory is too small for all of them."""
    processes = counted(case.num_processes, "process")
    if case.rl_library == "skrl_jax" and case.device == "cuda":
        yield "gives each process a GPU of its own, and here they share one; needs the topology 1x1, or skrl"
    if room is not None and need.host_gb > room.host_gb:
        yield f"its {processes} need {need.host_gb:.0f} GB of memory, available: {room.host_gb:.0f}"
    if room is not None and need.gpu_gb is not None and room.gpu_gb is not None and need.gpu_gb > room.gpu_gb:
        yield f"its {processes} need {need.gpu_gb:.0f} GB of the GPU that they share, available: {room.gpu_gb:.0f}"


def _stack_reasons(case: Case, task: TaskEntry, catalog: Catalog, available: Collection[Stack]) -> Iterator[str]:
    entry = catalog.stacks[case.stack]
    if case.device not in entry.devices:
        yield f"stack {case.stack} does not run on {case.device}; needs {' or '.join(entry.devices)}"
    if task.obstacles is not None:
        if why := task.obstacles.get(case.stack):
            others = ", ".join(stack for stack in catalog.stacks if stack not in task.obstacles)
            which = f"stacks that do: {others}" if others else "no other stack does either"
            yield f"stack {case.stack} does not run {case.task} ({why}); {which}"
    elif entry.tasks is not None and case.task not in entry.tasks:
        yield f"stack {case.stack} does not run {case.task}; it runs {', '.join(entry.tasks)}"
    if case.stack not in available:
        packages = f"; needs {', '.join(entry.worker_packages)} in the worker" if entry.worker_packages else ""
        image = f"; needs the container image {entry.image}" if entry.image else ""
        yield f"stack {case.stack} is not installed here{packages}{image}"


def _worker_reasons(case: Case, one_worker: str | None, *, brings_python: bool) -> Iterator[str]:
    own = own_worker_of(case)
    if own and own.pins and case.stack != "kitless":
        yield f"needs the worker of {own}, which has no {case.stack}; needs the stack kitless"
    if own and one_worker and (own.packages or not brings_python):
        yield f"needs a worker of its own ({own}), and {one_worker}"


def _workload_reasons(case: Case, task: TaskEntry, library: LibraryEntry) -> Iterator[str]:
    """Yield the reasons that are the same on any machine: the numbers do not work."""
    if case.agent_library not in task.agents:
        yield f"{task.task} has no agent for {case.agent_library}; needs {' or '.join(task.agents)}"
        return
    if case.is_pipeline and (case.nnodes > 1 or case.nproc_per_node > PIPELINE):
        yield f"is a pipeline of {PIPELINE} processes, got {case.topology}; needs the topology 1x1 or 1x2"
    elif library.one_process and case.world_size > 1 and not case.is_pipeline:
        yield (
            f"{case.rl_library} trains in one process only, and the configuration has {case.world_size}; "
            "needs the topology 1x1, or another RL library"
        )
    if not case.learns and case.rl_library != (runs := CONTROLS_RUN_WITH.get(case.workload, "rsl_rl")):
        yield f"is the control {case.workload}, which is not run with {case.rl_library}; needs {runs}"
    if case.workload in LOOK and not task.cameras:
        yield f"has nothing to draw, because {task.task} has no camera; needs a task with one"
    if case.workload == "all_reduce" and case.world_size == 1:
        yield "has no other process to reduce gradients with; needs 2 processes or more"
    num_simulating = 1 if case.is_pipeline else case.num_processes
    if case.num_envs * num_simulating != case.num_envs_global:
        yield (
            f"{counted(case.num_envs_global, 'environment')} cannot be divided among {case.world_size} processes; "
            f"needs a multiple of {case.world_size}"
        )
        return  # without it the batch of a rank is unknown
    batch = case.num_envs * case.num_steps_per_env
    agent = task.agents[case.agent_library]
    if agent.minibatch_size is not None:
        # rl_games asserts this at its start. sb3 would take smaller minibatches than it was told.
        fits = case.minibatch_size > 0 and batch % case.minibatch_size == 0
    else:
        # rsl_rl and skrl take a count: they cut any batch, but not into any size of pieces, and not into empty ones.
        count = case.optimiser_steps // agent.learning_epochs
        fits = 0 < case.minibatch_size == batch // max(1, count) and count > 0
        fits = fits and not (library.equal_minibatches and (case.learns or case.is_pipeline) and batch % count)
    if not fits:
        allowed = " or ".join(map(str, nearest_divisors(batch, case.minibatch_size)))
        yield (
            f"{case.rl_library} cannot cut the {batch} samples of a process ({counted(case.num_envs, 'environment')} x "
            f"{counted(case.num_steps_per_env, 'step')}) into minibatches of {case.minibatch_size}; "
            f"needs minibatches of {allowed}"
        )


def nearest_divisors(batch: int, size: int) -> list[int]:
    """Return the divisors of ``batch`` next below and next above ``size``, if there are any."""
    small = [divisor for divisor in range(1, isqrt(batch) + 1) if batch % divisor == 0]
    divisors = sorted({*small, *(batch // divisor for divisor in small)})
    return [*[d for d in divisors if d < size][-1:], *[d for d in divisors if d > size][:1]]


def _worker_env(case: Case, *, cache_dir: Path, cpus: int) -> dict[str, str]:
    # Every thread pool is sized for the ranks of this node. By default torchrun gives OpenMP one thread, the other
    # pools take every core in every rank, and Isaac Lab divides by the ranks of all nodes.
    threads = str(case.cpu_threads or max(1, cpus // case.processes_per_node))
    env = {
        **dict.fromkeys(THREAD_VARIABLES, threads),
        # Out of the home folder. Kernels in a kept cache outlive a round, so that only the first compiles them.
        "WARP_CACHE_PATH": str(cache_dir / "warp"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache_dir / "torchinductor"),  # rl_games compiles its model
        "TRITON_CACHE_DIR": str(cache_dir / "triton"),
        "PYTHONDONTWRITEBYTECODE": "",  # many images set it, and every rank would compile its modules in every round
        "PYTHONUNBUFFERED": "1",  # the log of a killed rank has its last lines
        "PYTHONFAULTHANDLER": "1",  # a crash in native code leaves the Python stack
        "GIT_PYTHON_REFRESH": "quiet",  # rsl_rl imports GitPython, which raises where git is not installed
        "HYDRA_FULL_ERROR": "1",
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",  # if a rank dies, the others end and do not wait for it
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # local rank N is GPU N of nvidia-smi, whose figures the report shows
    }
    if case.device == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""  # Isaac Lab would use a GPU that it sees
    else:
        # Warp's kernels are PTX, which the driver compiles. By default its cache is in the home folder, which is empty
        # in every round of a container.
        env["CUDA_CACHE_PATH"] = str(cache_dir / "cuda")
    return env


def _asset_env(case: Case, asset_root: Path | None) -> dict[str, str]:
    if case.assets == "official":
        return {}
    if asset_root is None:
        raise UsageError(
            f"{case.case_id} uses offline assets, but no asset root is given; build one, or use official assets."
        )
    return {"ISAACSIM_ASSET_ROOT": str(asset_root)}
