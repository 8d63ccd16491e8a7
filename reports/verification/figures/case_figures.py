"""What was measured of a case besides its time: the object ``measured`` of a row of figures.json. Pure.

A figure is the median over the completed rounds that have it, a rate their geometric mean; None if none has. Parts of
iterations, probes of cores and starts have modules of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from reports.verification import formulas
from reports.verification.figures import core_probes, iteration_parts, rewards
from reports.verification.figures.core_probes import Host
from reports.verification.figures.starts import starts_of, warm_starts_s
from reports.verification.finding import Json
from reports.verification.samples.stored import StoredCase, StoredSet

STEP: Final = "environment_step_time_s"
# Frames per second of a part -> the column of its time.
RATES: Final = {"step_fps": STEP, "step_inference_fps": "collection_time_s"}


def complete_rows(record: Json, column: str, iterations: Sequence[int]) -> list[list[float]]:
    """Return the times of all ranks, of each of these iterations in which every rank has one."""
    columns = [rank["samples"].get(column, []) for rank in record["ranks"]]
    rows = [[times_s[iteration] for times_s in columns] for iteration in iterations if all(columns)]
    return [row for row in rows if None not in row]


def _slowest_mean_s(record: Json, column: str) -> float | None:
    """Return the mean time of the slowest rank, of steps in marked iterations, which alone have one."""
    is_step = column == STEP
    known = formulas.marked_iterations(record) if is_step else formulas.counted_iterations(record)
    times_s = [max(row) for row in complete_rows(record, column, known)]
    return sum(times_s) / len(times_s) if times_s else None


def rate(stored: StoredCase, column: str) -> float | None:
    """Return frames over the mean time of the slowest rank, the geometric mean of the rounds."""
    times_s = [time_s for record in stored.completed if (time_s := _slowest_mean_s(record, column))]
    return stored.frames / formulas.geometric_mean(times_s) if times_s else None


def fastest_probes(one: StoredSet) -> dict[Host, float]:
    """Return the fastest probe of each host of a set, twins included, copies not."""
    return core_probes.fastest_s([record for stored in one.without_copies for record in stored.completed])


def measured(stored: StoredCase, fastest: Mapping[Host, float]) -> Json:
    """Return the figures; ``fastest`` as ``fastest_probes`` finds it in the set of the case."""
    records, starts = stored.completed, starts_of(stored)
    cold = [start for start in starts if start.is_cold]
    shares, is_all_reduce = iteration_parts.mean_shares(records), stored.case["workload"] == "all_reduce"
    return {
        "rank_skew": formulas.median_of_known([_skew(record) for record in records]),
        "warm_start_s": formulas.median_of_known(warm_starts_s(starts)),
        "cold_start_s": formulas.median_of_known([start.total_s for start in cold]),
        "cold_start_kernels": formulas.median_of_known([start.kernels for start in cold]),
        **{name: None if is_all_reduce else rate(stored, column) for name, column in RATES.items()},
        **{f"share_{part}": shares.get(part) for part in iteration_parts.PARTS},
        **_of_the_machine(records),
        "core_probe_us": formulas.median_of_known([core_probes.probe_us(record) for record in records]),
        **core_probes.figures(records, fastest),
        **_of_the_host(records),
        **_ranks(records),
        "last_reward": rewards.last_reward(stored),
        "last_return": rewards.last_return(stored),
    }


# --- ranks and rates, from samples ---


def _skew(record: Json) -> float | None:
    """Return how far the slowest rank is behind the median rank, median over the window."""
    if len(record["ranks"]) < 2:  # noqa: PLR2004 - one rank has nothing to be compared with
        return None
    columns = [rank["samples"]["iteration_time_s"] for rank in record["ranks"]]
    rows = [*zip(*columns, strict=True)][formulas.window(record).start :]
    return formulas.median([max(times_s) / formulas.median(times_s) - 1 for times_s in rows])


def _ranks(records: Sequence[Json]) -> Json:
    """Return which rank is fastest and slowest in the median round, with its time over that of the median rank."""
    ratios = [*zip(*map(over_median_rank, records), strict=True)]
    if not ratios:
        return dict.fromkeys(("fastest_rank", "fastest_rank_ratio", "slowest_rank", "slowest_rank_ratio"))
    ordered = sorted((formulas.median(of_rank), rank) for rank, of_rank in enumerate(ratios))
    (least, fastest), (most, slowest) = ordered[0], ordered[-1]
    return {"fastest_rank": fastest, "fastest_rank_ratio": least, "slowest_rank": slowest, "slowest_rank_ratio": most}


def over_median_rank(record: Json) -> list[float]:
    """Return the median time of each rank over that of the median rank; nothing of one rank alone."""
    counted = formulas.counted_iterations(record)
    columns = [rank["samples"]["iteration_time_s"] for rank in record["ranks"]]
    own_s = [formulas.median([times_s[i] for i in counted]) for times_s in columns]
    return [time_s / formulas.median(own_s) for time_s in own_s] if len(own_s) > 1 else []


# --- memory, energy, the host: from what the sampler stored of each round ---


def gpu_memory_gb(records: Sequence[Json]) -> float | None:
    return formulas.median_of_known(gpu_memory_of_rounds_gb(records))


def gpu_memory_of_rounds_gb(records: Sequence[Json]) -> list[float | None]:
    """Return the most that was in use on the GPU with most, whatever used it."""
    return _of_rounds(records, lambda seen: _most(_of_gpus(seen, "memory_used_gb", "max")))


def torch_memory_of_rounds_gb(records: Sequence[Json]) -> list[float | None]:
    """Return the most that torch had on the rank with most."""
    return [_most([rank["peak_memory_gb"] for rank in record["ranks"]]) for record in records]


def joules_per_million_frames(records: Sequence[Json]) -> list[float | None]:
    return _of_rounds(records, lambda seen: 1e6 / seen["frames_per_joule"] if seen["frames_per_joule"] else None)


def power_w(records: Sequence[Json]) -> float | None:
    """Return the mean power of all GPUs together, of the median round."""
    return formulas.median_of_known(_of_rounds(records, lambda seen: seen["power_w"] and seen["power_w"]["mean"]))


def gpu_utilisation_percent(records: Sequence[Json]) -> float | None:
    """Return the share of time in which any kernel ran: mean over GPUs, of the median round."""
    seen = _of_rounds(records, lambda seen: _mean(_of_gpus(seen, "sm_utilisation_percent", "mean")))
    return formulas.median_of_known(seen)


def stolen_share(record: Json) -> float | None:
    """Return the part of the wanted CPU time that a hypervisor gave to others."""
    seen = record["telemetry"]
    if seen is None:
        return None
    wanted, stolen = seen["host_cpu_percent"], seen["host_stolen_percent"]
    return stolen["mean"] / wanted["mean"] if wanted and stolen and wanted["mean"] else None


def _of_the_machine(records: Sequence[Json]) -> Json:
    peaks_gb, energies = torch_memory_of_rounds_gb(records), joules_per_million_frames(records)
    return {
        "peak_memory_gb": formulas.median_of_known(peaks_gb),
        "gpu_memory_gb": gpu_memory_gb(records),
        "gpu_utilisation_percent": gpu_utilisation_percent(records),
        "power_w": power_w(records),
        "joules_per_million_frames": formulas.median_of_known(energies),
        "throttled_share": formulas.median_of_known(
            _of_rounds(records, lambda seen: _most([gpu["throttled_share"] for gpu in seen["gpus"]]))
        ),
        **_range("peak_memory_{}_gb", peaks_gb),
        **_range("joules_per_million_frames_{}", energies),
    }


def _of_the_host(records: Sequence[Json]) -> Json:
    others = _of_rounds(records, lambda seen: seen["host_others_percent"])
    return {
        "stolen_cpu_share": formulas.median_of_known([stolen_share(record) for record in records]),
        "other_processes_cpu_share": formulas.median_of_known([None if one is None else one / 100 for one in others]),
        "sampler_core_share": formulas.median_of_known(_of_rounds(records, lambda seen: seen["sampler_cpu_share"])),
    }


def _of_gpus(seen: Json, name: str, statistic: str) -> list[float]:
    return [gpu[name][statistic] for gpu in seen["gpus"] if gpu.get(name) is not None]


def _of_rounds(records: Sequence[Json], value: Callable[[Json], Any]) -> list[Any]:
    return [value(record["telemetry"]) for record in records if record["telemetry"]]


def _range(name: str, values: Sequence[float | None]) -> Json:
    known = [value for value in values if value is not None]
    return {name.format("least"): min(known, default=None), name.format("most"): max(known, default=None)}


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
