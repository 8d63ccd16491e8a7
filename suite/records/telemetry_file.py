"""The sampler's file ``telemetry.jsonl``, one JSON object per line: ``start``, then ``sample`` and ``note``.

Readings of the training are kept about once a second, as columns that are stored. All of them, five a second, would be
as much as the ranks' samples. Every reading of the energy counter is kept, so its difference over any window can be
computed again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass as validated

from suite.external.nvml.values import GpuReading
from suite.files.json_file import read_json_lines
from suite.schema.observations import NodeReadings, Reading
from suite.schema.record import RunRecord

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


# ---- what is stored of it ----


EVERY_S: Final = 0.95  # at least, as ``suite.external.nvml.gpus.COUNT_EVERY_S``
# Field -> decimals that are kept; a finer digit is below what the driver or the kernel resolves, or what anyone needs.
_DECIMALS: Final = {
    "power_w": 2, "energy_j": 2, "memory_used_gb": 4, "memory_gb": 4, "cpu_percent": 1, "stolen_percent": 2,
    "others_percent": 2, "load": 2,
}  # fmt: skip
_TIME_DECIMALS: Final = 4


def kept_readings(content: TelemetryContent, record: RunRecord, zero_s: float, *, node: int = 0) -> NodeReadings:
    """Return a node's readings of the training, and the last before and the first after it.

    ``zero_s``: what rank 0's clock counts from, on the clock of the samples. Raises ValueError as ``window_of`` does.
    """
    training = record.ranks[0].samples
    starts_s = training.get("start_s", (None,))
    first_s, last_s, time_s = starts_s[0], starts_s[-1], training["iteration_time_s"][-1]
    if first_s is None or last_s is None or time_s is None:
        raise ValueError("rank 0 did not write when its iterations began")
    start_s, end_s = zero_s + first_s, zero_s + last_s + time_s
    thinned = _thinned(content.samples)
    samples = [
        *[sample for sample in thinned if sample.monotonic_s < start_s][-1:],
        *(sample for sample in thinned if start_s <= sample.monotonic_s <= end_s),
        *[sample for sample in thinned if sample.monotonic_s > end_s][:1],
    ]
    rows = [_values(sample) for sample in samples]
    columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    read = {name: column for name, column in columns.items() if column != [None] * len(rows)}
    times_s = tuple(round(sample.monotonic_s - zero_s, _TIME_DECIMALS) for sample in samples)
    return NodeReadings(node=node, columns={"time_s": times_s} | {name: _stored(name, read[name]) for name in read})


def _thinned(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples that have an energy counter, which is read once a second; without any, one a second."""
    counted = [sample for sample in samples if any(gpu.energy_j is not None for gpu in sample.gpus)]
    if counted:
        return counted
    kept: list[Sample] = []
    for sample in samples:
        if not kept or sample.monotonic_s - kept[-1].monotonic_s >= EVERY_S:
            kept.append(sample)
    return kept


def _values(sample: Sample) -> dict[str, Any]:
    parts: dict[str, Any] = {"host": sample.host}
    parts |= {f"gpu{gpu.index}": gpu for gpu in sample.gpus} | {f"rank{rank.rank}": rank for rank in sample.ranks}
    return {
        f"{prefix}.{item.name}": getattr(part, item.name)
        for prefix, part in parts.items()
        for item in fields(part)
        if item.name not in ("index", "rank")
    }


def _stored(name: str, column: Sequence[Any]) -> tuple[Reading, ...]:
    field_name = name.partition(".")[2]
    decimals = _DECIMALS.get(field_name, 0)
    if field_name == "energy_j":  # a driver that was loaded weeks ago has counted 1e9 J
        first_j = next(value for value in column if value is not None)
        return tuple(None if value is None else round(value - first_j, decimals) for value in column)
    return tuple(_short(value, decimals) for value in column)


def _short(value: float | tuple[str, ...] | None, decimals: int) -> Reading:
    if isinstance(value, tuple):
        return "+".join(value)
    if value is None:
        return None
    short = round(value, decimals)
    return int(short) if short == int(short) else short
