"""What crosses every boundary and what is stored, as frozen dataclasses.

In four parts, each built of those before it:

- what is measured: ``Case``, ``PlannedCase``, ``Launch``;
- where: ``Environment``, with ``Gpu`` and ``CheckResult``;
- what was seen of a round: ``RankRecord`` by the ranks and ``NodeClock`` between nodes; ``TelemetrySummary`` by the
  sampler is in ``suite.schema.telemetry``, ``Transport`` between ranks in ``suite.schema.transport``;
- what is kept: ``RunRecord``, a round, and ``CaseResult``, all rounds of a case, which is one file.

Both halves of labscale read this file, so it imports the standard library only and does no I/O. Units are in the names:
``_s`` seconds, ``_fps`` environment steps per second over all ranks, ``_gb`` 1e9 bytes, ``_mhz``. A value that was not
measured is ``None``, never 0.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from suite.schema.telemetry import TelemetrySummary
from suite.schema.transport import Transport

# History of the stored format. A reader accepts every version listed here; a writer writes the last.
# 1 (2026-11-21): first version. One document per case; rounds hold every rank's samples as columns.
# 2 (2026-11-21): an environment has what env_check said (``checks``), a round its ``image_digest``, ``workload`` and
#   ``telemetry``, a rank its ``validity``, a case ``ended_because`` and ``workload``.
SCHEMA_VERSION: Final = 2

RlLibrary = Literal["rl_games", "rsl_rl", "skrl"]
Stack = Literal["kitless", "ovphysx", "isaacsim"]
Device = Literal["cpu", "cuda"]
Scaling = Literal["strong", "weak"]
MinibatchRule = Literal["fixed_minibatch", "fixed_updates"]
Assets = Literal["offline", "official"]
Scalar = str | int | float | bool | None
Workload = Literal["train", "environment_step", "rendering", "all_reduce"]  # all but the first are controls
Division = Literal["closed", "open"]  # as upstream ships it, or tuned through settings that the libraries offer
# lost: a scheduler took the place away: its node failed, the job was preempted or cancelled.
CheckVerdict = Literal["ok", "warning", "failure", "not_needed", "not_checked"]  # as suite.env_check.check has them
Outcome = Literal["completed", "crashed", "oom", "timeout", "hung", "lost", "skipped", "invalid"]

# The columns of ``RankRecord.samples`` that labscale measures itself, in the order they are stored.
# What an RL library reports of itself stands beside them as ``<library>.<its own name>``.
SAMPLE_COLUMNS: Final = (
    "start_s",  # since the rank's own clock zero, when the iteration began
    "iteration_time_s",  # collection + learning, device synchronised once at its end
    "collection_time_s",  # rollout: policy inference, environment steps, book-keeping of the library
    "learning_time_s",  # returns, optimiser steps, gradient all-reduce
    "marked",  # 1: the eight columns below were taken, which costs time; 0: not, and the iteration's time is free of it
    "environment_step_time_s",  # inside env.step, part of collection
    "simulate_time_s",  # inside the physics steps, part of environment_step_time_s
    "render_time_s",  # inside the renderer, part of environment_step_time_s; None for a task without cameras
    "inference_time_s",  # inside the policy's choice of actions, part of collection
    "all_reduce_time_s",  # inside torch.distributed.all_reduce, waiting for other ranks included, part of learning
    "all_reduce_calls",
    "all_reduce_bytes",  # that a rank gives into them; None where it made none
    "core_probe_time_s",  # for a fixed piece of the interpreter's work, after the iteration: how fast its core is
    "reward_mean",  # mean return of finished episodes, as the library keeps it; None before the first ends
    "episode_length_mean",  # environment steps
    "success_rate",  # the task's own metric, if it has one
)


# --- what is measured ---


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is measured: one point of a series.

    ``num_envs`` counts environments per rank, as Isaac Lab's ``--num_envs`` does; ``num_envs_global`` all of them.
    """

    case_id: str  # "<series>/<library>-<stack>[-cpu]-n<num_envs_global>-<nnodes>x<nproc_per_node>[-<variant>]"
    series: str
    scaling: Scaling
    task: str  # Gym id of Isaac Lab 3.0
    rl_library: RlLibrary
    stack: Stack
    device: Device
    nnodes: int
    nproc_per_node: int
    num_envs: int
    num_envs_global: int
    num_steps_per_env: int  # rollout length; rl_games says horizon
    iterations: int  # training iterations, warm-up included; rl_games says epochs
    minibatch_rule: MinibatchRule
    minibatch_size: int  # samples per optimiser step and rank
    optimiser_steps: int  # per iteration and rank: minibatches times learning epochs
    seed: int  # of rank 0; rank r uses seed + r
    assets: Assets
    presets: tuple[str, ...] = ()  # Isaac Lab preset tokens, e.g. "presets=ovphysx"
    overrides: tuple[str, ...] = ()  # "env.…=…" and "agent.…=…" tokens
    timeout_s: float = 1800.0  # whole process, start-up included
    hang_timeout_s: float = 300.0  # with no rank writing a sample
    workload: Workload = "train"
    division: Division = "closed"
    cpu_threads: int | None = None  # of each thread pool of a rank; None shares the cores of the host among its ranks
    pin_cpus: bool = False  # each rank keeps to cores of its own, as many as it has threads

    @property
    def learns(self) -> bool:
        """Whether the RL library trains, and not only a part of its work runs (tasks/libraries/controls.py)."""
        return self.workload == "train"

    @property
    def world_size(self) -> int:
        return self.nnodes * self.nproc_per_node

    @property
    def topology(self) -> str:
        """``nnodes x nproc_per_node``, e.g. ``1x4``."""
        return f"{self.nnodes}x{self.nproc_per_node}"

    @property
    def has_frames(self) -> bool:
        """Whether it takes environment steps or draws pictures; an all-reduce alone has nothing to count a second."""
        return self.workload != "all_reduce"

    @property
    def frames_per_iteration(self) -> int:
        """Environment steps of all ranks in one iteration."""
        return self.num_envs_global * self.num_steps_per_env

    @property
    def global_minibatch_size(self) -> int:
        return self.minibatch_size * self.world_size


@dataclass(frozen=True, kw_only=True)
class PlannedCase:
    """A case with what the plan says of it on this machine."""

    case: Case
    rounds: int  # fresh processes
    infeasible: str | None  # why it cannot run here, with what would be needed; None when it can
    estimated_gpu_minutes: float | None  # all rounds, GPUs times wall time; None when nothing is known of the task
    estimated_wall_s: float | None  # one round


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How one round of a case is started: a value, rendered by pure functions, executed by ``suite.launch``."""

    case: Case
    round: int
    argv: tuple[str, ...]
    env: Mapping[str, str]  # added to the caller's environment
    run_dir: str
    grace_s: float = 10.0  # between SIGTERM and SIGKILL
    cpus: tuple[int, ...] = ()  # cores that every process of it keeps to; empty: those of the caller


# --- where ---


@dataclass(frozen=True, kw_only=True)
class Gpu:
    index: int
    name: str
    memory_gb: float | None
    compute_capability: str | None  # "9.0"


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What one check of env_check said before the runs, or one of a rank's validity at the end of its training.

    The evidence of env_check is printed by ``env_check --json``.
    """

    name: str
    feature: str
    verdict: CheckVerdict
    found: str
    fault: str | None


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where it ran. Host names and serial numbers are left out on purpose: results are published."""

    host_label: str | None  # chosen by the user with --host-label
    cpu_model: str | None
    num_cpus: int | None  # that this process may use
    memory_gb: float | None
    os: str | None
    kernel: str | None
    gpus: tuple[Gpu, ...] = ()
    driver_version: str | None = None
    cuda_driver_version: str | None = None
    suite_version: str | None = None
    git_commit: str | None = None
    git_dirty: bool | None = None
    worker_pins_sha256: str | None = None  # of the requirement file; None when the user brought a Python
    asset_sha256: str | None = None  # of the asset manifest
    worker_packages: tuple[str, ...] = ()  # added with --worker-package: name, version, and commit or hash of a path
    checks: tuple[CheckResult, ...] = ()  # of env_check; empty in schema 1


# --- what was seen of a round ---


@dataclass(frozen=True, kw_only=True)
class NodeClock:
    """A node's clocks against those of rank 0's node, as ``tasks.rank.clock`` measures them at its start and end."""

    node: int
    offset_s: float  # its monotonic clock minus that of rank 0's node, in the middle of the round
    bound_s: float  # the true offset is at most this far from it, also at the start and at the end
    drift_s: float | None  # of the offset, from start to end; None when the round did not come to its end
    wall_offset_s: float  # of the wall clock, at the start


@dataclass(frozen=True, kw_only=True)
class RankRecord:
    """What one rank wrote to ``rank-N.jsonl``."""

    rank: int
    local_rank: int
    phases_s: Mapping[
        str, float
    ]  # start-up: imports_torch, imports, task_config, simulation_launch, environment_creation
    settings: Mapping[str, str | int | float | bool | None]  # seed, threads, TF32, device, backend, versions.*
    samples: Mapping[str, tuple[float | None, ...]]  # column -> one value per iteration
    validity: tuple[CheckResult, ...] = ()  # whether what was measured was the work it is said to be
    parameters_sha256: str | None = None  # of the trained parameters at the end
    peak_memory_gb: float | None = None  # of the torch allocator on the rank's GPU
    kernels_compiled: int | None = None  # on its node while it trained, by any rank; None: another rank's, or not known
    error: str | None = None  # "Type: message" when the rank raised
    node: int | None = None  # as the launcher numbers them, its head 0; rank 0 need not be there. None: not known

    @property
    def num_iterations(self) -> int:
        return len(self.samples.get("iteration_time_s", ()))


# --- what is kept ---


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What happened in one round of a case, whatever the outcome."""

    case: Case
    round: int
    outcome: Outcome
    reason: str | None  # why, unless completed: the failing rank's own message
    exit_code: int | None
    started_utc: str | None  # ISO 8601; None when skipped
    wall_time_s: float | None  # launch to last process gone
    environment: Environment
    argv: tuple[str, ...] = ()
    ranks: tuple[RankRecord, ...] = ()
    image_digest: str | None = None  # of the container image it ran in, sha256:…; None when it ran in none
    workload: Mapping[str, Scalar] | None = None  # the fingerprint, equal on all ranks; None before one was written
    telemetry: TelemetrySummary | None = None
    telemetry_note: str | None = None  # why there is none
    profiled_ranks: tuple[int, ...] = ()  # that ran below a profiler, which slows all of them
    neighbours: int | None = None  # the most other rounds that ran beside it on its host; None: not known
    clocks: tuple[NodeClock, ...] | None = None  # of the nodes beside rank 0's; None on one node, which has one clock
    transport: Transport | None = None  # None for one rank, and where nothing was said of it
    schema_version: int = SCHEMA_VERSION

    @property
    def counts(self) -> bool:
        """Whether it is a measurement."""
        return self.outcome == "completed" and not self.profiled_ranks

    @property
    def workload_sha256(self) -> str | None:
        """One word for the whole fingerprint, to tell whether two rounds did the same work."""
        if self.workload is None:
            return None
        return hashlib.sha256(json.dumps(dict(self.workload), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """All rounds of one case, as ``suite.records.store`` reads and writes them."""

    case: Case
    rounds: tuple[RunRecord, ...] = field(default=())
    ended_because: str | None = (
        None  # why it got no further round, see suite.statistics.stopping_rule; None when it never ran
    )

    @property
    def completed(self) -> tuple[RunRecord, ...]:
        return tuple(record for record in self.rounds if record.counts)

    @property
    def begun(self) -> tuple[RunRecord, ...]:
        """None where the case could not run; what stands for them says why."""
        return tuple(record for record in self.rounds if record.outcome != "skipped")
