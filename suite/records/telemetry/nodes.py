"""Combines the readings of several nodes' samplers into one summary, on the clock of rank 0's node. Pure."""

import statistics
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from suite.records.network.clocks import NEEDED_S, clock_of
from suite.records.rank_file import RankFile
from suite.records.telemetry.file import TelemetryContent
from suite.records.telemetry.summary import (
    Points,
    Window,
    agrees,
    at,
    clipped,
    power_over_time,
    rounded,
    summarise,
    total_energy_j,
    total_power,
    window_of,
)
from suite.schema.record import RunRecord
from suite.schema.telemetry import NodeTelemetry, Spread, TelemetrySummary


def summarise_nodes(
    record: RunRecord, rank_0: RankFile, contents: Mapping[int, TelemetryContent | str]
) -> TelemetrySummary:
    """Summarise ``contents``: for every node, what its sampler wrote or why there is nothing.

    A node without readings in the window, or whose clock is not known precisely enough, is missing. Energy and power of
    the round are then unknown. Raises ValueError if every node is missing.
    """
    window, frames = window_of(record, rank_0)
    reference = reference_node(rank_0)
    per_node = record.case.nproc_per_node if record.case.device == "cuda" else 0
    shifted: dict[int, TelemetryContent] = {}
    seen: dict[int, TelemetrySummary] = {}
    notes: list[str] = []
    for node, content in contents.items():
        if isinstance(content, str):
            notes.append(f"node {node}: {content}")
            continue
        try:
            clock = clock_of(node, record.clocks, reference=reference, needed_s=NEEDED_S)
            shifted[node] = _shifted(content, clock.offset_s)
            seen[node] = summarise(shifted[node], window, frames=frames, num_gpus=per_node)
        except ValueError as error:
            notes.append(f"node {node}: {error}")
    if not seen:
        raise ValueError("; ".join(notes))
    missing = tuple(sorted(contents.keys() - seen.keys()))
    has_all_gpus = 0 < per_node == min(len(summary.gpus) for summary in seen.values())
    power = _power([shifted[node] for node in seen], window) if has_all_gpus and not missing else None
    first = seen.get(reference) or next(iter(seen.values()))
    return _together(record, seen, replace(first, power_w=power), frames, missing, notes)


def reference_node(rank_0: RankFile) -> int:
    """Return the node whose clock is every time's: that of rank 0."""
    return rank_0.start.node if rank_0.start and rank_0.start.node is not None else 0


def _together(
    record: RunRecord,
    seen: Mapping[int, TelemetrySummary],
    first: TelemetrySummary,
    frames: int | None,
    missing: tuple[int, ...],
    notes: Sequence[str],
) -> TelemetrySummary:
    """Combine the nodes' summaries; ``first`` has what is equal for all nodes, and the power of all."""
    gpus = tuple(replace(gpu, node=node) for node, summary in seen.items() for gpu in summary.gpus)
    is_complete = not missing and len(gpus) == record.case.world_size
    energy_j = total_energy_j(gpus) if is_complete else None
    node_of = {rank.rank: rank.node for rank in record.ranks}
    each = seen.values()
    return replace(
        first,
        num_samples=min(summary.num_samples for summary in each),
        gpus=gpus,
        ranks=tuple(  # nodes on the same machine see each other's ranks
            rank for node, summary in seen.items() for rank in summary.ranks if node_of.get(rank.rank) == node
        ),
        host_cpu_percent=_of_all([summary.host_cpu_percent for summary in each]),
        host_stolen_percent=_of_all([summary.host_stolen_percent for summary in each]),
        host_others_percent=_others_percent(record, list(each)),
        host_memory_used_gb=_of_all([summary.host_memory_used_gb for summary in each]),
        host_load=_of_all([summary.host_load for summary in each]),
        energy_j=energy_j,
        energy_agrees=agrees(gpus) if is_complete else None,
        frames_per_joule=rounded(frames / energy_j) if frames is not None and energy_j else None,
        sample_time_mean_s=_most(summary.sample_time_mean_s for summary in each),
        sample_time_max_s=_most(summary.sample_time_max_s for summary in each),
        sampler_cpu_share=_most(summary.sampler_cpu_share for summary in each),
        notes=(*notes, *(f"node {node}: {note}" for node, summary in seen.items() for note in summary.notes)),
        nodes=tuple(_of_node(node, summary) for node, summary in seen.items()),
        missing_nodes=missing,
    )


def _of_node(node: int, summary: TelemetrySummary) -> NodeTelemetry:
    return NodeTelemetry(
        node=node,
        num_samples=summary.num_samples,
        power_w=summary.power_w,
        energy_j=summary.energy_j,
        host_cpu_percent=summary.host_cpu_percent,
        host_memory_used_gb=summary.host_memory_used_gb,
        host_load=summary.host_load,
    )


def _others_percent(record: RunRecord, each: Sequence[TelemetrySummary]) -> float | None:
    """Value of the worst node; None if nodes may share a machine, because each would count the others' ranks."""
    if record.transport is None or record.transport.emulated is not False:
        return None
    return _most(one.host_others_percent for one in each)


def _most(values: Iterable[float | None]) -> float | None:
    """Largest known value; None if none is known."""
    return max((value for value in values if value is not None), default=None)


def _shifted(content: TelemetryContent, offset_s: float) -> TelemetryContent:
    """Return the readings with times on the clock of rank 0's node."""
    samples = [replace(sample, monotonic_s=sample.monotonic_s - offset_s) for sample in content.samples]
    return replace(content, samples=samples)


def _power(contents: Sequence[TelemetryContent], window: Window) -> Spread | None:
    """Power of all nodes' GPUs at the times of the first node's samples; the others' is interpolated."""
    clips = [clipped(total_power(content.samples), window) for content in contents]
    series = [[point for piece in pieces for point in piece] for pieces in clips if pieces is not None]
    if len(series) < len(contents):
        return None
    first, *others = series
    sums = [(time_s, first_w + sum(_between(points, time_s) for points in others)) for time_s, first_w in first]
    return power_over_time(sums, window)


def _between(points: Points, time_s: float) -> float:
    after = min(bisect_right(points, time_s, key=lambda point: point[0]), len(points) - 1)
    return at(points[after - 1 : after + 1], time_s)[1]


def _of_all(spreads: Sequence[Spread | None]) -> Spread | None:
    known = [one for one in spreads if one is not None]
    if not known:
        return None
    return Spread(
        min=min(one.min for one in known),
        mean=rounded(statistics.fmean(one.mean for one in known)),
        max=max(one.max for one in known),
    )
