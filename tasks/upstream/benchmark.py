"""Runs Isaac Lab's own training benchmark with a case's arguments: ``python -m tasks.upstream.benchmark RUN_DIR``.

It reads ``RUN_DIR/configuration.json``, runs ``isaaclab benchmark training[_multigpu]`` as a user would, and writes the
iteration times that upstream's report is derived from to ``RUN_DIR/upstream.json``. The times come from the RL
library's TensorBoard file of rank 0; the report itself keeps only mean, deviation and peak.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from suite.schema.rank_protocol import of_rank, read_configuration, round_of
from suite.schema.record import Case


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


def main(argv: list[str]) -> int:
    run_dir = Path(argv[1])
    case = read_configuration(run_dir)
    seeded = replace(case, seed=case.seed_of(rank=0, round_index=round_of(case, os.environ)))
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
