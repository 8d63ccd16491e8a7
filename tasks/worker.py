"""Runs one rank of a case: ``torchrun … -m tasks.worker RUN_DIR``.

It reads ``RUN_DIR/configuration.json``, trains, and writes ``RUN_DIR/rank-N.jsonl`` as it goes. It knows no launchers.
"""

import dataclasses
import faulthandler
import gc
import hashlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from suite.external.parent_death import end_with_parent
from suite.schema.rank_protocol import read_configuration, recorded, round_of
from suite.schema.record import Case
from tasks.checks import gpu
from tasks.rank import configuration, kernel_cache, machine, profiling
from tasks.rank.rank_log import RankLog


def threads_of(case: Case) -> int:
    """Threads of a pool of this rank: the case's number, or else the rank's share of the cores, pinned or not.

    The share is limited to the launcher's OMP_NUM_THREADS: it respects a container's quota, which affinity does not
    show.
    """
    shared_by = 1 if case.pin_cpus else case.processes_per_node
    share = max(1, len(os.sched_getaffinity(0)) // shared_by)
    return case.cpu_threads or min(share, int(os.environ.get("OMP_NUM_THREADS") or share))


def own_cpus(case: Case, local_rank: int, available: Sequence[int]) -> tuple[int, ...]:
    """Cores of a pinned rank: with consecutive numbers, and shared with other ranks only if there are too few."""
    count = min(case.cpu_threads or max(1, len(available) // case.processes_per_node), len(available))
    first = local_rank * count
    return tuple(available[(first + index) % len(available)] for index in range(count))


def alone(case: Case, rank: int) -> int:
    """Let a process whose training shares its GPU with others be the only rank of its own; return its number."""
    if case.trainings_per_gpu == 1:
        return 0
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
    return rank


def run_rank(case: Case, run_dir: Path, log: RankLog, training: int) -> None:
    """Join the other ranks, train, and write the checks and totals at the end.

    Raises:
        RuntimeError: nobody lets trainings that share a GPU begin together.
    """
    is_first_of_node = os.environ["LOCAL_RANK"] == "0" and not training  # all ranks of a node share its caches
    kernels_before = kernel_cache.compiled_kernels(os.environ) if is_first_of_node else None
    with log.phase("imports_torch"):
        import torch

        from tasks import upstream
        from tasks.checks import validity, workload
        from tasks.film.filming import filmed
        from tasks.rank import settings, simulation, timing
        from tasks.rank.context import RankContext, Ranks, backend_of, gpu_of, joined
        from tasks.rank.turns import Turns

    ranks = Ranks.from_torchrun()
    if case.only_learning:
        os.environ["LOCAL_RANK"] = "0"  # libraries take it for the number of a rank's GPU
    device = torch.device("cuda", gpu_of(case, ranks)) if case.device == "cuda" else torch.device("cpu")
    torch.set_num_threads(threads_of(case))
    trains = "pipeline_torchrl" if case.is_pipeline else f"train_{case.rl_library}" if case.learns else "controls"
    adapter, turns = import_module(f"tasks.libraries.{trains}"), Turns.from_environment()
    if case.trainings_per_gpu > 1 and not turns.are_kept:
        raise RuntimeError("trainings that share a GPU begin together by turns, and this run has none")
    timer = timing.IterationTimer(log, device, turns)
    compilation = kernel_cache.WarpCompilation()
    context = RankContext(
        case=case,
        round_index=round_of(case, os.environ),
        training=training,
        ranks=ranks,
        device=device,
        log=log,
        timer=timer,
        compilation=compilation,
        run_dir=run_dir,
    )
    started_utc = datetime.now(UTC).isoformat()
    log.write("settings", settings={f"environment.{name}": value for name, value in recorded(os.environ).items()})
    if backend_of(case) == "nccl":
        os.environ |= machine.nccl_log_variables(run_dir, ranks.rank, os.environ)
    with joined(case, ranks, device, log):
        torch.distributed.all_reduce = timer.all_reduce.wrap(torch.distributed.all_reduce)
        with simulation.simulation(context, agent_entry_point=adapter.AGENT_ENTRY_POINT) as running:
            log.write("settings", settings=settings.capture(context, running))
            settings_of_agent = adapter.configure(context, running)
            configuration.check_agent(case, settings_of_agent)
            log.write("workload", workload=workload.describe(context, running, settings_of_agent))
            with filmed(context, running):
                model = adapter.train(context, running, settings_of_agent)
            log.write("settings", settings=settings.determinism())
            if (written_s := machine.nccl_log_written_s(run_dir, ranks.rank, timer.clock_zero_s)) is not None:
                log.write("network", nccl_log_written_s=written_s)
            checks = context.checks + gpu.look(context, running)
            log.write(
                "end",
                kernels_compiled=kernel_cache.compiled_since(kernels_before, os.environ),
                warp_modules_compiled=compilation.modules,
                warp_compile_time_s=compilation.time_s,
                parameters_sha256=parameters_sha256(model),
                peak_memory_gb=torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else None,
            )
            if ranks.rank == 0 and upstream.has_bundle(case):
                upstream.write_bundle(context, running, started_utc)
            checks += validity.check(running)
            log.write("validity", checks=[dataclasses.asdict(check) for check in checks])


def parameters_sha256(model: object) -> str:
    """Hash all trained parameters, bit for bit; without buffers, which some libraries keep per rank."""
    digest = hashlib.sha256()
    for parameter in model.parameters():  # type: ignore[attr-defined]  # torch is not imported at this level
        digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def main(argv: list[str]) -> int:
    run_dir = Path(argv[1])
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    if not profiling.is_profiled():  # nsys ends with torchrun; which of its threads starts us is its own affair
        end_with_parent(signal.SIGKILL)  # without torchrun nobody would end a rank; SIGTERM waits for its CUDA calls
    profiling.begin_below_nsys(rank, run_dir, [sys.executable, "-m", "tasks.worker", *argv[1:]])
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # by this the launcher gets a hung rank's stacks
    log = RankLog(run_dir, rank)
    log.write(
        "start",
        rank=rank,
        local_rank=local_rank,
        world_size=int(os.environ["WORLD_SIZE"]),
        pid=os.getpid(),
        node=int(os.environ.get("LABSCALE_NODE_RANK", os.environ["GROUP_RANK"])),  # torchrun's order may differ
        machine=machine.machine_id(),
        time_unix_s=time.time(),
        monotonic_s=time.perf_counter(),
    )
    os.chdir(run_dir)  # Isaac Lab and the libraries write their own logs to the working directory
    try:
        case = read_configuration(run_dir)
        if case.pin_cpus:  # before torch makes its threads
            os.sched_setaffinity(0, own_cpus(case, local_rank, sorted(os.sched_getaffinity(0))))
        run_rank(case, run_dir, log, alone(case, rank))
    except Exception as error:
        log.write(
            "error",
            type=type(error).__name__,
            message=str(error),
            traceback=traceback.format_exc(),
            out_of_memory=type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError),
            time_unix_s=time.time(),
        )
        raise
    finally:
        gc.freeze()  # all is written and closed: saves the interpreter seconds of freeing objects one by one
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
