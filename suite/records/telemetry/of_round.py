"""Reads what the samplers of a round wrote: the summary and the readings that are stored, or why there are none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from suite.records.network.clocks import NEEDED_S, clock_of
from suite.records.rank_file import RankFile
from suite.records.telemetry.file import (
    SAMPLER_LOG,
    TELEMETRY_FILE,
    TelemetryContent,
    read_telemetry,
    sampler_log,
    telemetry_path,
)
from suite.records.telemetry.nodes import reference_node, summarise_nodes
from suite.records.telemetry.readings import kept_readings
from suite.records.telemetry.summary import summarise, window_of
from suite.schema.record import RunRecord
from suite.schema.telemetry import NodeReadings, TelemetrySummary


@dataclass(frozen=True, kw_only=True)
class RoundTelemetry:
    summary: TelemetrySummary | None = None
    note: str | None = None  # why there is no summary
    readings: tuple[NodeReadings, ...] = ()


def read_round(run_dir: Path, record: RunRecord, files: Sequence[RankFile]) -> RoundTelemetry:
    """Read a round's telemetry. It never makes a round fail: what is wrong with it becomes the note."""
    if record.outcome != "completed":
        return RoundTelemetry(note=f"the round is {record.outcome}, so it has no window")
    if record.case.nnodes > 1:
        return _of_nodes(run_dir, record, files[0])
    try:
        content = read_telemetry(run_dir / TELEMETRY_FILE)
        if content is None:
            return RoundTelemetry(note=f"the sampler wrote no {TELEMETRY_FILE}; {SAMPLER_LOG} may say why")
        window, frames = window_of(record, files[0])
        num_gpus = record.case.world_size if record.case.device == "cuda" else 0
        summary = summarise(content, window, frames=frames, num_gpus=num_gpus)
        kept = kept_readings(content, record, files[0])
        return RoundTelemetry(summary=summary, readings=() if kept is None else (kept,))
    except (OSError, ValueError, ArithmeticError) as error:
        return RoundTelemetry(note=f"{TELEMETRY_FILE}: {error}")


def _of_nodes(run_dir: Path, record: RunRecord, rank_0: RankFile) -> RoundTelemetry:
    contents: dict[int, TelemetryContent | str] = {}
    for node in range(record.case.nnodes):
        path = telemetry_path(run_dir, node)
        try:
            contents[node] = (
                read_telemetry(path) or f"its sampler wrote no {path.name}; {sampler_log(node)} may say why"
            )
        except OSError as error:
            contents[node] = f"{path.name}: {error.strerror}"
    try:
        summary = summarise_nodes(record, rank_0, contents)
        return RoundTelemetry(summary=summary, readings=_readings_of_nodes(record, rank_0, contents, summary))
    except (ValueError, ArithmeticError) as error:
        return RoundTelemetry(note=str(error))


def _readings_of_nodes(
    record: RunRecord, rank_0: RankFile, contents: Mapping[int, TelemetryContent | str], summary: TelemetrySummary
) -> tuple[NodeReadings, ...]:
    """Return the readings of every node that has a summary; the others' cannot be placed in time."""
    readings = []
    for node, content in contents.items():
        if isinstance(content, str) or node in summary.missing_nodes:
            continue
        clock = clock_of(node, record.clocks, reference=reference_node(rank_0), needed_s=NEEDED_S)
        readings.append(kept_readings(content, record, rank_0, node=node, offset_s=clock.offset_s))
    return tuple(one for one in readings if one is not None)
