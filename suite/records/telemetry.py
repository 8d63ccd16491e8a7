"""Summarises what the samplers of a round wrote over its window.

Energy is computed twice, from the driver's counter and as power integrated over time, so that each checks the other.
The samplers of several nodes are combined on the clock of rank 0's node.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from suite.files.wording import counted
from suite.records.network import NEEDED_S, clock_of
from suite.records.rank_file import RankFile
from suite.records.telemetry_file import (
    TELEMETRY_FILE,
    Sample,
    TelemetryContent,
    kept_readings,
    read_telemetry,
    sampler_log,
    telemetry_path,
)
from suite.schema.observations import GpuTelemetry, NodeReadings, NodeTelemetry, RankTelemetry, Spread, TelemetrySummary
from suite.schema.record import RunRecord
from suite.statistics.reduce import starts_of_turns, window

AGREEMENT: Final = 0.05  # largest relative difference between counter and integral
MAX_GAP_S: Final = 2.0  # ten samples; the power within a longer gap is unknown
MOST_UNSEEN: Final = 0.05  # share of the window in such gaps; the rest would stand for what nobody saw
# Reasons for lower clocks that are throttling. Idleness and a user's setting are not.
THROTTLING: Final = frozenset(
    {"power_cap", "hardware_slowdown", "sync_boost", "thermal_software", "thermal_hardware", "power_brake"}
)
_DIGITS: Final = 6  # significant ones that are kept
# Fields of a reading or a summary that are reduced alike.
_GPU_SPREADS: Final = (
    "sm_utilisation_percent", "memory_utilisation_percent", "memory_used_gb", "sm_clock_mhz", "memory_clock_mhz",
    "temperature_c",
)  # fmt: skip
_RANK_SPREADS: Final = ("cpu_percent", "memory_gb", "threads")
_HOST_SPREADS: Final = ("cpu_percent", "stolen_percent", "memory_used_gb", "load")
_COSTS: Final = ("sample_time_mean_s", "sample_time_max_s", "sampler_cpu_share")

type Points = Sequence[tuple[float, float]]  # (time [s], value), in the order of time
type Piece = tuple[np.ndarray, np.ndarray]  # times [s] and values, from the start to the end of a span


def with_telemetry(run_dir: Path, record: RunRecord, files: Sequence[RankFile]) -> RunRecord:
    """Return the record with its telemetry. What is wrong with it becomes the note, and never makes a round fail."""
    if record.outcome != "completed":
        return replace(record, telemetry_note=f"the round is {record.outcome}, so it has no window")
    nodes = range(record.case.nnodes) if record.case.nnodes > 1 else (None,)
    try:
        contents = {node or 0: _content(run_dir, node) for node in nodes}
        summary, readings = summarise_nodes(record, files[0], contents)
    except (ValueError, ArithmeticError) as error:
        return replace(record, telemetry_note=str(error))
    return replace(record, telemetry=summary, readings=readings)


def _content(run_dir: Path, node: int | None) -> TelemetryContent | str:
    path = telemetry_path(run_dir, node)
    try:
        return read_telemetry(path) or f"the sampler wrote no {path.name}; {sampler_log(node)} may say why"
    except OSError as error:
        return f"{path.name}: {error.strerror}"


# ---- the window ----


@dataclass(frozen=True, kw_only=True)
class Window:
    """The window of a round: its start and end, or those of each of its turns, in their order [s].

    They are on the host's monotonic clock, which nobody sets while a round runs.
    """

    spans: tuple[tuple[float, float], ...]

    @property
    def length_s(self) -> float:
        return sum(end_s - start_s for start_s, end_s in self.spans)

    def contains(self, sample: Sample) -> bool:
        return any(start_s <= sample.monotonic_s <= end_s for start_s, end_s in self.spans)


def window_of(record: RunRecord, zero_s: float) -> tuple[Window, int | None]:
    """Return the time of rank 0's window of iterations, and the frames of all ranks in it (None for an all-reduce).

    ``zero_s``: what rank 0's clock counts from. Raises ValueError as ``suite.statistics.reduce.window`` does, and if
    the rank did not write when its iterations began.
    """
    part = window(record)
    samples = record.ranks[0].samples
    times_s = samples["iteration_time_s"]
    starts_s = samples.get("start_s") or (None,) * len(times_s)
    borders = [part.start, *(index for index in starts_of_turns(record) if index > part.start), part.stop]
    spans = []
    for first, after in pairwise(borders):
        start_s, last_s, time_s = starts_s[first], starts_s[after - 1], times_s[after - 1]
        if start_s is None or last_s is None or time_s is None:
            raise ValueError("rank 0 did not write when its iterations began")
        spans.append((zero_s + start_s, zero_s + last_s + time_s))
    frames = len(part) * record.case.frames_per_iteration if record.case.has_frames else None
    return Window(spans=tuple(spans)), frames


# ---- one node ----


def summarise(content: TelemetryContent, window: Window, *, frames: int | None, num_gpus: int) -> TelemetrySummary:
    """Summarise the samples in the window. ``num_gpus`` counts the case's GPUs, ``frames`` the frames in the window.

    Raises ValueError if a line is not an event, if times do not increase, or if samples cover only a part of it.
    """
    samples = _samples_inside(content, window)
    gpus = tuple(_gpu(index, content, window) for index in sorted({gpu.index for s in samples for gpu in s.gpus}))
    is_complete = 0 < num_gpus == len(gpus)
    ranks = [reading for sample in samples for reading in sample.ranks]
    host = _spreads([sample.host for sample in samples], _HOST_SPREADS)
    others = [sample.host.others_percent for sample in samples if sample.host.others_percent is not None]
    reading_times_s = [sample.reading_time_s for sample in samples]
    wall_s = samples[-1].monotonic_s - samples[0].monotonic_s
    cpu_s = samples[-1].sampler_cpu_s - samples[0].sampler_cpu_s
    return TelemetrySummary(
        window_start_unix_s=round(samples[0].time_unix_s - samples[0].monotonic_s + window.spans[0][0], 3),
        window_s=rounded(window.length_s),
        rate_hz=content.rate_hz,
        num_samples=len(samples),
        gpus=gpus,
        ranks=tuple(
            RankTelemetry(rank=rank, **_spreads([reading for reading in ranks if reading.rank == rank], _RANK_SPREADS))
            for rank in sorted({reading.rank for reading in ranks})
        ),
        **{f"host_{name}": spread for name, spread in host.items()},
        # Unknown if a rank was hidden in a sample, as in a container: its time would count as others'.
        host_others_percent=max(0.0, rounded(statistics.fmean(others))) if len(others) == len(samples) else None,
        power_w=power_over_time(clipped(_total_power(content), window)) if is_complete else None,
        **_energy(gpus, frames, is_complete=is_complete),
        sample_time_mean_s=rounded(statistics.fmean(reading_times_s)),
        sample_time_max_s=rounded(max(reading_times_s)),
        sampler_cpu_share=rounded(cpu_s / wall_s) if wall_s > 0 else None,
        notes=(*content.notes, *filter(None, map(_energy_note, gpus))),
    )


def _samples_inside(content: TelemetryContent, window: Window) -> list[Sample]:
    if content.corrupt:
        raise ValueError(content.corrupt)
    if any(later.monotonic_s <= sample.monotonic_s for sample, later in pairwise(content.samples)):
        raise ValueError("the samples are not in the order of time")
    samples = [sample for sample in content.samples if window.contains(sample)]
    if not samples:
        raise ValueError(
            f"none of {counted(len(content.samples), 'sample')} lies in the window of {window.length_s:.3g} s"
        )
    unseen_s = 0.0
    for start_s, end_s in window.spans:
        times_s = [sample.monotonic_s for sample in samples if start_s <= sample.monotonic_s <= end_s]
        gaps_s = [later_s - time_s for time_s, later_s in pairwise([start_s, *times_s, end_s])]
        unseen_s += sum(gap_s for gap_s in gaps_s if gap_s > MAX_GAP_S)
    if unseen_s > MOST_UNSEEN * window.length_s:
        raise ValueError(
            f"{counted(len(samples), 'sample')} cover {window.length_s - unseen_s:.3g} of the "
            f"{window.length_s:.3g} s of the window; the sampler ended early or was held up"
        )
    return samples


def _gpu(index: int, content: TelemetryContent, window: Window) -> GpuTelemetry:
    readings = [(sample, gpu) for sample in content.samples for gpu in sample.gpus if gpu.index == index]
    inside = [gpu for sample, gpu in readings if window.contains(sample)]
    counter = [(sample.monotonic_s, gpu.energy_j) for sample, gpu in readings if gpu.energy_j is not None]
    power = clipped([(sample.monotonic_s, gpu.power_w) for sample, gpu in readings if gpu.power_w is not None], window)
    counted_j, integrated_j = counted_energy_j(counter, window), integrated_energy_j(power)
    reasons = [gpu.slowdowns for gpu in inside if gpu.slowdowns is not None]
    throttled = sum(not THROTTLING.isdisjoint(words) for words in reasons)
    return GpuTelemetry(
        index=index,
        persistence=content.persistence[index] if index < len(content.persistence) else None,
        **_spreads(inside, _GPU_SPREADS),
        power_w=power_over_time(power),
        energy_counter_j=counted_j,
        energy_integrated_j=integrated_j,
        energy_disagreement=_disagreement(counted_j, integrated_j),
        throttled_share=rounded(throttled / len(reasons)) if reasons else None,
        slowdown_shares={
            word: sum(word in words for words in reasons) / len(reasons)
            for word in sorted({word for words in reasons for word in words})
        }
        if reasons
        else None,
    )


def _spreads(readings: Sequence[object], names: Iterable[str]) -> dict[str, Any]:
    return {name: _spread([getattr(reading, name) for reading in readings]) for name in names}


def _spread(values: Sequence[float | None]) -> Spread | None:
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    return Spread(min=rounded(min(numbers)), mean=rounded(statistics.fmean(numbers)), max=rounded(max(numbers)))


def rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


# ---- energy ----


def clipped(points: Points, window: Window) -> list[Piece] | None:
    """Return the points in each span, with interpolated ones at its ends; None if there is a gap."""
    times_s, values = np.array(points, float).reshape(-1, 2).T
    pieces = []
    for start_s, end_s in window.spans:
        first, last = np.searchsorted(times_s, start_s, side="right") - 1, np.searchsorted(times_s, end_s)
        if first < 0 or last == len(times_s) or (np.diff(times_s[first : last + 1]) > MAX_GAP_S).any():
            return None
        piece_s = np.array([start_s, *times_s[first + 1 : last], end_s])
        pieces.append((piece_s, np.interp(piece_s, times_s, values)))
    return pieces


def counted_energy_j(counter: Points, window: Window) -> float | None:
    """Difference of the driver's counter over the window; None if there is a gap, or if it went back.

    None for turns too: the counter is read once a second, so the ends of a turn would get others' energy.
    """
    pieces = clipped(counter, window) if len(window.spans) == 1 else None
    if pieces is None or (np.diff(pieces[0][1]) < 0).any():
        return None
    return rounded(pieces[0][1][-1] - pieces[0][1][0])


def integrated_energy_j(power: Sequence[Piece] | None) -> float | None:
    """Integrate power over the window by trapezoids; None if there is a gap."""
    return None if power is None else rounded(_integral(power))


def power_over_time(power: Sequence[Piece] | None) -> Spread | None:
    """Minimum, time-weighted mean and maximum of power in the window; None if there is a gap."""
    if power is None:
        return None
    values = np.concatenate([piece for _, piece in power])
    mean = _integral(power) / sum(times_s[-1] - times_s[0] for times_s, _ in power)
    return Spread(min=rounded(values.min()), mean=rounded(mean), max=rounded(values.max()))


def _integral(pieces: Sequence[Piece]) -> float:
    return sum(float(np.trapezoid(values, times_s)) for times_s, values in pieces)


def _total_power(content: TelemetryContent) -> Points:
    """Power of all GPUs together, at the samples that have every GPU's."""
    powers_w = ((sample.monotonic_s, [gpu.power_w for gpu in sample.gpus]) for sample in content.samples)
    return [(time_s, sum(filter(None, gpus_w))) for time_s, gpus_w in powers_w if None not in gpus_w]


def _disagreement(counted_j: float | None, integrated_j: float | None) -> float | None:
    if counted_j is None or integrated_j is None or not max(counted_j, integrated_j) > 0:
        return None
    return rounded((integrated_j - counted_j) / max(counted_j, integrated_j))


def _energy(gpus: Sequence[GpuTelemetry], frames: int | None, *, is_complete: bool) -> dict[str, Any]:
    """Return the energy of all GPUs by one method: the counter if every GPU has one, otherwise the integral."""
    if not is_complete:
        return dict.fromkeys(("energy_j", "energy_agrees", "frames_per_joule"))
    methods = ([gpu.energy_counter_j for gpu in gpus], [gpu.energy_integrated_j for gpu in gpus])
    energy_j = next((rounded(sum(filter(None, energies))) for energies in methods if None not in energies), None)
    differences = [gpu.energy_disagreement for gpu in gpus]
    return {
        "energy_j": energy_j,
        "energy_agrees": None if None in differences else not any(map(_energy_note, gpus)),
        "frames_per_joule": rounded(frames / energy_j) if frames is not None and energy_j else None,
    }


def _energy_note(gpu: GpuTelemetry) -> str | None:
    if gpu.energy_disagreement is None or abs(gpu.energy_disagreement) <= AGREEMENT:
        return None
    return (
        f"GPU {gpu.index}: its counter says {gpu.energy_counter_j:.4g} J, its power integrates to "
        f"{gpu.energy_integrated_j:.4g} J; {AGREEMENT:.0%} apart is allowed"
    )


# ---- all nodes ----


def summarise_nodes(
    record: RunRecord, rank_0: RankFile, contents: Mapping[int, TelemetryContent | str]
) -> tuple[TelemetrySummary, tuple[NodeReadings, ...]]:
    """Summarise ``contents``: for every node, what its sampler wrote or why there is nothing; and keep readings.

    A node without readings in the window, or whose clock is not known precisely enough, is missing. Energy and power of
    the round are then unknown. Raises ValueError if every node is missing.
    """
    if rank_0.clock is None:
        raise ValueError("rank 0 did not write what its clock counts from")
    zero_s = rank_0.clock.zero_monotonic_s
    window, frames = window_of(record, zero_s)
    is_alone = len(contents) == 1
    per_node = record.case.gpus_per_node if record.case.device == "cuda" else 0
    placed: dict[int, TelemetryContent] = {}  # on the clock of rank 0's node
    summaries: dict[int, TelemetrySummary] = {}
    notes: list[str] = []
    for node, content in contents.items():
        if isinstance(content, str):
            notes.append(content if is_alone else f"node {node}: {content}")
            continue
        try:
            clock = clock_of(node, record.clocks, reference=rank_0.node or 0, needed_s=NEEDED_S)
            samples = [replace(sample, monotonic_s=sample.monotonic_s - clock.offset_s) for sample in content.samples]
            placed[node] = replace(content, samples=samples)
            summaries[node] = summarise(placed[node], window, frames=frames, num_gpus=per_node)
        except ValueError as error:
            notes.append(f"{TELEMETRY_FILE if is_alone else f'node {node}'}: {error}")
    if not summaries:
        raise ValueError("; ".join(notes))
    readings = tuple(kept_readings(placed[node], record, zero_s, node=node) for node in summaries)
    if is_alone:
        return summaries[0], readings
    first = summaries.get(rank_0.node or 0) or next(iter(summaries.values()))
    summary = replace(
        first,  # it has what is equal for all nodes
        **_together(record, summaries, [placed[node] for node in summaries], window, frames),
        notes=(*notes, *(f"node {node}: {note}" for node, summary in summaries.items() for note in summary.notes)),
        missing_nodes=tuple(sorted(contents.keys() - summaries.keys())),
    )
    return summary, readings


def _together(
    record: RunRecord,
    summaries: Mapping[int, TelemetrySummary],
    contents: Sequence[TelemetryContent],
    window: Window,
    frames: int | None,
) -> dict[str, Any]:
    """Combine the nodes' figures."""
    gpus = tuple(replace(gpu, node=node) for node, summary in summaries.items() for gpu in summary.gpus)
    is_complete = len(summaries) == record.case.nnodes and len(gpus) == record.case.num_gpus
    node_of = {rank.rank: rank.node for rank in record.ranks}
    is_emulated = record.transport is None or record.transport.emulated is not False  # or that is not known
    of_node = [item.name for item in fields(NodeTelemetry) if item.name != "node"]

    def values(name: str) -> list[Any]:
        """Return the nodes' known values."""
        return [value for summary in summaries.values() if (value := getattr(summary, name)) is not None]

    return {
        "num_samples": min(summary.num_samples for summary in summaries.values()),
        "gpus": gpus,
        "ranks": tuple(  # nodes on the same machine see each other's ranks
            rank for node, summary in summaries.items() for rank in summary.ranks if node_of.get(rank.rank) == node
        ),
        **{f"host_{name}": _over_nodes(values(f"host_{name}")) for name in _HOST_SPREADS},
        "power_w": power_over_time(_power_of_nodes(contents, window)) if is_complete else None,
        **_energy(gpus, frames, is_complete=is_complete),
        **{name: max(values(name), default=None) for name in _COSTS},
        # Nodes that may share a machine would count each other's ranks.
        "host_others_percent": None if is_emulated else max(values("host_others_percent"), default=None),
        "nodes": tuple(
            NodeTelemetry(node=node, **{name: getattr(summary, name) for name in of_node})
            for node, summary in summaries.items()
        ),
    }


def _power_of_nodes(contents: Sequence[TelemetryContent], window: Window) -> list[Piece] | None:
    """Power of all nodes' GPUs at the times of the first node's samples; the others' is interpolated."""
    clips = [clipped(_total_power(content), window) for content in contents]
    nodes = [pieces for pieces in clips if pieces is not None]
    if len(nodes) < len(clips):
        return None
    return [
        (spans[0][0], np.sum([np.interp(spans[0][0], times_s, values) for times_s, values in spans], axis=0))
        for spans in zip(*nodes, strict=True)
    ]


def _over_nodes(spreads: Sequence[Spread]) -> Spread | None:
    if not spreads:
        return None
    mean = rounded(statistics.fmean(spread.mean for spread in spreads))
    return Spread(min=min(spread.min for spread in spreads), mean=mean, max=max(spread.max for spread in spreads))
