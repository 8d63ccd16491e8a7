"""Finds why a run failed: the root cause in the failing rank's own words.

If one rank dies, its peers fail too, with a message of the communication library, and often before torchrun notices the
first one. So what torchrun calls the root cause is often such a follow-up.
"""

import math
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from suite.files.input_file import read_text
from suite.records.network.clocks import failed_at_s
from suite.records.rank_file import RankFile

STDERR_LINES: Final = 5

# Messages of torch's allocator, CUDA, Warp, cuBLAS, torch's CPU allocator and Python. Without its memory pool, Warp
# refuses to allocate while it captures a CUDA graph, however much memory is free.
_OUT_OF_MEMORY: Final = re.compile(
    r"out of memory|OutOfMemoryError|MemoryError|ALLOC_FAILED|can't allocate memory"
    r"|Failed to allocate \d+ bytes on device(?!.*memory pools are not enabled)"
)
_FOLLOW_UP: Final = re.compile(
    r"Dist(Backend|Network|Store)Error|NCCL|gloo|ProcessGroup|TCPStore|Connection (closed|reset|refused)|Broken pipe",
    re.IGNORECASE,
)
_EXIT: Final = re.compile(
    r"^ *rank +: (?P<rank>\d+) \(local_rank: (?P<local_rank>\d+)\)\n"
    r" *exitcode +: (?P<code>-?\d+) +\(pid: (?P<pid>\d+)\)",
    re.MULTILINE,
)
_KILLED_BY_TORCHRUN: Final = re.compile(r"Unable to shutdown process (\d+) via")
_RULER: Final = re.compile(r"[=\-*\s]*")


@dataclass(frozen=True, kw_only=True)
class Failure:
    outcome: Literal["crashed", "oom"]
    reason: str


@dataclass(frozen=True, kw_only=True)
class RankExit:
    """The end of a rank's process in torchrun's report; ``code`` is negative for a signal."""

    rank: int
    local_rank: int
    code: int

    def __str__(self) -> str:
        if self.code == -signal.SIGKILL:
            return f"rank {self.rank}: killed by signal 9 (often the kernel's out-of-memory killer)"
        return f"rank {self.rank}: {_ending(self.code)}"


def _ending(code: int) -> str:
    return f"killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with exit code {code}"


def find_failure(run_dir: Path, files: Sequence[RankFile], exit_code: int) -> Failure | None:
    """Distinguish the root cause from its follow-ups; None if nothing failed.

    A message about memory comes first, then a rank's error that does not mention its peers, then a rank that died
    without an error, then the first of the other errors. Raises OSError if a log cannot be read.
    """
    failed_s = {file.rank: failed_at_s(file, files) for file in files}
    errors = sorted(
        ((file.rank, file.error) for file in files if file.error),
        key=lambda failed: math.inf if (time_s := failed_s[failed[0]]) is None else time_s,
    )
    for rank, error in errors:
        if error.out_of_memory or _OUT_OF_MEMORY.search(str(error)):
            return Failure(outcome="oom", reason=f"rank {rank}: {error}")
    for rank, error in errors:
        if not _FOLLOW_UP.search(str(error)):
            return Failure(outcome="crashed", reason=f"rank {rank}: {error}")
    logs = sorted(run_dir.glob("logs/**/torchrun.log"))  # one per node
    silent = [
        (exit_, log.parent)
        for log in logs
        for exit_ in rank_exits(read_text(log))
        if exit_.rank not in {rank for rank, _ in errors}
    ]
    ended = {file.rank for file in files if file.end}
    if silent:  # first a rank that had not finished its training, then one that was killed
        return _without_a_word(*min(silent, key=lambda found: (found[0].rank in ended, found[0].code > 0)))
    for rank, error in errors:
        return Failure(outcome="crashed", reason=f"rank {rank}: {error}")
    spoken = [log for log in logs if log.stat().st_size] or logs or [run_dir / "logs" / "torchrun.log"]
    return _of_torchrun(spoken[-1], exit_code) if exit_code else None


def rank_exits(torchrun_log: str) -> list[RankExit]:
    """Find the ranks that failed by themselves; torchrun ends the others by SIGTERM, then SIGKILL."""
    killed = set(_KILLED_BY_TORCHRUN.findall(torchrun_log))
    return [
        RankExit(rank=int(match["rank"]), local_rank=int(match["local_rank"]), code=int(match["code"]))
        for match in _EXIT.finditer(torchrun_log)
        if int(match["code"]) != -signal.SIGTERM and match["pid"] not in killed
    ]


def _without_a_word(exit_: RankExit, node_logs: Path) -> Failure:
    logs = sorted(path for path in node_logs.glob("**/stderr.log") if path.parent.name == str(exit_.local_rank))
    last_lines = _last_lines(logs[-1]) if logs else ""
    outcome: Literal["crashed", "oom"] = "oom" if _OUT_OF_MEMORY.search(last_lines) else "crashed"
    return Failure(outcome=outcome, reason=f"{exit_}; {_quoted('stderr', last_lines)}")


def _of_torchrun(log: Path, exit_code: int) -> Failure:
    ending = f"torchrun {'was ' if exit_code < 0 else ''}{_ending(exit_code)}"
    last_lines = _last_lines(log) if log.exists() else ""
    return Failure(outcome="crashed", reason=f"{ending}; {_quoted('log', last_lines)}")


def _quoted(source: str, last_lines: str) -> str:
    return f"the last lines of its {source}:\n{last_lines}" if last_lines else f"its {source} is empty"


def _last_lines(path: Path) -> str:
    lines = [line.rstrip() for line in read_text(path).splitlines() if not _RULER.fullmatch(line)]
    return "\n".join(lines[-STDERR_LINES:])
