"""Summarises what the samplers of a round wrote over its window.

Energy is computed twice, from the driver's counter and as power integrated over time, so that each checks the other.
The samplers of several nodes are combined on the clock of rank 0's node.
"""

import itertools
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suite.files.wording import counted
from suite.records.network import NEEDED_S, clock_of
from suite.records.rank_file import RankFile
from suite.records.telemetry_file import (
    SAMPLER_LOG,
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

Points = Sequence[tuple[float, float]]  # (time [s], value), in the order of time


def with_telemetry(run_dir: Path, record: RunRecord, files: Sequence[RankFile]) -> RunRecord:
    """Return the record with its telemetry. What is wrong with it becomes the note, and never makes a round fail."""
    if record.outcome != "completed":
        return replace(record, telemetry_note=f"the round is {record.outcome}, so it has no window")
    if record.case.nnodes > 1:
        return _with_nodes(run_dir, record, files[0])
    try:
        content = read_telemetry(run_dir / TELEMETRY_FILE)
        if content is None:
            return replace(record, telemetry_note=f"the sampler wrote no {TELEMETRY_FILE}; {SAMPLER_LOG} may say why")
        window, frames = window_of(record, files[0])
        num_gpus = record.case.world_size if record.case.device == "cuda" else 0
        summary = summarise(content, window, frames=frames, num_gpus=num_gpus)
        kept = kept_readings(content, record, files[0])
        return replace(record, telemetry=summary, readings=() if kept is None else (kept,))
    except (OSError, ValueError, ArithmeticError) as error:
        return replace(record, telemetry_note=f"{TELEMETRY_FILE}: {error}")


def _with_nodes(run_dir: Path, record: RunRecord, rank_0: RankFile) -> RunRecord:
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
        return replace(record, telemetry=summary, readings=_readings_of_nodes(record, rank_0, contents, summary))
    except (ValueError, ArithmeticError) as error:
        return replace(record, telemetry_note=str(error))


def _readings_of_nodes(
    record: RunRecord, rank_0: RankFile, contents: Mapping[int, TelemetryContent | str], summary: TelemetrySummary
) -> tuple[NodeReadings, ...]:
    """Return the readings of every node that has a summary; the others' cannot be placed in time."""
    kept = []
    for node, content in contents.items():
        if isinstance(content, str) or node in summary.missing_nodes:
            continue
        clock = clock_of(node, record.clocks, reference=rank_0.node or 0, needed_s=NEEDED_S)
        readings = kept_readings(content, record, rank_0, node=node, offset_s=clock.offset_s)
        kept += [] if readings is None else [readings]
    return tuple(kept)


# ---- the window ----


@dataclass(frozen=True, kw_only=True)
class Span:
    """An interval on the host's monotonic clock, which nobody sets while a round runs [s]."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.start_s

    def contains(self, sample: Sample) -> bool:
        return self.start_s <= sample.monotonic_s <= self.end_s


@dataclass(frozen=True, kw_only=True)
class Window:
    """The window of a round: one span, or one for each of its turns, in their order."""

    spans: tuple[Span, ...]

    @property
    def start_s(self) -> float:
        return self.spans[0].start_s

    @property
    def length_s(self) -> float:
        return sum(span.length_s for span in self.spans)

    def contains(self, sample: Sample) -> bool:
        return any(span.contains(sample) for span in self.spans)


def window_of(record: RunRecord, rank_0: RankFile) -> tuple[Window, int | None]:
    """Return the time of rank 0's window of iterations, and the frames of all ranks in it (None for an all-reduce).

    Raises ValueError as ``suite.statistics.reduce.window`` does, and if the rank's clock cannot be related to the
    sampler's.
    """
    part = window(record)
    if rank_0.clock is None:
        raise ValueError("rank 0 did not write what its clock counts from")
    starts_s = record.ranks[0].samples.get("start_s", ())
    times_s = record.ranks[0].samples["iteration_time_s"]
    borders = [part.start, *(index for index in starts_of_turns(record) if index > part.start), part.stop]
    spans = [
        _span(starts_s[first:after], times_s[first:after], rank_0.clock.zero_monotonic_s)
        for first, after in itertools.pairwise(borders)
    ]
    frames = len(part) * record.case.frames_per_iteration if record.case.has_frames else None
    return Window(spans=tuple(spans)), frames


def _span(starts_s: Sequence[float | None], times_s: Sequence[float | None], zero_s: float) -> Span:
    """The span of iterations that follow each other, from the start of the first to the end of the last."""
    if not starts_s or starts_s[0] is None or starts_s[-1] is None or times_s[-1] is None:
        raise ValueError("rank 0 did not write when its iterations began")
    return Span(start_s=zero_s + starts_s[0], end_s=zero_s + starts_s[-1] + times_s[-1])


# ---- one node ----


def summarise(content: TelemetryContent, window: Window, *, frames: int | None, num_gpus: int) -> TelemetrySummary:
    """Summarise the samples in the window. ``num_gpus`` counts the case's GPUs, ``frames`` the frames in the window.

    Raises ValueError if a line is not an event, if times do not increase, or if samples cover only a part of it.
    """
    if content.corrupt:
        raise ValueError(content.corrupt)
    if any(later.monotonic_s <= sample.monotonic_s for sample, later in itertools.pairwise(content.samples)):
        raise ValueError("the samples are not in the order of time")
    samples = [sample for sample in content.samples if window.contains(sample)]
    if not samples:
        raise ValueError(
            f"none of {counted(len(content.samples), 'sample')} lies in the window of {window.length_s:.3g} s"
        )
    if (unseen_s := _unseen_s(samples, window)) > MOST_UNSEEN * window.length_s:
        raise ValueError(
            f"{counted(len(samples), 'sample')} cover {window.length_s - unseen_s:.3g} of the "
            f"{window.length_s:.3g} s of the window; the sampler ended early or was held up"
        )
    indices = sorted({gpu.index for sample in samples for gpu in sample.gpus})
    gpus = tuple(_gpu(index, content, window) for index in indices)
    is_complete = 0 < num_gpus == len(gpus)
    energy_j = total_energy_j(gpus) if is_complete else None
    reading_times_s = [sample.reading_time_s for sample in samples]
    return TelemetrySummary(
        window_start_unix_s=round(samples[0].time_unix_s - samples[0].monotonic_s + window.start_s, 3),
        window_s=rounded(window.length_s),
        rate_hz=content.rate_hz,
        num_samples=len(samples),
        gpus=gpus,
        ranks=tuple(_rank(rank, samples) for rank in sorted({r.rank for sample in samples for r in sample.ranks})),
        host_cpu_percent=spread(sample.host.cpu_percent for sample in samples),
        host_stolen_percent=spread(sample.host.stolen_percent for sample in samples),
        host_others_percent=_others([sample.host.others_percent for sample in samples]),
        host_memory_used_gb=spread(sample.host.memory_used_gb for sample in samples),
        host_load=spread(sample.host.load for sample in samples),
        power_w=power_over_time(total_power(content.samples), window) if is_complete else None,
        energy_j=energy_j,
        energy_agrees=agrees(gpus) if is_complete else None,
        frames_per_joule=rounded(frames / energy_j) if frames is not None and energy_j else None,
        sample_time_mean_s=rounded(statistics.fmean(reading_times_s)),
        sample_time_max_s=rounded(max(reading_times_s)),
        sampler_cpu_share=_cpu_share(samples),
        notes=(*content.notes, *(note for gpu in gpus if (note := _energy_note(gpu)))),
    )


def _unseen_s(samples: Sequence[Sample], window: Window) -> float:
    """Time in the window that is in gaps between samples, and before the first and after the last [s]."""
    gaps_s = []
    for span in window.spans:
        inside = [sample.monotonic_s for sample in samples if span.contains(sample)]
        gaps_s += [b_s - a_s for a_s, b_s in itertools.pairwise([span.start_s, *inside, span.end_s])]
    return sum(gap_s for gap_s in gaps_s if gap_s > MAX_GAP_S)


def _gpu(index: int, content: TelemetryContent, window: Window) -> GpuTelemetry:
    samples = content.samples
    timed = [(sample.monotonic_s, gpu) for sample in samples for gpu in sample.gpus if gpu.index == index]
    inside = [gpu for sample in samples if window.contains(sample) for gpu in sample.gpus if gpu.index == index]
    counter = [(time_s, gpu.energy_j) for time_s, gpu in timed if gpu.energy_j is not None]
    power = [(time_s, gpu.power_w) for time_s, gpu in timed if gpu.power_w is not None]
    counted_j, integrated_j = counted_energy_j(counter, window), integrated_energy_j(power, window)
    reasons = [gpu.slowdowns for gpu in inside if gpu.slowdowns is not None]
    throttled = sum(not THROTTLING.isdisjoint(words) for words in reasons)
    return GpuTelemetry(
        index=index,
        persistence=content.persistence[index] if index < len(content.persistence) else None,
        sm_utilisation_percent=spread(gpu.sm_utilisation_percent for gpu in inside),
        memory_utilisation_percent=spread(gpu.memory_utilisation_percent for gpu in inside),
        memory_used_gb=spread(gpu.memory_used_gb for gpu in inside),
        power_w=power_over_time(power, window),
        sm_clock_mhz=spread(gpu.sm_clock_mhz for gpu in inside),
        memory_clock_mhz=spread(gpu.memory_clock_mhz for gpu in inside),
        temperature_c=spread(gpu.temperature_c for gpu in inside),
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


def _rank(rank: int, samples: Sequence[Sample]) -> RankTelemetry:
    readings = [reading for sample in samples for reading in sample.ranks if reading.rank == rank]
    return RankTelemetry(
        rank=rank,
        cpu_percent=spread(reading.cpu_percent for reading in readings),
        memory_gb=spread(reading.memory_gb for reading in readings),
        threads=spread(reading.threads for reading in readings),
    )


# ---- energy ----


def counted_energy_j(counter: Points, window: Window) -> float | None:
    """Difference of the driver's counter over the window; None if there is a gap, or if it went back.

    None for turns too: the counter is read once a second, so the ends of a turn would get others' energy.
    """
    if len(window.spans) > 1:
        return None
    pieces = clipped(counter, window)
    if pieces is None or any(b < a for piece in pieces for (_, a), (_, b) in itertools.pairwise(piece)):
        return None
    return rounded(sum(piece[-1][1] - piece[0][1] for piece in pieces))


def integrated_energy_j(power: Points, window: Window) -> float | None:
    """Integrate power over the window by trapezoids; None if there is a gap."""
    pieces = clipped(power, window)
    return None if pieces is None else rounded(sum(map(_integral, pieces)))


def power_over_time(power: Points, window: Window) -> Spread | None:
    """Minimum, time-weighted mean and maximum of power in the window; None if there is a gap."""
    pieces = clipped(power, window)
    if pieces is None:
        return None
    values = [value for piece in pieces for _, value in piece]
    mean = sum(map(_integral, pieces)) / window.length_s
    return Spread(min=rounded(min(values)), mean=rounded(mean), max=rounded(max(values)))


def _integral(points: Points) -> float:
    return sum((b_s - a_s) * (a_w + b_w) / 2 for (a_s, a_w), (b_s, b_w) in itertools.pairwise(points))


def clipped(points: Points, window: Window) -> list[Points] | None:
    """Return the points in each span, with interpolated ones at its ends; None if there is a gap."""
    pieces = [_in_span(points, span) for span in window.spans]
    known = [piece for piece in pieces if piece is not None]
    return known if len(known) == len(pieces) else None


def _in_span(points: Points, span: Span) -> Points | None:
    times_s = [time_s for time_s, _ in points]
    first, last = bisect_right(times_s, span.start_s) - 1, bisect_left(times_s, span.end_s)
    if first < 0 or last == len(points):
        return None
    around = points[first : last + 1]
    if any(b_s - a_s > MAX_GAP_S for (a_s, _), (b_s, _) in itertools.pairwise(around)):
        return None
    return [at(around[:2], span.start_s), *around[1:-1], at(around[-2:], span.end_s)]


def at(pair: Points, time_s: float) -> tuple[float, float]:
    (a_s, a), (b_s, b) = pair
    return time_s, a + (b - a) * (time_s - a_s) / (b_s - a_s)


def _disagreement(counted_j: float | None, integrated_j: float | None) -> float | None:
    if counted_j is None or integrated_j is None or not max(counted_j, integrated_j) > 0:
        return None
    return rounded((integrated_j - counted_j) / max(counted_j, integrated_j))


def agrees(gpus: Sequence[GpuTelemetry]) -> bool | None:
    known = [gpu.energy_disagreement for gpu in gpus if gpu.energy_disagreement is not None]
    return all(abs(value) <= AGREEMENT for value in known) if len(known) == len(gpus) else None


def _energy_note(gpu: GpuTelemetry) -> str | None:
    if gpu.energy_disagreement is None or abs(gpu.energy_disagreement) <= AGREEMENT:
        return None
    return (
        f"GPU {gpu.index}: its counter says {gpu.energy_counter_j:.4g} J, its power integrates to "
        f"{gpu.energy_integrated_j:.4g} J; {AGREEMENT:.0%} apart is allowed"
    )


def total_energy_j(gpus: Sequence[GpuTelemetry]) -> float | None:
    """Energy of all GPUs by one method: the counter if every GPU has one, otherwise the integral."""
    for energies_j in ([gpu.energy_counter_j for gpu in gpus], [gpu.energy_integrated_j for gpu in gpus]):
        known = [energy_j for energy_j in energies_j if energy_j is not None]
        if len(known) == len(gpus):
            return rounded(sum(known))
    return None


def total_power(samples: Sequence[Sample]) -> Points:
    """Power of all GPUs together, at the samples that have every GPU's."""
    readings = [(sample.monotonic_s, [gpu.power_w for gpu in sample.gpus]) for sample in samples]
    return [
        (time_s, sum(power_w for power_w in powers_w if power_w is not None))
        for time_s, powers_w in readings
        if None not in powers_w
    ]


# ---- small reductions ----


def spread(values: Iterable[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(min=rounded(min(known)), mean=rounded(statistics.fmean(known)), max=rounded(max(known)))


def _others(percents: Sequence[float | None]) -> float | None:
    """Mean over the samples; None if a rank was hidden in one, as in a container: its time would count as others'."""
    known = [percent for percent in percents if percent is not None]
    return max(0.0, rounded(statistics.fmean(known))) if known and len(known) == len(percents) else None


def _cpu_share(samples: Sequence[Sample]) -> float | None:
    wall_s = samples[-1].monotonic_s - samples[0].monotonic_s
    return rounded((samples[-1].sampler_cpu_s - samples[0].sampler_cpu_s) / wall_s) if wall_s > 0 else None


def rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


# ---- several nodes ----


def summarise_nodes(
    record: RunRecord, rank_0: RankFile, contents: Mapping[int, TelemetryContent | str]
) -> TelemetrySummary:
    """Summarise ``contents``: for every node, what its sampler wrote or why there is nothing.

    A node without readings in the window, or whose clock is not known precisely enough, is missing. Energy and power of
    the round are then unknown. Raises ValueError if every node is missing.
    """
    window, frames = window_of(record, rank_0)
    reference = rank_0.node or 0
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
            at_rank_0 = [replace(item, monotonic_s=item.monotonic_s - clock.offset_s) for item in content.samples]
            shifted[node] = replace(content, samples=at_rank_0)
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
    summaries = list(seen.values())
    return replace(
        first,
        num_samples=min(summary.num_samples for summary in summaries),
        gpus=gpus,
        ranks=tuple(  # nodes on the same machine see each other's ranks
            rank for node, summary in seen.items() for rank in summary.ranks if node_of.get(rank.rank) == node
        ),
        host_cpu_percent=_of_all([summary.host_cpu_percent for summary in summaries]),
        host_stolen_percent=_of_all([summary.host_stolen_percent for summary in summaries]),
        host_others_percent=_others_percent(record, summaries),
        host_memory_used_gb=_of_all([summary.host_memory_used_gb for summary in summaries]),
        host_load=_of_all([summary.host_load for summary in summaries]),
        energy_j=energy_j,
        energy_agrees=agrees(gpus) if is_complete else None,
        frames_per_joule=rounded(frames / energy_j) if frames is not None and energy_j else None,
        sample_time_mean_s=_most(summary.sample_time_mean_s for summary in summaries),
        sample_time_max_s=_most(summary.sample_time_max_s for summary in summaries),
        sampler_cpu_share=_most(summary.sampler_cpu_share for summary in summaries),
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


def _others_percent(record: RunRecord, summaries: Sequence[TelemetrySummary]) -> float | None:
    """Value of the worst node; None if nodes may share a machine, because each would count the others' ranks."""
    if record.transport is None or record.transport.emulated is not False:
        return None
    return _most(summary.host_others_percent for summary in summaries)


def _most(values: Iterable[float | None]) -> float | None:
    """Largest known value; None if none is known."""
    return max((value for value in values if value is not None), default=None)


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
    known = [spread for spread in spreads if spread is not None]
    if not known:
        return None
    return Spread(
        min=min(spread.min for spread in known),
        mean=rounded(statistics.fmean(spread.mean for spread in known)),
        max=max(spread.max for spread in known),
    )
