"""The sampler's file ``telemetry.jsonl``, one JSON object per line: ``start``, then ``sample`` and ``note``."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as validated

from suite.external.nvml.values import GpuReading
from suite.files.json_file import read_json_lines

TELEMETRY_FILE: Final = "telemetry.jsonl"
SAMPLER_LOG: Final = "logs/telemetry.log"  # below the run directory: tells why there is no telemetry
_FINITE: Final = ConfigDict(allow_inf_nan=False)


@validated(frozen=True, kw_only=True, config=_FINITE)
class TelemetryStart:
    event: Literal["start"] = "start"
    rate_hz: float  # the intended one
    persistence: tuple[bool | None, ...] = ()  # persistence mode of each GPU of the case


@validated(frozen=True, kw_only=True, config=_FINITE)
class RankReading:
    """The process of one rank; all None before its start, after its end, and in a container, which hides it."""

    rank: int
    cpu_percent: float | None = None  # since the last sample; 100 is one core
    memory_gb: float | None = None  # resident
    threads: int | None = None
    core: int | None = None  # that its main thread ran on last, in the kernel's numbering


@validated(frozen=True, kw_only=True, config=_FINITE)
class HostReading:
    cpu_percent: float | None = None  # since the last sample; 100 is all cores
    stolen_percent: float | None = None  # part of it that a hypervisor gave to others
    others_percent: float | None = None  # part of it that processes outside the run used; errs both ways
    memory_used_gb: float | None = None
    load: float | None = None  # the kernel's mean over one minute


@validated(frozen=True, kw_only=True, config=_FINITE)
class Sample:
    event: Literal["sample"] = "sample"
    time_unix_s: float
    monotonic_s: float  # at the same moment
    reading_time_s: float  # to read this sample
    sampler_cpu_s: float  # CPU time of the sampler's process so far
    gpus: tuple[GpuReading, ...] = ()  # of the case
    ranks: tuple[RankReading, ...] = ()
    host: HostReading


@validated(frozen=True, kw_only=True, config=_FINITE)
class Note:
    event: Literal["note"] = "note"
    text: str  # what could not be read, once


Event = Annotated[TelemetryStart | Sample | Note, Field(discriminator="event")]
_EVENT: Final[TypeAdapter[TelemetryStart | Sample | Note]] = TypeAdapter(Event)


@dataclass(kw_only=True)
class TelemetryContent:
    """The readable events of one file."""

    rate_hz: float | None = None
    persistence: tuple[bool | None, ...] = ()  # of each GPU, by its index
    samples: list[Sample] = field(default_factory=list)  # in the order of time
    notes: list[str] = field(default_factory=list)
    corrupt: str | None = None  # the first line that is not an event, and why it is none


def sampler_log(node: int | None) -> str:
    """Path of the sampler's log below the run directory; ``node`` if there are several."""
    return SAMPLER_LOG if node is None else f"logs/node-{node}/telemetry.log"


def telemetry_path(run_dir: Path, node: int | None) -> Path:
    """Path of the sampler's file; ``node`` if there are several."""
    return run_dir / (TELEMETRY_FILE if node is None else f"telemetry-node-{node}.jsonl")


def line_of(event: TelemetryStart | Sample | Note) -> bytes:
    """Return the event's line with its newline."""
    return _EVENT.dump_json(event) + b"\n"


def read_telemetry(path: Path) -> TelemetryContent | None:
    """Read every valid event, see ``read_json_lines``; None without a file."""
    try:
        events, corrupt = read_json_lines(path, _EVENT)
    except FileNotFoundError:
        return None
    content = TelemetryContent(corrupt=corrupt)
    for event in events:
        match event:
            case TelemetryStart():
                content.rate_hz, content.persistence = event.rate_hz, event.persistence
            case Sample():
                content.samples.append(event)
            case Note():
                content.notes.append(event.text)
    return content
