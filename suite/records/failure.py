"""Finds why a run failed: the root cause in the failing rank's own words.

If one rank dies, its peers fail too, with a message of the communication library, and often before torchrun notices the
first one. So what torchrun calls the root cause is often such a follow-up.
"""

import math
import re
import signal
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from suite.files.input_file import read_text
from suite.records.network import failed_at_s
from suite.records.rank_file import RankFile, rank_logs

STDERR_LINES: Final = 5

# Messages of torch's allocator, CUDA, Warp, cuBLAS, torch's CPU allocator, Python, XLA, C++, PhysX and Vulkan. Without
# its memory pool, Warp refuses to allocate while it captures a CUDA graph, however much memory is free.
_OUT_OF_MEMORY: Final = re.compile(
    r"(?i:(?<!or )out of (GPU )?memory(?!,? or )|out_of_(device_|host_)?memory)|OutOfMemoryError|MemoryError"
    r"|MemoryAllocation|ALLOC_FAILED|([Cc]an't|[Cc]annot) allocate memory|RESOURCE_EXHAUSTED.*[Aa]llocate"
    r"|std::bad_alloc|PxgCuda\w*Allocator.*fail(ed)? to allocate"
    r"|Failed to allocate \d+ bytes on device(?!.*memory pools are not enabled)"
)
# What only says what can be: the reasons that Omniverse lists for a lost device, advice, and a line of XLA about an
# allocation that it can do without.
_MAY_BE: Final = re.compile(
    r"(\b(reasons|causes|(possible|likely|potential) (reason|cause)|(may|might|could|can) (be|have|run))\b"
    r"|\b(if|when|avoid)\b.{0,20}(?=out of memory)|such as|e\.g\.|possibly|perhaps|maybe)"
    r"[^.\n]*(\n\s*([-*•]|\d+[.)]).*)*"
    r"|.*not a failure.*",
    re.IGNORECASE,
)
# What tells why a process died, unlike the stacks that faulthandler, torch and glibc write after it.
_CAUSE: Final = re.compile(
    r"terminate called|what\(\):|CUDA error|Fatal Python error|Segmentation fault|\b\w*(Error|Exception): |\b[Aa]ssert"
)
_STACK: Final = re.compile(
    r"((Current t|T)hread('s)? (0x|C stack)|Stack \(most recent|  File \".*\", line \d+ in |  Binary file |  \.\.\.$"
    r"|  <no Python frame>|  <truncated |Extension modules: |frame #\d+: )"
)
_FOLLOW_UP: Final = re.compile(
    r"Dist(Backend|Network|Store)Error|NCCL|gloo|ProcessGroup|TCPStore|Connection (closed|reset|refused)|Broken pipe",
    re.IGNORECASE,
)
_EXIT: Final = re.compile(
    r"^ *rank +: (\d+) \(local_rank: (\d+)\)\n *exitcode +: (-?\d+) +\(pid: (\d+)\)", re.MULTILINE
)
_KILLED_BY_TORCHRUN: Final = re.compile(r"Unable to shutdown process (\d+) via")
_KILLER: Final = {
    True: ": the kernel's out-of-memory killer ran meanwhile",
    False: ", not by the kernel's out-of-memory killer",
    None: "; whether by the kernel's out-of-memory killer is not known",
}
_RULER: Final = re.compile(r"[=\-*\s]*")


type Failure = tuple[Literal["crashed", "oom"], str]  # outcome and reason


class RankExit(NamedTuple):
    """The end of a rank's process in torchrun's report; ``code`` is negative for a signal."""

    rank: int
    local_rank: int
    code: int
    logs: Path  # of its node


def find_failure(run_dir: Path, files: Sequence[RankFile], exit_code: int, oom_kills: int | None) -> Failure | None:
    """Distinguish the root cause from its follow-ups; None if nothing failed.

    A message about memory comes first, then a rank's error that does not mention its peers, then a rank that died
    without an error, then the first of the other errors. ``oom_kills``: processes that the kernel killed meanwhile for
    lack of memory. Raises OSError if a log cannot be read.
    """
    failed = [(failed_at_s(file, files), file) for file in files if file.error]
    errors = [file for _, file in sorted(failed, key=lambda at: math.inf if at[0] is None else at[0])]
    for file in errors:
        if (file.error and file.error.out_of_memory) or _lacks_memory(str(file.error)):
            return "oom", f"rank {file.rank}: {file.error}"
    for file in errors:
        if lack := _lack_in(rank_logs(file, run_dir)):
            return "oom", f"rank {file.rank}: {lack}\n{file.error}"
        if not _FOLLOW_UP.search(str(file.error)):
            return "crashed", f"rank {file.rank}: {file.error}"
    logs = sorted(run_dir.glob("logs/**/torchrun.log"))  # one per node
    speaking, ended = ({file.rank for file in files if getattr(file, event)} for event in ("error", "end"))
    silent = [exit_ for log in logs for exit_ in _rank_exits(log) if exit_.rank not in speaking]
    if silent:  # first a rank that had not finished its training, then one that was killed
        return _without_a_word(min(silent, key=lambda exit_: (exit_.rank in ended, exit_.code > 0)), oom_kills)
    if errors:
        return "crashed", f"rank {errors[0].rank}: {errors[0].error}"
    spoken = [log for log in logs if log.stat().st_size] or logs
    ending = f"torchrun {'was ' if exit_code < 0 else ''}{_ending(exit_code)}"
    last_lines = _telling_lines(spoken[-1]) if exit_code and spoken else ""
    return ("crashed", f"{ending}; {_quoted('log', last_lines)}") if exit_code else None


def _rank_exits(torchrun_log: Path) -> Iterator[RankExit]:
    """Yield the ranks that failed by themselves; torchrun ends the others by SIGTERM, then SIGKILL."""
    text = read_text(torchrun_log)
    killed = set(_KILLED_BY_TORCHRUN.findall(text))
    for match in _EXIT.finditer(text):
        *numbers, pid = match.groups()
        rank, local_rank, code = map(int, numbers)
        if code != -signal.SIGTERM and pid not in killed:
            yield RankExit(rank, local_rank, code, torchrun_log.parent)


def _lacks_memory(text: str) -> bool:
    """Whether the text says that memory was lacking, not only that it may have been."""
    return _OUT_OF_MEMORY.search(_MAY_BE.sub("", text)) is not None


def _lack_in(logs: Iterable[Path]) -> str | None:
    """The message of PhysX that it lacks memory: it goes on, and an illegal access or a segmentation fault follows."""
    for log in logs:
        with log.open(encoding="utf-8", errors="replace") as lines:
            if lack := next((line.strip() for line in lines if "PxgCuda" in line and _lacks_memory(line)), None):
                return lack
    return None


def _without_a_word(exit_: RankExit, oom_kills: int | None) -> Failure:
    logs = sorted(path for path in exit_.logs.glob("**/stderr.log") if path.parent.name == str(exit_.local_rank))
    last_lines = _telling_lines(logs[-1]) if logs else ""
    lack = _lack_in(logs[-1].parent.glob("std*.log")) if logs else None
    by_kernel = exit_.code == -signal.SIGKILL and bool(oom_kills)
    ending = _ending(exit_.code)
    if exit_.code == -signal.SIGKILL:
        ending = f"killed by signal 9{_KILLER[None if oom_kills is None else by_kernel]}"
    if lack and lack not in last_lines:
        last_lines = f"{lack}\n{last_lines}"
    outcome: Literal["crashed", "oom"] = "oom" if by_kernel or _lacks_memory(last_lines) else "crashed"
    return outcome, f"rank {exit_.rank}: {ending}; {_quoted('stderr', last_lines)}"


def _ending(code: int) -> str:
    return f"killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with exit code {code}"


def _quoted(source: str, last_lines: str) -> str:
    return f"the last lines of its {source}:\n{last_lines}" if last_lines else f"its {source} is empty"


def _telling_lines(path: Path) -> str:
    """The last lines without stacks, and before them the first cause, the last causes and the first lack of memory."""
    lines = [
        line.rstrip() for line in read_text(path).splitlines() if not _RULER.fullmatch(line) and not _STACK.match(line)
    ]
    earlier, last = lines[:-STDERR_LINES], lines[-STDERR_LINES:]
    causes = list(dict.fromkeys(line for line in earlier if _CAUSE.search(line) and line not in last))
    lacks = [line for line in earlier if _lacks_memory(line)]
    kept = {*causes[:1], *causes[1 - STDERR_LINES :], *lacks[:1]}
    return "\n".join([*(line for line in dict.fromkeys(earlier) if line in kept), *last])
