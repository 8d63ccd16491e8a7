"""Frozen dataclasses that cross boundaries and that are stored.

There are four parts, each made of the parts before it:

- what is measured: ``Case``, ``PlannedCase``, ``Launch``;
- where: ``Environment``, with ``Gpu`` and ``CheckResult``;
- observations of a round: ``RankRecord`` from the ranks and ``NodeClock`` between nodes; those of samplers, of networks
  and of turns are in ``suite.schema.observations``;
- what is kept: ``RunRecord``, a round, and ``CaseResult``, all rounds of a case, which is one file.

Both halves of labscale import this file, so it imports the standard library only and does no I/O. Names contain units:
``_s`` seconds, ``_fps`` environment steps per second over all ranks, ``_gb`` 1e9 bytes, ``_mhz``. A value that was not
measured is ``None``, never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from suite.schema.observations import NodeReadings, TelemetrySummary, Transport, TurnsTaken
from suite.schema.stored import CaseId, Count, Iterations, Name, Number, Size, Whole

# Of stored results, whose keys are in ``suite.schema.stored``. Versions 1 to 5 are read by commit a230a9f6.
SCHEMA_VERSION: Final = 6

# skrl_jax is skrl with JAX: another program than with torch, with other packages, so a library of its own. lerobot
# trains nothing here: it acts and records.
RlLibrary = Literal["rl_games", "rsl_rl", "skrl", "skrl_jax", "sb3", "torchrl", "lerobot"]
Stack = Literal["kitless", "ovphysx", "isaacsim"]
Device = Literal["cpu", "cuda"]
Scaling = Literal["strong", "weak"]
MinibatchRule = Literal["fixed_minibatch", "fixed_updates"]
RULE_WORDS: Final[Mapping[MinibatchRule, str]] = {"fixed_minibatch": "same minibatch", "fixed_updates": "same steps"}
Assets = Literal["offline", "official"]
Scalar = str | int | float | bool | None
# All but the first two are controls; the second trains too, but is no training in turn.
Workload = Literal[
    "train", "async_pipeline", "environment_step", "rendering", "all_reduce", "collection", "collection_ray",
    "policy_rollout", "dataset_recording",
]  # fmt: skip
WORKLOAD_WORDS: Final[Mapping[Workload, str]] = {  # what is shown in place of a library that trains
    "environment_step": "steps alone", "rendering": "rendering alone", "all_reduce": "all-reduce alone",
    "collection": "TorchRL's collector alone", "collection_ray": "TorchRL's collector over Ray",
    "async_pipeline": "TorchRL's pipeline", "policy_rollout": "LeRobot's policy acting",
    "dataset_recording": "LeRobot's data set writer",
}  # fmt: skip
KernelCache = Literal["kept", "empty"]  # compiled kernels stay there between rounds, or each round begins without any
Division = Literal["closed", "open"]  # as upstream ships it, or tuned through settings that the libraries offer
CheckVerdict = Literal["ok", "warning", "failure", "not_needed", "not_checked"]  # of suite.env_check.check too
# lost: the node failed, or the scheduler preempted or cancelled the job.
Outcome = Literal["completed", "crashed", "oom", "timeout", "hung", "lost", "skipped", "invalid"]

# Endings of case ids that labscale adds itself. The first two are of rounds that belong to no case of a matrix.
WARM_UP_SUFFIX: Final = "-warm-up"
ALONE_SUFFIX: Final = "-alone"  # a copy whose rounds run alone, beside its original in turns
COLD_SUFFIX: Final = "-cold"  # its rounds begin with an empty kernel cache
LEARNING_SUFFIX: Final = "-learning"  # only what it learns counts

ROUND_VARIABLE: Final = "LABSCALE_ROUND"  # of a rank's environment; only a case with ``seed_per_round`` needs it

# The columns of ``RankRecord.samples`` that labscale measures itself, in the order they are stored.
# An RL library's own figures follow as ``<library>.<its own name>``.
SAMPLE_COLUMNS: Final = (
    "start_s",  # since the rank's own clock zero, when the iteration began
    "iteration_time_s",  # collection + learning, device synchronised once at its end
    "collection_time_s",  # rollout: policy inference, environment steps, book-keeping of the library
    "learning_time_s",  # returns, optimiser steps, gradient all-reduce
    "marked",  # 1: the seven columns below were measured, which costs time; 0: they were not, at no cost
    "environment_step_time_s",  # inside env.step, part of collection
    "simulate_time_s",  # inside the physics steps, part of environment_step_time_s
    "render_time_s",  # inside the renderer, part of environment_step_time_s; None for a task without cameras
    "inference_time_s",  # inside the policy's choice of actions, part of collection
    "all_reduce_time_s",  # inside torch.distributed.all_reduce, waiting for other ranks included, part of learning
    "all_reduce_calls",
    "all_reduce_bytes",  # input of one rank; None without an all-reduce
    "turn",  # number of the turn, from 1; None before the first. Missing if the round was measured alone
    "core_cpu_time_s",  # CPU time of the thread that launches kernels, in the iteration
    "core_wait_time_s",  # in which this thread could run and had no core
    "core_switches",  # how often the kernel took its core away
    "core_steal_time_s",  # in which a hypervisor did; in steps of 10 ms, if marked. None if the thread changed cores
    # The probes run after marked iterations and those of suite.external.core_probe.LONG_ENOUGH_S.
    "core_probe_time_s",  # of a fixed piece of interpreter work: shows how fast the core is
    "memory_probe_time_s",  # of a load from beyond the L2 cache that needs the load before it
    "launch_probe_time_s",  # of an empty kernel, until it has ended; None on a CPU
    "reward_mean",  # mean return of finished episodes, as the library keeps it; None before the first ends
    "episode_length_mean",  # environment steps
    "success_mean",  # the task's own metric, mean of the last episodes, as many as environments; None before
)


# --- what is measured ---


def agent_library_of(workload: Workload, rl_library: RlLibrary) -> RlLibrary:
    """Return the library whose agent of the task sets the sizes of an iteration; all controls have rsl_rl's."""
    return rl_library if workload in ("train", "async_pipeline") else "rsl_rl"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One point of a series, which is measured.

    ``num_envs`` counts environments per rank, as Isaac Lab's ``--num_envs`` does; ``num_envs_global`` counts all.

    With several ``trainings_per_gpu`` each is a process that trains a policy of its own, with ``num_envs``. They run at
    the same time and exchange nothing. A record numbers them as ranks.
    """

    # In its order:
    # <series>/<library>-<stack>[-cpu]-n<num_envs_global>-<nnodes>x<nproc_per_node>[-<variant>][-cold][-learning]
    case_id: CaseId
    series: Name
    scaling: Scaling
    task: str  # Gym id of Isaac Lab 3.0
    rl_library: RlLibrary
    stack: Stack
    device: Device
    nnodes: Size
    nproc_per_node: Size
    num_envs: Size
    num_envs_global: Size
    num_steps_per_env: Size  # rollout length; rl_games says horizon
    iterations: Iterations  # training iterations, warm-up included; rl_games says epochs
    minibatch_rule: MinibatchRule
    minibatch_size: Count  # samples per optimiser step and rank
    optimiser_steps: Count  # per iteration and rank: minibatches times learning epochs
    seed: Count  # of rank 0 in round 0, see ``seed_of``
    assets: Assets
    presets: tuple[str, ...] = ()  # Isaac Lab preset tokens, e.g. "presets=ovphysx"
    overrides: tuple[str, ...] = ()  # "env.…=…" and "agent.…=…" tokens
    timeout_s: Number = 1800.0  # of the whole process with its start-up
    hang_timeout_s: Number = 300.0  # without a sample from any rank
    workload: Workload = "train"
    division: Division = "closed"
    cpu_threads: Count | None = None  # of each thread pool of a rank; None shares the host's cores among its ranks
    pin_cpus: bool = False  # each rank uses its own cores only, as many as it has threads
    # How far the seeds of a round are from those of the round before. True: as many as there are processes, so that no
    # seed comes twice. A number: rounds of all numbers of processes begin with equal seeds. False: all rounds do.
    seed_per_round: bool | Count = False
    deterministic: bool = False  # with the settings of ``isaaclab train --deterministic``, see tasks.rank.simulation
    trainings_per_gpu: Size = 1  # at the same time, independent; several only if ``world_size`` is 1
    # Its ranks share one GPU, and other runs train at the same time: it shows what they learn, and not how fast.
    only_learning: bool = False
    kernel_cache: KernelCache = "kept"  # empty: to measure cold starts
    with_packages: tuple[str, ...] = ()  # ``name==version``, over the worker's pins, see suite.matrix.own_worker

    @property
    def learns(self) -> bool:
        """Whether the RL library trains; otherwise a control runs (tasks/libraries/controls.py), or a pipeline."""
        return self.workload == "train"

    @property
    def is_pipeline(self) -> bool:
        """Whether one process simulates while another one learns."""
        return self.workload == "async_pipeline"

    @property
    def agent_library(self) -> RlLibrary:
        return agent_library_of(self.workload, self.rl_library)

    @property
    def world_size(self) -> int:
        return self.nnodes * self.nproc_per_node

    @property
    def gpus_per_node(self) -> int:
        """GPUs that the ranks of a node use, or would use on a CPU."""
        return 1 if self.only_learning else self.nproc_per_node

    @property
    def num_gpus(self) -> int:
        return self.nnodes * self.gpus_per_node

    @property
    def processes_per_node(self) -> int:
        return self.gpus_per_node * self.processes_per_gpu

    @property
    def processes_per_gpu(self) -> int:
        """Ranks or trainings that share a GPU, or the two processes of a pipeline that has one GPU."""
        if self.is_pipeline and self.world_size == 1:
            return 2
        return self.nproc_per_node if self.only_learning else self.trainings_per_gpu

    @property
    def has_speed(self) -> bool:
        """Whether its speed means something: on a CPU none does, and none of a run that shares its GPU with others."""
        return self.device == "cuda" and not self.only_learning

    @property
    def num_processes(self) -> int:
        """All ranks of all trainings; as many as ``world_size`` for one training."""
        return self.nnodes * self.processes_per_node

    @property
    def topology(self) -> str:
        """``nnodes x nproc_per_node``, e.g. ``1x4``."""
        return f"{self.nnodes}x{self.nproc_per_node}"

    @property
    def has_frames(self) -> bool:
        """Whether it has environment steps or pictures to count; an all-reduce alone has neither."""
        return self.workload != "all_reduce"

    @property
    def frames_per_iteration(self) -> int:
        """Environment steps of all ranks, and of all trainings, in one iteration."""
        return self.num_envs_global * self.num_steps_per_env

    @property
    def global_minibatch_size(self) -> int:
        return self.minibatch_size * (1 if self.is_pipeline else self.world_size)

    def seed_of(self, *, rank: int, round_index: int) -> int:
        """Return the seed of a rank. Ranks explore differently, and so do rounds with ``seed_per_round``."""
        apart = self.num_processes if self.seed_per_round is True else self.seed_per_round
        return self.seed + rank + round_index * apart


@dataclass(frozen=True, kw_only=True)
class PlannedCase:
    """A case in the plan for this machine."""

    case: Case
    rounds: int  # fresh processes
    infeasible: str | None  # why it cannot run here, and what it would need; None if it can
    estimated_wall_s: float | None  # one round; None if the task is unknown
    estimated_start_s: float | None  # its part of a round that is not iterations
    estimated_load: float  # of the GPU that its processes share, or the core, see suite.matrix.resources


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How to start one round of a case: pure functions render it, ``suite.launch`` executes it."""

    case: Case
    round: int
    argv: tuple[str, ...]
    env: Mapping[str, str]  # added to the caller's environment
    run_dir: str
    grace_s: float = 10.0  # between SIGTERM and SIGKILL
    cpus: tuple[int, ...] = ()  # cores that its processes may use; empty: those of the caller


# --- where ---


@dataclass(frozen=True, kw_only=True)
class Gpu:
    index: Count
    name: str
    memory_gb: Number | None
    compute_capability: str | None  # "9.0"


OVERFLOW_CHECK: Final = "MuJoCo Warp's buffers"  # of a rank: whether contacts or constraints were dropped


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """The result of one check: of env_check before the runs, or of a rank after its training.

    ``env_check --json`` prints its evidence.
    """

    name: str
    feature: str
    verdict: CheckVerdict
    found: str
    fault: str | None


@dataclass(frozen=True, kw_only=True)
class Environment:
    """The machine that ran it, without host names and serial numbers, because results are published."""

    host_label: str | None  # chosen by the user with --host-label
    cpu_model: str | None
    num_cpus: Count | None  # that this process may use
    memory_gb: Number | None
    os: str | None
    kernel: str | None
    gpus: tuple[Gpu, ...] = ()
    driver_version: str | None = None
    cuda_driver_version: str | None = None
    suite_version: str | None = None
    git_commit: str | None = None
    git_dirty: bool | None = None
    worker_pins_sha256: str | None = None  # of the requirement file; None for a user's own Python
    asset_sha256: str | None = None  # of the asset manifest
    worker_packages: tuple[str, ...] = ()  # of --worker-package: name, version, and commit or hash of a path
    checks: tuple[CheckResult, ...] = ()  # of env_check


# --- observations of a round ---


@dataclass(frozen=True, kw_only=True)
class NodeClock:
    """Offsets of a node's clocks from those of rank 0's node, measured by ``tasks.rank.machine`` at start and end."""

    node: Count
    offset_s: Number  # its monotonic clock minus that of rank 0's node, in the middle of the round
    bound_s: Number  # the true offset differs from it by at most this during the round
    drift_s: Number | None  # change of the offset from start to end; None if the round did not reach its end
    wall_offset_s: Number  # of the wall clock, at the start


@dataclass(frozen=True, kw_only=True)
class RankRecord:
    """Contents of one rank's ``rank-N.jsonl``."""

    rank: Count
    local_rank: Count
    # start-up: imports_torch, imports, task_config, simulation_launch, environment_creation
    phases_s: Mapping[str, Number]
    settings: Mapping[str, str | int | float | bool | None]  # seed, threads, TF32, device, backend, versions.*
    samples: Mapping[str, tuple[Number | None, ...]]  # column -> one value per iteration
    validity: tuple[CheckResult, ...] = ()  # whether the rank did the work that the case states
    parameters_sha256: str | None = None  # of the trained parameters at the end
    peak_memory_gb: Number | None = None  # of the torch allocator on the rank's GPU
    kernels_compiled: Count | None = None  # on its node during training, by any rank; None: see another, or unknown
    warp_modules_compiled: Count | None = None  # by this rank itself; a module has many kernels. None: unknown
    warp_compile_time_s: Number | None = None  # of these modules together; None: unknown
    error: str | None = None  # "Type: message" if the rank raised
    node: Count | None = None  # in the launcher's numbering, its head is 0; rank 0 may be elsewhere. None: unknown

    @property
    def num_iterations(self) -> int:
        return len(self.samples.get("iteration_time_s", ()))


# --- what is kept ---


@dataclass(frozen=True, kw_only=True)
class Observations:
    """What is known of a round besides its case and its machine."""

    round: Count
    outcome: Outcome
    reason: str | None  # why, unless completed: the failing rank's own message
    exit_code: Whole | None
    started_utc: str | None  # ISO 8601; None if skipped
    wall_time_s: Number | None  # from launch to the end of the last process
    argv: tuple[str, ...] = ()
    ranks: tuple[RankRecord, ...] = ()
    image_digest: str | None = None  # of the container image, sha256:…; None without one
    workload: Mapping[str, Scalar] | None = None  # the fingerprint, equal on all ranks; None if none was written
    telemetry: TelemetrySummary | None = None
    telemetry_note: str | None = None  # why there is none
    readings: tuple[NodeReadings, ...] = ()  # of each node's sampler, about one a second
    profiled_ranks: tuple[Count, ...] = ()  # ranks under a profiler, which slows all ranks
    turns: TurnsTaken | None = None  # None: it was measured alone, from its start to its end
    clocks: tuple[NodeClock, ...] | None = None  # of all nodes but rank 0's; None on one node, which has one clock
    transport: Transport | None = None  # None for one rank, or if unknown


@dataclass(frozen=True, kw_only=True)
class RunRecord(Observations):
    """One round of a case, with any outcome."""

    case: Case
    environment: Environment

    @property
    def counts(self) -> bool:
        """Whether it is a measurement."""
        return self.outcome == "completed" and not self.profiled_ranks


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """All rounds of one case, as ``suite.records.store`` reads and writes them."""

    case: Case
    rounds: tuple[RunRecord, ...] = field(default=())
    ended_because: str | None = None  # why no further round ran, see suite.statistics.stopping_rule; None if none ran

    @property
    def completed(self) -> tuple[RunRecord, ...]:
        return tuple(record for record in self.rounds if record.counts)

    @property
    def begun(self) -> tuple[RunRecord, ...]:
        """Rounds that began; none if the case could not run: a skipped round then says why."""
        return tuple(record for record in self.rounds if record.outcome != "skipped")
