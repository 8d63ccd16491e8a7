"""Reads what ranks write: ``rank-<N>.jsonl``, one JSON object per line. ARCHITECTURE.md describes the format."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from suite.files.json_file import read_json_lines
from suite.schema.record import CheckResult, Scalar

_NAME: Final = re.compile(r"rank-(\d+)\.jsonl")
# Sums of such numbers still fit into a record (``suite.records.validation``).
type _Measured = Annotated[float, Field(ge=-1e12, le=1e12)]
type _Count = Annotated[int, Field(ge=0, le=10**12)]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Start(_Event):
    event: Literal["start"]
    rank: _Count
    local_rank: _Count
    pid: int | None = None  # the rank's own view: inside a container it is the container's number
    node: _Count | None = None  # in the launcher's numbering
    machine: str | None = None  # equal for all processes on one kernel, also in containers; None: not known


class Network(_Event):
    """The interfaces that gloo bound, or when NCCL last wrote to its log; see ``tasks.rank.machine``."""

    event: Literal["network"]
    interfaces: tuple[str, ...] = ()
    nccl_log_written_s: _Measured | None = None  # on the same clock as ``start_s``


class ClockOffset(_Event):
    """Measured by the first rank of every node but rank 0's; see ``tasks.rank.machine``."""

    event: Literal["clock_offset"]
    when: Literal["start", "end"]
    offset_s: _Measured
    bound_s: _Measured
    wall_offset_s: _Measured


class Clock(_Event):
    event: Literal["clock"]
    zero_monotonic_s: _Measured  # zero of the iterations' ``start_s``, on the clock that all processes of a host share


class Phase(_Event):
    event: Literal["phase"]
    name: str
    duration_s: _Measured


class Settings(_Event):
    event: Literal["settings"]
    settings: dict[str, str | int | float | bool | None]


class Workload(_Event):
    event: Literal["workload"]
    workload: dict[str, Scalar]


class Validity(_Event):
    event: Literal["validity"]
    checks: tuple[CheckResult, ...]


class Iteration(_Event):
    model_config = ConfigDict(allow_inf_nan=True)  # samples may have any value: they are judged later

    event: Literal["iteration"]
    iteration: int
    samples: dict[str, float | None]


class End(_Event):
    event: Literal["end"]
    parameters_sha256: str | None = None
    peak_memory_gb: _Measured | None = None
    kernels_compiled: _Count | None = None
    warp_modules_compiled: _Count | None = None
    warp_compile_time_s: _Measured | None = None


class Error(_Event):
    event: Literal["error"]
    type: str
    message: str
    out_of_memory: bool = False
    time_unix_s: _Measured | None = None  # shows which rank failed first

    def __str__(self) -> str:
        return f"{self.type}: {self.message}".strip()


AnyEvent = Start | ClockOffset | Network | Clock | Phase | Settings | Workload | Iteration | End | Validity | Error
_EVENT: Final[TypeAdapter[AnyEvent]] = TypeAdapter(Annotated[AnyEvent, Field(discriminator="event")])


@dataclass(kw_only=True)
class RankFile:
    """The readable events of one rank."""

    rank: int
    start: Start | None = None
    network: Network | None = None
    clock: Clock | None = None
    clock_offsets: list[ClockOffset] = field(default_factory=list)
    phases_s: dict[str, float] = field(default_factory=dict)
    settings: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    workload: dict[str, Scalar] | None = None
    iterations: list[Iteration] = field(default_factory=list)
    validity: tuple[CheckResult, ...] = ()
    end: End | None = None
    error: Error | None = None  # the first
    corrupt: str | None = None  # the first line that is not an event, and why it is none

    @property
    def node(self) -> int | None:
        """Its node in the launcher's numbering; None: unknown."""
        return self.start.node if self.start else None

    def add(self, event: AnyEvent) -> None:
        match event:
            case Start() | Network() | Clock() | End():
                setattr(self, event.event, event)
            case ClockOffset():
                self.clock_offsets.append(event)
            case Phase():
                self.phases_s[event.name] = event.duration_s
            case Settings():
                self.settings.update(event.settings)
            case Workload():
                self.workload = event.workload
            case Validity():
                self.validity = event.checks
            case Iteration():
                self.iterations.append(event)
            case Error():
                self.error = self.error or event


def rank_path(run_dir: Path, rank: int) -> Path:
    return run_dir / f"rank-{rank}.jsonl"


def rank_paths(run_dir: Path) -> dict[int, Path]:
    """Return every rank file of a run directory, by rank."""
    paths = {int(match[1]): path for path in run_dir.iterdir() if (match := _NAME.fullmatch(path.name))}
    return dict(sorted(paths.items()))


def nccl_log_path(run_dir: Path, rank: int) -> Path:
    """NCCL's own log of one rank, see ``tasks.rank.machine``."""
    return run_dir / "logs" / f"nccl-rank-{rank}.log"


def rank_logs(file: RankFile, run_dir: Path) -> Iterator[Path]:
    """Yield what the rank's process wrote; several nodes have a folder each."""
    local_rank = file.start.local_rank if file.start else None
    for log in sorted(run_dir.glob("logs/**/std*.log")):
        of_node = next((part for part in log.relative_to(run_dir).parts if part.startswith("node-")), None)
        if log.parent.name == str(local_rank) and of_node in (None, f"node-{file.node}"):
            yield log


def read_rank_file(rank: int, path: Path) -> RankFile:
    """Read every valid event; see ``read_json_lines``."""
    events, corrupt = read_json_lines(path, _EVENT)
    content = RankFile(rank=rank, corrupt=corrupt)
    for event in events:
        content.add(event)
    return content
