"""The sampler beside a run: GPUs, the ranks' processes and the host, several times a second, until its stdin closes.

``python -m suite.launch.telemetry_sampler RUN_DIR --gpus N --ranks N`` appends to ``RUN_DIR/telemetry.jsonl``;
``sampling`` starts it. It is a process of its own, not a thread of the launcher: a driver that crashes or hangs takes
only this process with it, its cost is exactly its own CPU time, and it works alike wherever the ranks run. It never
makes a run fail. Only the launcher has the other end of its stdin, which therefore closes when the launcher is killed.
"""

import argparse
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import psutil

from suite.external.machine import HostCpu
from suite.external.nvml.gpus import LiveGpus
from suite.files.paths import ROOT
from suite.launch.nodes.node import NODE_RANK
from suite.records.telemetry_file import (
    SAMPLER_LOG,
    HostReading,
    Note,
    RankReading,
    Sample,
    TelemetryStart,
    line_of,
    sampler_log,
    telemetry_path,
)
from suite.schema.record import Launch

RATE_HZ: Final = 5.0
PATIENCE_S: Final = 2.0  # for the last sample
LOOK_EVERY_S: Final = 2.0  # for ranks that are not there yet, among all processes of a node
_WORKER: Final = "tasks.worker"
_GB: Final = 1e9


@contextmanager
def sampling(launch: Launch, *, node: int | None = None, visible_gpus: str | None = None) -> Iterator[None]:
    """Sample this host while the block runs; the sampler has ended when the block is left.

    ``node``: which one of several. ``visible_gpus``: CUDA_VISIBLE_DEVICES of the ranks, if it is not the caller's.
    Other GPUs may run other rounds.
    """
    log = Path(launch.run_dir) / (SAMPLER_LOG if node is None else sampler_log(node))
    with beside(sampler_argv(launch, node=node), log, visible_gpus=visible_gpus):
        yield


@contextmanager
def beside(argv: Sequence[str], log_path: Path, *, visible_gpus: str | None = None) -> Iterator[None]:
    """Run the sampler ``argv`` while the block runs; then close its stdin, wait for its last sample, and kill it."""
    visible = {} if visible_gpus is None else {"CUDA_VISIBLE_DEVICES": visible_gpus}
    with ExitStack() as ending:
        with log_path.open("wb") as log:
            try:
                sampler = subprocess.Popen(
                    argv,
                    cwd=ROOT,
                    env={**os.environ, **visible},
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C in the terminal reaches labscale alone
                )
                ending.callback(_end_sampler, sampler)
            except OSError as error:
                log.write(f"the sampler cannot be started: {error}\n".encode())
        yield


def _end_sampler(sampler: subprocess.Popen[bytes]) -> None:
    """One that hangs inside a driver ends when the driver answers."""
    try:
        with suppress(subprocess.TimeoutExpired):
            sampler.communicate(timeout=PATIENCE_S)
    finally:  # Ctrl-C too
        sampler.kill()
        with suppress(subprocess.TimeoutExpired):
            sampler.wait(PATIENCE_S)


def sampler_argv(launch: Launch, *, node: int | None = None) -> tuple[str, ...]:
    """The command of the sampler, for a place where ``suite`` can be imported. ``node``: which one of several."""
    case, run_dir = launch.case, Path(launch.run_dir).absolute()
    num_gpus = case.gpus_per_node if case.device == "cuda" else 0
    program = (sys.executable, "-m", "suite.launch.telemetry_sampler")
    which = () if node is None else (f"--node={node}",)
    return (*program, str(run_dir), f"--gpus={num_gpus}", f"--ranks={case.processes_per_node}", *which)


class RankProcesses:
    """The processes of the ranks on this node, found among all processes by their commands and environments.

    A rank in a container knows an id of the container's own, and hundreds of nodes cannot read each other's files again
    and again. Emulated nodes share a machine, so the environment of a process has to name the node, one of several.
    """

    def __init__(self, run_dir: Path, num_ranks: int, *, node: int | None = None) -> None:
        self._run_dir = str(run_dir)
        self._num_ranks = num_ranks  # on this node
        self._node = None if node is None else str(node)
        self._ranks: dict[int, psutil.Process] = {}
        self._looked_s = -LOOK_EVERY_S

    def read(self) -> tuple[RankReading, ...]:
        """Read the known ranks, then look for others. A new one is read next time: CPU use needs an interval."""
        now_s = time.monotonic()
        readings = tuple(_reading(rank, process) for rank, process in sorted(self._ranks.items()))
        if len(self._ranks) < self._num_ranks and now_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = now_s
            self._look()
        return readings

    def _look(self) -> None:
        for process in psutil.process_iter(["cmdline"]):
            line = process.info["cmdline"] or ()
            if self._run_dir in line and _WORKER in line:
                with suppress(psutil.Error, KeyError, ValueError):  # torchrun itself has no rank
                    environ = process.environ()
                    rank = int(environ["RANK"])
                    if environ.get(NODE_RANK) == self._node and rank not in self._ranks:
                        process.cpu_percent()  # the next call says what was used since this one
                        self._ranks[rank] = process


def _reading(rank: int, process: psutil.Process) -> RankReading:
    try:
        with process.oneshot():
            return RankReading(
                rank=rank,
                cpu_percent=process.cpu_percent(),
                memory_gb=process.memory_info().rss / _GB,
                threads=process.num_threads(),
                core=process.cpu_num(),  # of its main thread: field 39 of /proc/PID/stat, which is read anyway
            )
    except psutil.Error:  # it has ended
        return RankReading(rank=rank)


class Sampler:
    """Reads everything once per call; None stands for what cannot be read. ``node``: which one of several."""

    def __init__(self, run_dir: Path, *, num_gpus: int, num_ranks: int, node: int | None = None) -> None:
        self.gpus = LiveGpus(num_gpus)
        self._ranks = RankProcesses(run_dir, num_ranks, node=node)
        self._noted: set[str] = set()
        self._num_ranks = num_ranks  # that are to be seen
        self._cpu = HostCpu()

    def events(self) -> Iterator[Note | Sample]:
        """Yield what could not be read, each once, and a sample."""
        sample = self._sample()
        for what, why in self.gpus.notes.items():
            if what not in self._noted:
                self._noted.add(what)
                yield Note(text=f"{what}: {why}")
        yield sample

    def _sample(self) -> Sample:
        time_unix_s, monotonic_s = time.time(), time.perf_counter()
        gpus, ranks = self.gpus.read(), self._ranks.read()
        cpu = self._cpu.use([rank.cpu_percent for rank in ranks] + [None] * (self._num_ranks - len(ranks)))
        memory = psutil.virtual_memory()
        host = HostReading(
            cpu_percent=cpu.busy,
            stolen_percent=cpu.stolen,
            others_percent=cpu.others,
            memory_used_gb=(memory.total - memory.available) / _GB,
            load=os.getloadavg()[0],
        )
        return Sample(
            time_unix_s=time_unix_s,
            monotonic_s=monotonic_s,
            reading_time_s=time.perf_counter() - monotonic_s,
            sampler_cpu_s=time.process_time(),
            gpus=gpus,
            ranks=ranks,
            host=host,
        )


def sample_until(
    is_over: Callable[[float], bool],
    sampler: Sampler,
    stream: IO[bytes],
    *,
    rate_hz: float = RATE_HZ,
    clock_s: Callable[[], float] = time.monotonic,
) -> None:
    """Write samples to an unbuffered ``stream`` at ``rate_hz``, skipping those that come too late, and a last one.

    ``is_over`` waits for at most the given seconds.
    """
    stream.write(line_of(TelemetryStart(rate_hz=rate_hz, persistence=sampler.gpus.persistence)))
    next_s, ends = clock_s(), False
    while not ends:
        next_s = max(next_s + 1 / rate_hz, clock_s())
        stream.writelines(map(line_of, sampler.events()))
        ends = is_over(max(0.0, next_s - clock_s()))
    stream.writelines(map(line_of, sampler.events()))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="suite.launch.telemetry_sampler", description=__doc__)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--gpus", type=int, default=0, help="how many of the visible ones")
    parser.add_argument("--ranks", type=int, default=0, help="of this node")
    parser.add_argument("--node", type=int, help="which one this is, where there are several")
    arguments = parser.parse_args(argv)
    node: int | None = arguments.node
    sampler = Sampler(arguments.run_dir, num_gpus=arguments.gpus, num_ranks=arguments.ranks, node=node)
    with telemetry_path(arguments.run_dir, node).open("ab", buffering=0) as stream:
        sample_until(lambda wait_s: bool(select.select([sys.stdin], [], [], wait_s)[0]), sampler, stream)
    sampler.gpus.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
