"""What the ranks write: ``rank-<N>.jsonl``, one JSON object a line. The format is in ARCHITECTURE.md."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

from suite.schema import CheckResult, Scalar

_NAME: Final = re.compile(r"rank-(\d+)\.jsonl")


@validated(frozen=True, kw_only=True)
class Start:
    event: Literal["start"]
    rank: int
    local_rank: int
    pid: int | None = None  # as the rank sees itself: inside a container it is a number of the container's own
    node: int | None = None  # as the launcher numbers them
    machine: str | None = None  # the same for processes on one kernel, also in containers; None: not known


@validated(frozen=True, kw_only=True)
class Network:
    """See ``tasks.network``: what gloo bound, or until when NCCL wrote to its log."""

    event: Literal["network"]
    interfaces: tuple[str, ...] = ()
    nccl_log_written_s: float | None = None  # on the same clock as ``start_s``


@validated(frozen=True, kw_only=True)
class ClockOffset:
    """See ``tasks.clock``; from the first rank of every node but rank 0's."""

    event: Literal["clock_offset"]
    when: Literal["start", "end"]
    offset_s: float
    bound_s: float
    wall_offset_s: float


@validated(frozen=True, kw_only=True)
class Clock:
    event: Literal["clock"]
    zero_monotonic_s: float  # where ``start_s`` of the iterations counts from, on the clock of all processes of a host


@validated(frozen=True, kw_only=True)
class Phase:
    event: Literal["phase"]
    name: str
    duration_s: float


@validated(frozen=True, kw_only=True)
class Settings:
    event: Literal["settings"]
    settings: dict[str, str | int | float | bool | None]


@validated(frozen=True, kw_only=True)
class Workload:
    event: Literal["workload"]
    workload: dict[str, Scalar]


@validated(frozen=True, kw_only=True)
class Validity:
    event: Literal["validity"]
    checks: tuple[CheckResult, ...]


@validated(frozen=True, kw_only=True)
class Iteration:
    event: Literal["iteration"]
    iteration: int
    samples: dict[str, float | None]


@validated(frozen=True, kw_only=True)
class End:
    event: Literal["end"]
    parameters_sha256: str | None = None
    peak_memory_gb: float | None = None
    kernels_compiled: int | None = None


@validated(frozen=True, kw_only=True)
class Error:
    event: Literal["error"]
    type: str
    message: str
    out_of_memory: bool = False
    time_unix_s: float | None = None  # which rank failed first

    def __str__(self) -> str:
        return f"{self.type}: {self.message}".strip()


AnyEvent = Start | ClockOffset | Network | Clock | Phase | Settings | Workload | Iteration | End | Validity | Error
_EVENT: Final[TypeAdapter[AnyEvent]] = TypeAdapter(Annotated[AnyEvent, Field(discriminator="event")])


@dataclass(kw_only=True)
class RankFile:
    """The events of one rank, as far as they can be read."""

    rank: int
    start: Start | None = None
    network: Network | None = None
    clock: Clock | None = None
    clock_offsets: list[ClockOffset] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    settings: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    workload: dict[str, Scalar] | None = None
    iterations: list[Iteration] = field(default_factory=list)
    validity: tuple[CheckResult, ...] = ()
    end: End | None = None
    error: Error | None = None  # the first
    corrupt: str | None = None  # where the first line stands that is not an event, and why it is none

    def add(self, event: AnyEvent) -> None:
        match event:
            case Start() | Network() | Clock() | End():
                setattr(self, event.event, event)
            case ClockOffset():
                self.clock_offsets.append(event)
            case Phase():
                self.phases.append(event)
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
    """Every rank file of a run directory, by rank."""
    found = {int(match[1]): path for path in run_dir.iterdir() if (match := _NAME.fullmatch(path.name))}
    return dict(sorted(found.items()))


def nccl_log_path(run_dir: Path, rank: int) -> Path:
    """What NCCL says of itself on one rank, see ``tasks.network``."""
    return run_dir / "logs" / f"nccl-rank-{rank}.log"


def read_start(path: Path) -> Start | None:
    """Read the first line while the rank is at work; None until it is there and whole, and when it is no such event."""
    try:
        with path.open("rb") as stream:
            line = stream.readline()
        event = _EVENT.validate_json(line) if line.endswith(b"\n") else None
    except (FileNotFoundError, ValidationError):  # what is wrong with a file is said when the round is collected
        return None
    return event if isinstance(event, Start) else None


def read_rank_file(rank: int, path: Path) -> RankFile:
    """Read every good line. The last line may be torn: its rank was killed while it wrote."""
    content = RankFile(rank=rank)
    *lines, torn = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            content.add(_EVENT.validate_json(line))
        except ValidationError as error:
            why = error.errors(include_url=False)[0]["msg"]
            content.corrupt = content.corrupt or f"{path.name} line {number} is not an event: {why}"
    if torn:
        try:
            content.add(_EVENT.validate_json(torn))
        except ValidationError:
            return content
    return content
