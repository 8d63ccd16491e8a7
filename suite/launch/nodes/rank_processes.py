"""The processes of a round's ranks on this node, and what they use."""

import contextlib
import time
from pathlib import Path
from typing import Final

import psutil

from suite.launch.nodes.node import NODE_RANK
from suite.records.rank_file import rank_path, read_start
from suite.records.telemetry_file import RankReading

LOOK_EVERY_S: Final = 2.0  # for ranks that are not there yet, among all processes of a node
_WORKER: Final = "tasks.worker"
_GB: Final = 1e9


class RankProcesses:
    """The processes of the ranks, found by the process ids that they write.

    A rank in a container writes an id of the container's own. Therefore a process counts only if its command names the
    run directory.
    """

    def __init__(self, run_dir: Path, num_ranks: int) -> None:
        self._run_dir = run_dir
        self._found: dict[int, psutil.Process | None] = {}
        self._num_ranks = num_ranks

    def read(self) -> tuple[RankReading, ...]:
        return tuple(self._reading(rank) for rank in range(self._num_ranks))

    def _reading(self, rank: int) -> RankReading:
        try:
            if rank not in self._found:
                self._find(rank)
                return RankReading(rank=rank)
            process = self._found[rank]
            return RankReading(rank=rank) if process is None else _reading(rank, process)
        except psutil.Error:  # it has ended
            self._found[rank] = None
            return RankReading(rank=rank)

    def _find(self, rank: int) -> None:
        start = read_start(rank_path(self._run_dir, rank))
        if start is None:
            return
        self._found[rank] = None
        if start.pid is None:
            return
        process = psutil.Process(start.pid)
        if str(self._run_dir) in process.cmdline():
            process.cpu_percent()  # the next call says what was used since this one
            self._found[rank] = process


class NodeRankProcesses:
    """The processes of the ranks on this node, one of several, found among all processes of the node.

    Reading the ids from the ranks' files would have hundreds of nodes read hundreds of files again and again. Emulated
    nodes share a machine, so the environment of a process has to name this node.
    """

    def __init__(self, run_dir: Path, num_ranks: int, *, node: int) -> None:
        self._run_dir = str(run_dir)
        self._num_ranks = num_ranks  # on this node
        self._node = str(node)
        self._found: dict[int, psutil.Process] = {}
        self._looked_s = -LOOK_EVERY_S

    def read(self) -> tuple[RankReading, ...]:
        """Read the known ranks, then look for others. A new one is read next time: CPU use needs an interval."""
        now_s = time.monotonic()
        readings = tuple(_reading(rank, process) for rank, process in sorted(self._found.items()))
        if len(self._found) < self._num_ranks and now_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = now_s
            self._look()
        return readings

    def _look(self) -> None:
        for process in psutil.process_iter(["cmdline"]):
            line = process.info["cmdline"] or ()
            if self._run_dir in line and _WORKER in line:
                with contextlib.suppress(psutil.Error, KeyError, ValueError):  # torchrun itself has no rank
                    environ = process.environ()
                    if environ[NODE_RANK] == self._node:
                        self._add(int(environ["RANK"]), process)

    def _add(self, rank: int, process: psutil.Process) -> None:
        if rank not in self._found:
            process.cpu_percent()  # the next call says what was used since this one
            self._found[rank] = process


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
