"""What a sampler saw of a round against the round's samples, and its figures against each other. Pure."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from reports.verification.finding import Finding, differing, outside
from reports.verification.rank_samples import numbers
from reports.verification.round_facts import most_memory_gb
from suite.files.wording import counted
from suite.schema.record import RunRecord
from suite.schema.telemetry import GpuTelemetry, NodeTelemetry, Spread, TelemetrySummary
from suite.statistics.reduce import steady_part

TOLERANCE: Final = 1e-4  # its figures are stored to six digits
# Of a mean power against energy over time. Rounds up to 2026-11-23 have the mean of the readings, at most 0.5 % apart.
POWER_TOLERANCE: Final = 0.01
AGREEMENT: Final = 0.05  # of a counter and an integral that are said to agree
MAX_GAP_S: Final = 2.0  # between readings of a power that was integrated
HELD_BACK: Final = frozenset(
    {"power_cap", "hardware_slowdown", "sync_boost", "thermal_software", "thermal_hardware", "power_brake"}
)


def check_telemetry(where: str, at: str, record: RunRecord) -> Iterator[Finding]:
    """Everything that does not fit in the telemetry of one round, if it has any."""
    seen = record.telemetry
    if seen is None or not record.ranks:
        return
    yield from _check_energy(where, at, seen, record)
    if seen.window_s > 0:  # else that is named below
        yield from _check_power(where, at, seen, is_whole=_is_whole(seen, record))
        yield from _check_sampling(where, at, seen)
    yield from _check_spreads(where, at, seen)
    for index, gpu in enumerate(seen.gpus):
        rank = next((rank for rank in record.ranks if (rank.node or 0, rank.local_rank) == (gpu.node, gpu.index)), None)
        yield from _check_gpu(where, f"{at}.gpus[{index}]", gpu, most_memory_gb(record, rank))
    yield from _check_places(where, at, seen, record)
    yield from _check_host(where, at, seen, record)
    yield from _check_nodes(where, at, seen)
    yield from _check_window(where, at, seen, record)


def _is_whole(seen: TelemetrySummary, record: RunRecord) -> bool:
    """Whether every GPU of the case was seen."""
    return len(seen.gpus) == record.case.world_size and not seen.missing_nodes


def _check_window(where: str, at: str, seen: TelemetrySummary, record: RunRecord) -> Iterator[Finding]:
    try:
        part = steady_part(record)
    except ValueError:
        return  # named already: the round has no number
    starts_s, times_s = (part.of(numbers(record.ranks[0], name)) for name in ("start_s", "iteration_time_s"))
    window_s = starts_s[-1] + times_s[-1] - starts_s[0]
    yield from differing(where, f"{at}.window_s", seen.window_s, window_s, tolerance=TOLERANCE)
    frames = part.length * record.case.frames_per_iteration
    expected = frames / seen.energy_j if record.case.has_frames and seen.energy_j else None
    yield from differing(where, f"{at}.frames_per_joule", seen.frames_per_joule, expected, tolerance=TOLERANCE)


# --- energy and power ------------------------------------------------------------------------------------------------


def _check_energy(where: str, at: str, seen: TelemetrySummary, record: RunRecord) -> Iterator[Finding]:
    is_whole = _is_whole(seen, record)
    if is_whole or seen.energy_j is not None:
        yield from differing(where, f"{at}.energy_j", seen.energy_j, _energy_j(seen.gpus), tolerance=TOLERANCE)
    apart = [gpu.energy_disagreement for gpu in seen.gpus if gpu.energy_disagreement is not None]
    is_compared = is_whole and len(apart) == len(seen.gpus)
    agrees = all(abs(share) <= AGREEMENT for share in apart) if is_compared else None
    yield from differing(where, f"{at}.energy_agrees", seen.energy_agrees, agrees)


def _energy_j(gpus: Sequence[GpuTelemetry]) -> float | None:
    """Of all of them by one method, the counter if each has one; None where neither method has all."""
    counted = [gpu.energy_counter_j for gpu in gpus]
    integrated = [gpu.energy_integrated_j for gpu in gpus]
    return next(
        (sum(e for e in one if e is not None) for one in (counted, integrated) if one and None not in one), None
    )


def _check_power(where: str, at: str, seen: TelemetrySummary, *, is_whole: bool) -> Iterator[Finding]:
    """A mean power is the integrated energy over time: of each GPU, each node and, where ``is_whole``, all of them."""
    for index, gpu in enumerate(seen.gpus):
        name = f"{at}.gpus[{index}].power_w"
        yield from _check_mean_power(where, name, gpu.power_w, [gpu.energy_integrated_j], seen.window_s)
    for index, node in enumerate(seen.nodes):
        if node.power_w is not None:
            gpus = [gpu for gpu in seen.gpus if gpu.node == node.node]
            yield from _check_total_power(where, f"{at}.nodes[{index}].power_w", node.power_w, gpus, seen.window_s)
    if is_whole or seen.power_w is not None:
        yield from _check_total_power(where, f"{at}.power_w", seen.power_w, seen.gpus, seen.window_s)


def _check_total_power(
    where: str, name: str, found: Spread | None, gpus: Sequence[GpuTelemetry], window_s: float
) -> Iterator[Finding]:
    """All together are at no time below the sum of the least, nor above that of the most."""
    yield from _check_mean_power(where, name, found, [gpu.energy_integrated_j for gpu in gpus], window_s)
    spreads = [gpu.power_w for gpu in gpus if gpu.power_w is not None]
    if found is None:
        return
    if not gpus or len(spreads) < len(gpus):
        expected = f"nothing: {len(gpus) - len(spreads)} of {counted(len(gpus), 'GPU')} without"
        yield Finding(where=where, what=name, got=f"{found.mean:g} W", expected=expected)
        return
    several = len({gpu.node for gpu in gpus}) > 1
    least_w, most_w = sum(one.min for one in spreads), sum(one.max for one in spreads)
    # Several nodes are read at different times, which rounds up to 2026-11-22 took for the same.
    tolerance = POWER_TOLERANCE if several else TOLERANCE
    for end, value_w in (("min", found.min), ("max", found.max)):
        low_w, high_w = least_w * (1 - tolerance), most_w * (1 + tolerance)
        yield from outside(where, f"{name}.{end}", value_w, low_w, high_w, unit="W")
    if several:
        return
    # At the time of a GPU's least the others take their most, or less.
    highest_w = min(most_w - one.max + one.min for one in spreads)
    lowest_w = max(least_w - one.min + one.max for one in spreads)
    yield from outside(where, f"{name}.min", found.min, -math.inf, highest_w * (1 + TOLERANCE), unit="W")
    yield from outside(where, f"{name}.max", found.max, lowest_w * (1 - TOLERANCE), math.inf, unit="W")


def _check_mean_power(
    where: str, name: str, found: Spread | None, energies_j: Sequence[float | None], window_s: float
) -> Iterator[Finding]:
    known = [energy_j for energy_j in energies_j if energy_j is not None]
    if known and len(known) == len(energies_j):
        mean_w = None if found is None else found.mean
        yield from differing(where, f"{name}.mean", mean_w, sum(known) / window_s, tolerance=POWER_TOLERANCE)


# --- one GPU, the host, the sampler ----------------------------------------------------------------------------------


def _check_gpu(where: str, at: str, gpu: GpuTelemetry, most_gb: float | None) -> Iterator[Finding]:
    counted, integrated = gpu.energy_counter_j, gpu.energy_integrated_j
    if counted is not None and integrated is not None and max(counted, integrated) > 0:
        apart = (integrated - counted) / max(counted, integrated)
        least, most = apart - TOLERANCE / 100, apart + TOLERANCE / 100
        yield from outside(where, f"{at}.energy_disagreement", gpu.energy_disagreement, least, most)
    else:
        yield from differing(where, f"{at}.energy_disagreement", gpu.energy_disagreement, None)
    if gpu.memory_used_gb is not None and most_gb is not None:
        yield from outside(where, f"{at}.memory_used_gb.max", gpu.memory_used_gb.max, 0, most_gb, unit="GB")
    shares = gpu.slowdown_shares or {}
    for word, share in shares.items():
        yield from outside(where, f"{at}.slowdown_shares.{word}", share, 0, 1)
    held_back = [share for word, share in shares.items() if word in HELD_BACK]
    least, most = max(held_back, default=0.0), sum(held_back) if gpu.slowdown_shares is not None else 1.0
    low, high = least * (1 - TOLERANCE), min(1.0, most * (1 + TOLERANCE))
    yield from outside(where, f"{at}.throttled_share", gpu.throttled_share, low, high)


def _check_spreads(where: str, at: str, seen: Any) -> Iterator[Finding]:
    """A mean lies between the least and the most, and a percentage of a whole below 100; of a rank 100 is one core."""
    for item in fields(seen):
        value, name = getattr(seen, item.name), f"{at}.{item.name}"
        if isinstance(value, Spread):
            slack = TOLERANCE * max(abs(value.min), abs(value.max))
            yield from outside(where, f"{name}.mean", value.mean, value.min - slack, value.max + slack)
            if item.name.endswith("_percent") and name != f"{at}.cpu_percent":
                yield from outside(where, f"{name}.min", value.min, 0, 100)
                yield from outside(where, f"{name}.max", value.max, 0, 100)
        elif item.name in {"gpus", "ranks", "nodes"}:
            for index, one in enumerate(value):
                yield from _check_spreads(where, f"{name}[{index}]", one)


def _check_host(where: str, at: str, seen: TelemetrySummary, record: RunRecord) -> Iterator[Finding]:
    """What a hypervisor took, and what other processes used, are parts of the CPU time that was wanted."""
    wanted = seen.host_cpu_percent
    if wanted is not None:
        stolen = None if seen.host_stolen_percent is None else seen.host_stolen_percent.mean
        most = wanted.mean * (1 + TOLERANCE)
        yield from outside(where, f"{at}.host_stolen_percent.mean", stolen, 0, most, unit="%")
        if not seen.nodes:  # of several it is that of the node with most
            yield from outside(
                where, f"{at}.host_others_percent", seen.host_others_percent, 0, most - (stolen or 0.0), unit="%"
            )
    # Of the node that was looked at, while others may have more, or a job's limit: the host, seen whole, may use more.
    memory_gb = record.environment.memory_gb
    if memory_gb is not None and not seen.nodes:
        for index, rank in enumerate(seen.ranks):
            used_gb = None if rank.memory_gb is None else rank.memory_gb.max
            most_gb = memory_gb * (1 + TOLERANCE)
            yield from outside(where, f"{at}.ranks[{index}].memory_gb.max", used_gb, 0, most_gb, unit="GB")


def _check_sampling(where: str, at: str, seen: TelemetrySummary) -> Iterator[Finding]:
    """Samples come no faster than they were aimed at, with no gap where power was integrated, one after the other."""
    most = math.inf if seen.rate_hz is None else seen.rate_hz * seen.window_s + 2
    is_integrated = bool(seen.gpus) and all(gpu.energy_integrated_j is not None for gpu in seen.gpus)
    least = max(1.0, seen.window_s / MAX_GAP_S - 1) if is_integrated else 1.0
    yield from outside(where, f"{at}.num_samples", seen.num_samples, least, most)
    mean_s, max_s = seen.sample_time_mean_s, seen.sample_time_max_s
    if mean_s is None or max_s is None:
        return
    yield from outside(where, f"{at}.sample_time_mean_s", mean_s, 0, max_s * (1 + TOLERANCE), unit="s")
    most_s = max_s * (1 + TOLERANCE) + seen.window_s
    yield from outside(where, f"{at}: all sample times", mean_s * seen.num_samples, 0, most_s, unit="s")
    yield from outside(where, f"{at}.sampler_cpu_share", seen.sampler_cpu_share, 0, math.inf)


# --- places and nodes ------------------------------------------------------------------------------------------------


def _check_places(where: str, at: str, seen: TelemetrySummary, record: RunRecord) -> Iterator[Finding]:
    """Each GPU and each rank once, on nodes that the case has."""
    nodes, ranks = range(record.case.nnodes), range(record.case.world_size)
    gpus = [(gpu.node, gpu.index) for gpu in seen.gpus]
    if len({*gpus}) < len(gpus) or any(node not in nodes for node, _ in gpus):
        expected = f"each once, on nodes 0 to {record.case.nnodes - 1}"
        yield Finding(where=where, what=f"{at}: (node, index) of the GPUs", got=str(gpus), expected=expected)
    seen_ranks = [rank.rank for rank in seen.ranks]
    often = {seen_ranks.count(rank) for rank in seen_ranks}  # emulated nodes once saw each other's
    if not often <= {1, len(seen.nodes)} or len(often) > 1 or any(rank not in ranks for rank in seen_ranks):
        expected = f"each once, of 0 to {record.case.world_size - 1}"
        yield Finding(where=where, what=f"{at}: the ranks", got=str(seen_ranks), expected=expected)
    named = sorted([*(node.node for node in seen.nodes), *seen.missing_nodes])
    if named and named != list(nodes):
        expected = f"each once, 0 to {record.case.nnodes - 1}"
        yield Finding(where=where, what=f"{at}: nodes, seen and missing,", got=str(named), expected=expected)


def _check_nodes(where: str, at: str, seen: TelemetrySummary) -> Iterator[Finding]:
    """What is said of all nodes follows from each, and the energy of each from its GPUs."""
    if not seen.nodes:
        return
    for index, node in enumerate(seen.nodes):
        known = _energy_j([gpu for gpu in seen.gpus if gpu.node == node.node])
        if node.energy_j is not None:
            yield from differing(where, f"{at}.nodes[{index}].energy_j", node.energy_j, known, tolerance=TOLERANCE)
    least = min(node.num_samples for node in seen.nodes)
    yield from differing(where, f"{at}.num_samples", seen.num_samples, least)
    for name in ("host_cpu_percent", "host_memory_used_gb", "host_load"):
        found, expected = getattr(seen, name), _of_all(seen.nodes, name)
        got = None if found is None else {"min": found.min, "mean": found.mean, "max": found.max}
        yield from differing(where, f"{at}.{name}", got, expected, tolerance=TOLERANCE)


def _of_all(nodes: Sequence[NodeTelemetry], name: str) -> Mapping[str, float] | None:
    known: list[Spread] = [spread for node in nodes if (spread := getattr(node, name)) is not None]
    if not known:
        return None
    mean = statistics.fmean(spread.mean for spread in known)
    return {"min": min(spread.min for spread in known), "mean": mean, "max": max(spread.max for spread in known)}
