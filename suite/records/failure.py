"""Why a run failed: the root cause in the failing rank's own words.

When one rank dies, its peers fail too, with a message of the communication library, often before torchrun notices the
first: what torchrun calls the root cause is frequently such a follow-up.
"""

import math
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from suite.records.network.clocks import failed_at_s
from suite.records.rank_file import RankFile

STDERR_LINES: Final = 5

# Of torch's allocator, CUDA, Warp, cuBLAS, torch's CPU allocator and Python. With its memory pool off, Warp refuses to
# allocate while it captures a CUDA graph, whatever memory there is.
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
    """How a rank's process ended, as torchrun reports it; ``code`` is negative for a signal."""

    rank: int
    local_rank: int
    code: int

    def __str__(self) -> str:
        if self.code == -signal.SIGKILL:
            return f"rank {self.rank}: killed by signal 9 (often the kernel's out-of-memory killer)"
        if self.code < 0:
            return f"rank {self.rank}: killed by signal {-self.code} ({signal.strsignal(-self.code)})"
        return f"rank {self.rank}: ended with exit code {self.code}"


def find_failure(run_dir: Path, files: Sequence[RankFile], exit_code: int) -> Failure | None:
    """Tell a root cause from its follow-ups; None when nothing failed.

    A message about memory comes first, then a rank's error that does not speak of its peers, then a rank that died
    without a word, then the first of the others. Raises OSError when a log cannot be read.
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
    logs = sorted(run_dir.glob("logs/**/torchrun.log"))  # of every node where there are several
    silent = [
        (exit_, log.parent)
        for log in logs
        for exit_ in rank_exits(_read_text(log))
        if exit_.rank not in {rank for rank, _ in errors}
    ]
    ended = {file.rank for file in files if file.end}
    if silent:  # one that had not finished its training explains one that had, a killed one those that gave up
        return _without_a_word(*min(silent, key=lambda found: (found[0].rank in ended, found[0].code > 0)))
    for rank, error in errors:
        return Failure(outcome="crashed", reason=f"rank {rank}: {error}")
    spoken = [log for log in logs if log.stat().st_size] or logs or [run_dir / "logs" / "torchrun.log"]
    return _of_torchrun(spoken[-1], exit_code) if exit_code else None


def rank_exits(torchrun_log: str) -> list[RankExit]:
    """Find the ranks that ended badly and by themselves; torchrun ends the others by SIGTERM, then SIGKILL."""
    killed = set(_KILLED_BY_TORCHRUN.findall(torchrun_log))
    return [
        RankExit(rank=int(match["rank"]), local_rank=int(match["local_rank"]), code=int(match["code"]))
        for match in _EXIT.finditer(torchrun_log)
        if int(match["code"]) != -signal.SIGTERM and match["pid"] not in killed
    ]


def _without_a_word(exit_: RankExit, node_logs: Path) -> Failure:
    logs = sorted(path for path in node_logs.glob("**/stderr.log") if path.parent.name == str(exit_.local_rank))
    last_lines = _last_lines(logs[-1]) if logs else ""
    said = f"; the last lines of its stderr:\n{last_lines}" if last_lines else "; its stderr is empty"
    outcome: Literal["crashed", "oom"] = "oom" if _OUT_OF_MEMORY.search(last_lines) else "crashed"
    return Failure(outcome=outcome, reason=f"{exit_}{said}")


def _of_torchrun(log: Path, exit_code: int) -> Failure:
    if exit_code < 0:
        ending = f"torchrun was killed by signal {-exit_code} ({signal.strsignal(-exit_code)})"
    else:
        ending = f"torchrun ended with exit code {exit_code}"
    last_lines = _last_lines(log) if log.exists() else ""
    said = f"; the last lines of its log:\n{last_lines}" if last_lines else "; its log is empty"
    return Failure(outcome="crashed", reason=f"{ending}{said}")


def _last_lines(path: Path) -> str:
    lines = [line.rstrip() for line in _read_text(path).splitlines() if not _RULER.fullmatch(line)]
    return "\n".join(lines[-STDERR_LINES:])


def _read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
