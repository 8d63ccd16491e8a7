"""Keeps a sampler's readings of the training about once a second, as columns that are stored. Pure.

All readings, five a second, would be as much as the ranks' samples. Every reading of the energy counter is kept, so its
difference over any window can be computed again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Final

from suite.external.nvml.values import GpuReading
from suite.records.rank_file import RankFile
from suite.records.telemetry.file import HostReading, RankReading, Sample, TelemetryContent
from suite.records.telemetry.summary import Span
from suite.schema.record import RunRecord
from suite.schema.telemetry import NodeReadings, Reading

EVERY_S: Final = 0.95  # at least, as ``suite.external.nvml.gpus.COUNT_EVERY_S``
# Field -> decimals that are kept; a finer digit is below what the driver or the kernel resolves, or what anyone needs.
_DECIMALS: Final = {
    "power_w": 2, "energy_j": 2, "memory_used_gb": 4, "memory_gb": 4, "cpu_percent": 1, "stolen_percent": 2,
    "others_percent": 2, "load": 2,
}  # fmt: skip
_TIME_DECIMALS: Final = 4


def kept_readings(
    content: TelemetryContent, record: RunRecord, rank_0: RankFile, *, node: int = 0, offset_s: float = 0.0
) -> NodeReadings | None:
    """Return a node's readings from before rank 0's first iteration to after its last; None if there are none.

    ``offset_s``: the clock of the node minus that of rank 0's node.
    """
    if rank_0.clock is None:
        return None
    zero_s = rank_0.clock.zero_monotonic_s + offset_s
    samples = _around(_thinned(content.samples), _training(record, zero_s))
    columns = dict(_columns(samples, zero_s))
    return NodeReadings(node=node, columns=columns) if samples else None


def _training(record: RunRecord, zero_s: float) -> Span:
    samples = record.ranks[0].samples
    starts_s, times_s = samples.get("start_s", ()), samples["iteration_time_s"]
    return Span(start_s=zero_s + (starts_s[0] or 0.0), end_s=zero_s + (starts_s[-1] or 0.0) + (times_s[-1] or 0.0))


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


def _around(samples: Sequence[Sample], span: Span) -> list[Sample]:
    """Return the samples in the span, with the last before it and the first after it."""
    before = [sample for sample in samples if sample.monotonic_s < span.start_s]
    after = [sample for sample in samples if sample.monotonic_s > span.end_s]
    return [*before[-1:], *(sample for sample in samples if span.contains(sample)), *after[:1]]


def _columns(samples: Sequence[Sample], zero_s: float) -> Iterator[tuple[str, tuple[Reading, ...]]]:
    """Yield every column in which anything was read."""
    yield "time_s", tuple(round(sample.monotonic_s - zero_s, _TIME_DECIMALS) for sample in samples)
    rows = [dict(_row(sample)) for sample in samples]
    for name in dict.fromkeys(name for row in rows for name in row):
        column = [row.get(name) for row in rows]
        if any(value is not None for value in column):
            yield name, tuple(_since_first(column) if name.endswith(".energy_j") else column)


def _row(sample: Sample) -> Iterator[tuple[str, Reading]]:
    parts: list[tuple[str, GpuReading | RankReading | HostReading]] = [("host", sample.host)]
    parts += [(f"gpu{gpu.index}", gpu) for gpu in sample.gpus]
    parts += [(f"rank{rank.rank}", rank) for rank in sample.ranks]
    for prefix, part in parts:
        for field in fields(part):
            if field.name not in {"index", "rank"}:
                yield f"{prefix}.{field.name}", _short(field.name, getattr(part, field.name))


def _short(name: str, value: float | tuple[str, ...] | None) -> Reading:
    if isinstance(value, tuple):
        return "+".join(value)
    if value is None or name == "energy_j":  # rounded after subtraction
        return value
    short = round(value, _DECIMALS.get(name, 0))
    return int(short) if short == int(short) else short


def _since_first(column: Sequence[Reading]) -> list[Reading]:
    """Subtract the first known value: a driver that was loaded weeks ago has counted 1e9 J."""
    numbers = [value if isinstance(value, int | float) else None for value in column]
    first = next(number for number in numbers if number is not None)
    return [None if number is None else round(number - first, _DECIMALS["energy_j"]) for number in numbers]
