"""Isaac Lab's own benchmark, run for comparison, and its bundle of result files, written for our runs.

    python -m tasks.upstream RUN_DIR

This reads ``RUN_DIR/configuration.json``, runs ``isaaclab benchmark training[_multigpu]`` as a user would, and writes
the iteration times that upstream's report is derived from to ``RUN_DIR/upstream.json``. The times come from the RL
library's TensorBoard file of rank 0; the report itself keeps only mean, deviation and peak.

The bundle (schema 1.4) lets tools for it read our results. It describes rank 0, like upstream's, and upstream's own
functions build it. The samples of all ranks stay in ``rank-N.jsonl``. The host's name is left out.
"""

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from suite.schema.rank_protocol import of_rank, read_configuration, round_of
from suite.schema.record import Case
from tasks.rank.configuration import upstreams_name

if TYPE_CHECKING:  # these import torch, and the benchmark starts without it
    from tasks.rank.context import RankContext
    from tasks.rank.simulation import Simulation

type Samples = Sequence[Mapping[str, float | None]]  # one row per iteration


def arguments(case: Case, out_dir: Path) -> list[str]:
    """Return upstream's command line for a case, without the interpreter."""
    if case.world_size > 1:
        # a free port: another training on this host may use torchrun's default one
        rendezvous = ["--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0"]
        workflow = ["training_multigpu", "--num_gpus", str(case.nproc_per_node), *rendezvous]
    else:
        workflow = ["training", "--device", "cuda:0" if case.device == "cuda" else "cpu"]
    on_cpu = {"rl_games": "agent.params.config.device=cpu", "rsl_rl": "agent.device=cpu"}
    device_tokens = [on_cpu[case.rl_library]] if case.device == "cpu" and case.rl_library in on_cpu else []
    options = {
        "--rl_library": case.rl_library,
        "--task": case.task,
        "--num_envs": str(case.num_envs),
        "--max_iterations": str(case.iterations),
        "--seed": str(case.seed),
        "--output_path": str(out_dir),
    }
    pairs = [part for option in options.items() for part in option]
    return ["benchmark", *workflow, *pairs, *case.presets, *case.overrides, *device_tokens]


def iteration_times_s(case: Case, logged: Mapping[str, Sequence[float]]) -> list[float]:
    """Compute iteration times [s] as upstream does from the library's log.

    rsl_rl logs both durations of an iteration; rl_games logs frames per second of all ranks. Upstream times skrl and
    sb3 in memory only, so these have no such times.
    """
    if case.rl_library == "rsl_rl":
        pairs = zip(logged["Perf/collection_time"], logged["Perf/learning_time"], strict=True)
        return [collection + learning for collection, learning in pairs]
    return [case.frames_per_iteration / fps for fps in logged["performance/step_inference_rl_update_fps"]]


# ---- bundle ----


def has_bundle(case: Case) -> bool:
    """Whether a bundle can say what the case trained: schema 1.4 has no name for TorchRL, and a bundle one training."""
    return case.learns and case.trainings_per_gpu == 1 and case.rl_library != "torchrl"


def write_bundle(context: "RankContext", running: "Simulation", started_utc: str) -> None:
    """Write the bundle of rank 0 below the run directory."""
    from isaaclab.benchmark import BaseIsaacLabBenchmark, builders, capture
    from isaaclab.benchmark.distributed import DistributedContext

    case, ranks, samples = context.case, context.ranks, context.timer.samples
    benchmark = BaseIsaacLabBenchmark(
        benchmark_name="benchmark_training",
        formatter_type=["schema"],
        output_path=str(context.run_dir / "bundle"),
        use_recorders=True,
        frametime_recorders=False,
        output_prefix=f"benchmark_training_{case.task}",
        workflow_metadata={"metadata": [{"name": "task", "data": case.task}, {"name": "seed", "data": context.seed}]},
    )
    benchmark.update_manual_recorders()  # one reading of the resources
    of_several: Mapping[str, object] = {}
    if ranks.is_distributed:
        distributed = DistributedContext(enabled=True, **dataclasses.asdict(ranks))
        of_several = distributed.bundle_metadata(workload_scope="global", num_envs_per_rank=case.num_envs)
    bundle = builders.build_training_bundle(
        run=_identity(context, running, started_utc),
        versions=capture.capture_versions(benchmark),
        hardware=dataclasses.replace(capture.capture_hardware(benchmark), hostname="not recorded"),
        runtime=_runtime(case, samples, context.log.phases_s),
        resources=capture.capture_resources(benchmark),
        learning=builders.build_learning(
            reward_series=_column(samples, "reward_mean"),
            ep_length_series=_column(samples, "episode_length_mean"),
            success_rate_series=_column(samples, "success_mean") or None,
            ema_alpha=0.1,
        ),
        extra={
            **of_several,
            "labscale_case_id": case.case_id,
            "resources_scope": "one sample after the last iteration",
            "environment_step_scope": "mean step of each iteration",
        },
    )
    benchmark.attach_bundle(bundle)
    benchmark.finalize()


def _identity(context: "RankContext", running: "Simulation", started_utc: str) -> object:
    from isaaclab.benchmark import builders, capture

    case = context.case
    config, library = capture.run_config_from_env_cfg(running.env_cfg), upstreams_name(case.rl_library)
    ended_utc = datetime.now(UTC).isoformat()
    return builders.build_run_identity(
        run_id=capture.synth_run_id(library, config.physics_backend, case.task, context.seed, ended_utc[:19]),
        framework=library,
        config=config,
        task=case.task,
        seed=context.seed,
        start_utc=started_utc,
        end_utc=ended_utc,
        num_envs=case.num_envs_global,
        max_iterations=case.iterations,
    )


def _runtime(case: Case, samples: Samples, phases_s: Mapping[str, float]) -> object:
    from isaaclab.benchmark import builders
    from isaaclab.benchmark.schema import StartupTime

    frames = case.frames_per_iteration
    iteration_times_s = _column(samples, "iteration_time_s")
    steps_times_s = _column(samples, "environment_step_time_s")
    return builders.build_runtime(
        startup_time_s=StartupTime(
            app_launch=phases_s["simulation_launch"],
            env_creation=phases_s["environment_creation"],
            first_step=iteration_times_s[0],
            python_imports=phases_s["imports_torch"] + phases_s["imports"],
            task_config=phases_s["task_config"],
        ),
        iteration_times_s=iteration_times_s,
        collection_fps=[frames / time_s for time_s in _column(samples, "collection_time_s")],
        total_fps=[frames / time_s for time_s in iteration_times_s],
        steps_per_iteration=frames,
        frames_per_environment_step=case.num_envs_global,
        # None if no iteration has marks
        environment_step_times_s=[time_s / case.num_steps_per_env for time_s in steps_times_s] or None,
    )


def _column(samples: Samples, name: str) -> list[float]:
    return [value for row in samples if (value := row.get(name)) is not None]


def main(argv: list[str]) -> int:
    run_dir = Path(argv[1])
    case = read_configuration(run_dir)
    seeded = dataclasses.replace(case, seed=case.seed_of(rank=0, round_index=round_of(case, os.environ)))
    command = [sys.executable, "-m", "isaaclab", *arguments(seeded, run_dir / "bundle")]
    started_s = time.monotonic()
    done = subprocess.run(command, cwd=run_dir, env=of_rank(os.environ), check=False)
    wall_time_s = time.monotonic() - started_s
    if done.returncode != 0:
        return done.returncode

    from isaaclab.benchmark.metrics import RL_LIBRARY_DESCRIPTORS, parse_tf_logs

    pattern = RL_LIBRARY_DESCRIPTORS[case.rl_library].tfevents_pattern
    (log_dir,) = {path.parent for path in (run_dir / "logs" / case.rl_library).glob(f"*/*/{pattern}")}
    times_s = iteration_times_s(case, parse_tf_logs(str(log_dir)))
    result = {"command": ["isaaclab", *command[3:]], "iteration_time_s": times_s, "wall_time_s": wall_time_s}
    part = run_dir / "upstream.json.part"
    part.write_text(json.dumps(result, allow_nan=False) + "\n", encoding="utf-8")
    part.rename(run_dir / "upstream.json")  # if the process is killed before, the pair is measured again
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
