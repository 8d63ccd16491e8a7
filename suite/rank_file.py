"""What the ranks write: ``rank-<N>.jsonl``, one JSON object a line. The format is in ARCHITECTURE.md."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated

_NAME: Final = re.compile(r"rank-(\d+)\.jsonl")


@validated(frozen=True, kw_only=True)
class Start:
    event: Literal["start"]
    rank: int
    local_rank: int


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
class Iteration:
    event: Literal["iteration"]
    iteration: int
    samples: dict[str, float | None]


@validated(frozen=True, kw_only=True)
class End:
    event: Literal["end"]
    parameters_sha256: str | None = None
    peak_memory_gb: float | None = None


@validated(frozen=True, kw_only=True)
class Error:
    event: Literal["error"]
    type: str
    message: str
    out_of_memory: bool = False
    time_unix_s: float | None = None  # which rank failed first

    def __str__(self) -> str:
        return f"{self.type}: {self.message}".strip()


Event = Annotated[Start | Phase | Settings | Iteration | End | Error, Field(discriminator="event")]
_EVENT: Final[TypeAdapter[Start | Phase | Settings | Iteration | End | Error]] = TypeAdapter(Event)


@dataclass(kw_only=True)
class RankFile:
    """The events of one rank, as far as they can be read."""

    rank: int
    start: Start | None = None
    phases: list[Phase] = field(default_factory=list)
    settings: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    iterations: list[Iteration] = field(default_factory=list)
    end: End | None = None
    error: Error | None = None  # the first
    corrupt: str | None = None  # where the first line stands that is not an event, and why it is none

    def add(self, event: Start | Phase | Settings | Iteration | End | Error) -> None:
        match event:
            case Start():
                self.start = event
            case Phase():
                self.phases.append(event)
            case Settings():
                self.settings.update(event.settings)
            case Iteration():
                self.iterations.append(event)
            case End():
                self.end = event
            case Error():
                self.error = self.error or event


def rank_path(run_dir: Path, rank: int) -> Path:
    return run_dir / f"rank-{rank}.jsonl"


def rank_paths(run_dir: Path) -> dict[int, Path]:
    """Every rank file of a run directory, by rank."""
    found = {int(match[1]): path for path in run_dir.iterdir() if (match := _NAME.fullmatch(path.name))}
    return dict(sorted(found.items()))


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
