"""What the samples of a run say: throughputs, where the time of an iteration went, processes beside each other. Pure.

What was not measured is None; nothing is 0 for want of a measurement.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Final

from suite.schema.observations import Spread, TelemetrySummary
from suite.schema.record import RankRecord, RunRecord
from suite.statistics.attribution import Attribution, attribution
from suite.statistics.reduce import iteration_times_s, marked_iterations, window
from suite.statistics.start_up import start_up

PARTS: Final[Mapping[str, str]] = {  # part of an iteration -> what pages call it
    "simulate": "physics",
    "render": "rendering",
    "environment": "rest of steps",
    "infer": "inference",
    "other": "rest of rollout",
    "learn": "learning",
    "all_reduce": "all-reduce",
    "waiting": "waiting",
}


def throughput(record: RunRecord, column: str, iterations: Sequence[int]) -> float | None:
    """Frames of all processes over the mean time of the slowest one, in those of the iterations that have it."""
    columns = [samples_at(rank, column, iterations) for rank in record.ranks]
    slowest = [max(times) for values in zip(*columns, strict=False) if len(times := present(values)) == len(columns)]
    is_known = record.case.has_frames and slowest and min(slowest) > 0
    return record.case.frames_per_iteration / statistics.fmean(slowest) if is_known else None


def samples_at(rank: RankRecord, column: str, iterations: Sequence[int]) -> list[float | None]:
    """Nothing for a column that was never measured."""
    stored = rank.samples.get(column, ())
    return [stored[iteration] for iteration in iterations if iteration < len(stored)]


def part_shares(record: RunRecord) -> dict[str, float]:
    """Shares of the iteration time by part, mean over the processes; empty where no split is known."""
    try:
        split = attribution(record)
    except ValueError:
        return {}
    means = {
        name: statistics.fmean(values)
        for name in (field.name for field in fields(Attribution) if field.name != "rank")
        if len(values := present(getattr(part, name) for part in split)) == len(split)
    }
    return {name: means[name] for name in PARTS if name in means}


def process_skew(record: RunRecord) -> float | None:
    """Median over the window of (slowest process / median process - 1); None for one process."""
    columns = [rank.samples["iteration_time_s"][window(record).start :] for rank in record.ranks]
    if len(columns) < 2:  # noqa: PLR2004 - one process has nothing to be compared with
        return None
    skews = [
        max(times) / statistics.median(times) - 1
        for times in (present(values) for values in zip(*columns, strict=False))
        if len(times) == len(columns)
    ]
    return statistics.median(skews) if skews else None


def core_probe_us(record: RunRecord) -> float | None:
    """Median over the marked iterations, of the process where it is longest."""
    probed = (present(samples_at(rank, "core_probe_time_s", marked_iterations(record))) for rank in record.ranks)
    return max((1e6 * statistics.median(times_s) for times_s in probed if times_s), default=None)


def of_gpus(seen: TelemetrySummary, name: str, statistic: str) -> list[float]:
    spreads: list[Spread | None] = [getattr(gpu, name) for gpu in seen.gpus]
    return [getattr(spread, statistic) for spread in spreads if spread is not None]


def own_wall_s(record: RunRecord) -> float | None:
    """Wall time of a run [s] without the turns of others; None if nobody took it.

    For a run in turns it is the time to the end of the first iteration and all iterations after that one. What the run
    took to end is not in it, because others ran meanwhile.
    """
    if record.wall_time_s is None or record.turns is None or record.outcome != "completed":
        return record.wall_time_s
    return min(record.wall_time_s, start_up(record).total_s + sum(iteration_times_s(record)[1:]))


def present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
