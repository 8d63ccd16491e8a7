"""The sampler's figures of a round against the round's samples, and against each other. Pure."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from reports.verification.finding import Finding, Json, counted, differing, outside
from reports.verification.formulas import starts_of_turns
from reports.verification.samples.round_facts import most_memory_gb, processes, world_size

TOLERANCE: Final = 1e-4  # its figures are stored to six digits
# Mean power against energy over time. Rounds up to 2026-11-23 have the mean of the readings, at most 0.5 % apart.
POWER_TOLERANCE: Final = 0.01
AGREEMENT: Final = 0.05  # of a counter and an integral that are said to agree
MAX_GAP_S: Final = 2.0  # between readings of a power that was integrated
HELD_BACK: Final = frozenset(
    {"power_cap", "hardware_slowdown", "sync_boost", "thermal_software", "thermal_hardware", "power_brake"}
)


def check_telemetry(where: str, at: str, record: Json) -> Iterator[Finding]:
    """Check the telemetry of one round, if it has any."""
    seen = record["telemetry"]
    if seen is None or not record["ranks"]:
        return
    is_whole = len(seen["gpus"]) == world_size(record["case"]) and not seen["missing_nodes"]
    yield from _check_window(where, at, seen, record)
    yield from _check_energy(where, at, seen, is_whole=is_whole)
    if seen["window_s"] > 0:  # else that is named already
        yield from _check_power(where, at, seen, is_whole=is_whole)
        parts = record["turns"]["turns"] if record["turns"] else 1
        yield from _check_sampling(where, at, seen, parts=parts)
    yield from _check_spreads(where, at, seen)
    for index, gpu in enumerate(seen["gpus"]):
        place = (gpu["node"], gpu["index"])
        rank = next((one for one in record["ranks"] if (one["node"] or 0, one["local_rank"]) == place), None)
        yield from _check_gpu(where, f"{at}.gpus[{index}]", gpu, most_memory_gb(record, rank))
    yield from _check_places(where, at, seen, record["case"])
    yield from _check_host(where, at, seen, record)
    yield from _check_nodes(where, at, seen)


def _check_window(where: str, at: str, seen: Json, record: Json) -> Iterator[Finding]:
    """Check that the window is the last iterations of rank 0, and frames per joule against frames and energy.

    Runs before 30 Nov 2026 were sampled over a window that began elsewhere, so its length says where.
    """
    samples = record["ranks"][0]["samples"]
    starts_s, times_s = samples["start_s"], samples["iteration_time_s"]

    def length_s(start: int) -> float:
        borders = [start, *sorted(index for index in starts_of_turns(record) if index > start), len(times_s)]
        return float(sum(starts_s[end - 1] + times_s[end - 1] - starts_s[first] for first, end in pairwise(borders)))

    start = min(range(1, len(times_s)), key=lambda start: abs(length_s(start) - seen["window_s"]))
    yield from differing(where, f"{at}.window_s", seen["window_s"], length_s(start), tolerance=TOLERANCE)
    case, energy_j = record["case"], seen["energy_j"]
    frames = (len(times_s) - start) * case["num_envs_global"] * case["num_steps_per_env"]
    has_frames = case["workload"] != "all_reduce"
    expected = frames / energy_j if has_frames and energy_j else None
    yield from differing(where, f"{at}.frames_per_joule", seen["frames_per_joule"], expected, tolerance=TOLERANCE)


# --- energy and power ---


def _check_energy(where: str, at: str, seen: Json, *, is_whole: bool) -> Iterator[Finding]:
    if is_whole or seen["energy_j"] is not None:
        yield from differing(where, f"{at}.energy_j", seen["energy_j"], _energy_j(seen["gpus"]), tolerance=TOLERANCE)
    shares = [gpu["energy_disagreement"] for gpu in seen["gpus"]]
    is_compared = is_whole and None not in shares
    agrees = all(abs(share) <= AGREEMENT for share in shares) if is_compared else None
    yield from differing(where, f"{at}.energy_agrees", seen["energy_agrees"], agrees)


def _energy_j(gpus: Sequence[Json]) -> float | None:
    """Return the energy of all GPUs by one method, the counter if each has one; None if neither has all."""
    for name in ("energy_counter_j", "energy_integrated_j"):
        energies = [gpu[name] for gpu in gpus]
        if energies and None not in energies:
            return math.fsum(energies)
    return None


def _check_power(where: str, at: str, seen: Json, *, is_whole: bool) -> Iterator[Finding]:
    """Check that a mean power is the integrated energy over time: of each GPU, each node and all of them."""
    for index, gpu in enumerate(seen["gpus"]):
        yield from _check_mean_power(where, f"{at}.gpus[{index}].power_w", gpu["power_w"], [gpu], seen["window_s"])
    for index, node in enumerate(seen["nodes"]):
        if node["power_w"] is not None:
            gpus = [gpu for gpu in seen["gpus"] if gpu["node"] == node["node"]]
            yield from _check_total_power(
                where, f"{at}.nodes[{index}].power_w", node["power_w"], gpus, seen["window_s"]
            )
    if is_whole or seen["power_w"] is not None:
        yield from _check_total_power(where, f"{at}.power_w", seen["power_w"], seen["gpus"], seen["window_s"])


def _check_total_power(
    where: str, name: str, found: Json | None, gpus: Sequence[Json], window_s: float
) -> Iterator[Finding]:
    """Check that the power of all GPUs lies between the sums of the least and of the most of each."""
    yield from _check_mean_power(where, name, found, gpus, window_s)
    spreads = [gpu["power_w"] for gpu in gpus if gpu["power_w"] is not None]
    if found is None:
        return
    if not gpus or len(spreads) < len(gpus):
        expected = f"nothing: {len(gpus) - len(spreads)} of {counted(len(gpus), 'GPU')} without"
        yield Finding(where=where, what=name, got=f"{found['mean']:g} W", expected=expected)
        return
    several = len({gpu["node"] for gpu in gpus}) > 1
    least_w, most_w = sum(one["min"] for one in spreads), sum(one["max"] for one in spreads)
    # Several nodes are read at different times, which rounds up to 2026-11-22 took for the same.
    tolerance = POWER_TOLERANCE if several else TOLERANCE
    low_w, high_w = least_w * (1 - tolerance), most_w * (1 + tolerance)
    lowest_max_w, highest_min_w = low_w, high_w
    if not several:  # at the time of a GPU's least the others take their most, or less
        highest_min_w = min(most_w - one["max"] + one["min"] for one in spreads) * (1 + TOLERANCE)
        lowest_max_w = max(least_w - one["min"] + one["max"] for one in spreads) * (1 - TOLERANCE)
    yield from outside(where, f"{name}.min", found["min"], low_w, highest_min_w, unit="W")
    yield from outside(where, f"{name}.max", found["max"], lowest_max_w, high_w, unit="W")


def _check_mean_power(
    where: str, name: str, found: Json | None, gpus: Sequence[Json], window_s: float
) -> Iterator[Finding]:
    energies_j = [gpu["energy_integrated_j"] for gpu in gpus]
    if energies_j and None not in energies_j:
        mean_w = None if found is None else found["mean"]
        expected_w = math.fsum(energies_j) / window_s
        yield from differing(where, f"{name}.mean", mean_w, expected_w, tolerance=POWER_TOLERANCE)


# --- one GPU, the host, the sampler ---


def _check_gpu(where: str, at: str, gpu: Json, most_gb: float | None) -> Iterator[Finding]:
    counter_j, integrated_j = gpu["energy_counter_j"], gpu["energy_integrated_j"]
    what, found = f"{at}.energy_disagreement", gpu["energy_disagreement"]
    if counter_j is not None and integrated_j is not None and max(counter_j, integrated_j) > 0:
        share = (integrated_j - counter_j) / max(counter_j, integrated_j)
        yield from outside(where, what, found, share - TOLERANCE / 100, share + TOLERANCE / 100)
    else:
        yield from differing(where, what, found, None)
    if gpu["memory_used_gb"] is not None and most_gb is not None:
        yield from outside(where, f"{at}.memory_used_gb.max", gpu["memory_used_gb"]["max"], 0, most_gb, unit="GB")
    shares = gpu["slowdown_shares"]
    for word, share in (shares or {}).items():
        yield from outside(where, f"{at}.slowdown_shares.{word}", share, 0, 1)
    held_back = [share for word, share in (shares or {}).items() if word in HELD_BACK]
    low, high = max(held_back, default=0.0), sum(held_back) if shares is not None else 1.0
    what, found = f"{at}.throttled_share", gpu["throttled_share"]
    yield from outside(where, what, found, low * (1 - TOLERANCE), min(1.0, high * (1 + TOLERANCE)))


def _check_spreads(where: str, at: str, seen: Json) -> Iterator[Finding]:
    """Check that means lie between least and most, and percentages below 100; of a rank's cores 100 is one."""
    for name, value in seen.items():
        if isinstance(value, dict) and value.keys() == {"min", "mean", "max"}:
            here, slack = f"{at}.{name}", TOLERANCE * max(abs(value["min"]), abs(value["max"]))
            yield from outside(where, f"{here}.mean", value["mean"], value["min"] - slack, value["max"] + slack)
            if name.endswith("_percent") and name != "cpu_percent":
                yield from outside(where, f"{here}.min", value["min"], 0, 100)
                yield from outside(where, f"{here}.max", value["max"], 0, 100)
        elif name in {"gpus", "ranks", "nodes"}:
            for index, one in enumerate(value):
                yield from _check_spreads(where, f"{at}.{name}[{index}]", one)


def _check_host(where: str, at: str, seen: Json, record: Json) -> Iterator[Finding]:
    """Check that what a hypervisor took and others used are parts of the wanted CPU time, and memory is the host's."""
    wanted, stolen = seen["host_cpu_percent"], seen["host_stolen_percent"]
    if wanted is not None:
        most, taken = wanted["mean"] * (1 + TOLERANCE), stolen["mean"] if stolen else 0.0
        yield from outside(where, f"{at}.host_stolen_percent.mean", taken, 0, most, unit="%")
        if not seen["nodes"]:  # of several it is that of the node with most
            what = f"{at}.host_others_percent"
            yield from outside(where, what, seen["host_others_percent"], 0, most - taken, unit="%")
    # Other nodes may have more memory; a job's limit may be below what its host has, which is seen whole.
    memory_gb = record["environment"]["memory_gb"]
    if memory_gb is not None and not seen["nodes"]:
        for index, rank in enumerate(seen["ranks"]):
            used_gb = rank["memory_gb"] and rank["memory_gb"]["max"]
            what = f"{at}.ranks[{index}].memory_gb.max"
            yield from outside(where, what, used_gb, 0, memory_gb * (1 + TOLERANCE), unit="GB")


def _check_sampling(where: str, at: str, seen: Json, *, parts: int) -> Iterator[Finding]:
    """Check that samples came no faster than intended, without a gap if power was integrated, one after the other.

    ``parts`` is the number of pieces of the window: one, or a turn each. Each may have a sample at both of its ends.
    """
    rate_hz, window_s, number = seen["rate_hz"], seen["window_s"], seen["num_samples"]
    most = math.inf if rate_hz is None else rate_hz * window_s + 1 + parts
    is_integrated = bool(seen["gpus"]) and all(gpu["energy_integrated_j"] is not None for gpu in seen["gpus"])
    least = max(1.0, window_s / MAX_GAP_S - 1) if is_integrated else 1.0
    yield from outside(where, f"{at}.num_samples", number, least, most)
    mean_s, max_s = seen["sample_time_mean_s"], seen["sample_time_max_s"]
    if mean_s is None or max_s is None:
        return
    most_s = max_s * (1 + TOLERANCE)
    yield from outside(where, f"{at}.sample_time_mean_s", mean_s, 0, most_s, unit="s")
    yield from outside(where, f"{at}: all sample times", mean_s * number, 0, most_s + window_s, unit="s")
    yield from outside(where, f"{at}.sampler_cpu_share", seen["sampler_cpu_share"], 0, math.inf)


# --- places and nodes ---


def _check_places(where: str, at: str, seen: Json, case: Json) -> Iterator[Finding]:
    """Check that each GPU and each rank is there once, on nodes that the case has."""
    nodes, ranks = range(case["nnodes"]), range(processes(case))
    gpus = [(gpu["node"], gpu["index"]) for gpu in seen["gpus"]]
    if len({*gpus}) < len(gpus) or any(node not in nodes for node, _ in gpus):
        expected = f"each once, on nodes 0 to {len(nodes) - 1}"
        yield Finding(where=where, what=f"{at}: (node, index) of the GPUs", got=str(gpus), expected=expected)
    found = [rank["rank"] for rank in seen["ranks"]]
    often = {found.count(rank) for rank in found}  # emulated nodes once saw each other's
    if not often <= {1, len(seen["nodes"])} or len(often) > 1 or any(rank not in ranks for rank in found):
        expected = f"each once, of 0 to {len(ranks) - 1}"
        yield Finding(where=where, what=f"{at}: the ranks", got=str(found), expected=expected)
    named = sorted([*(node["node"] for node in seen["nodes"]), *seen["missing_nodes"]])
    if named and named != list(nodes):
        expected = f"each once, 0 to {len(nodes) - 1}"
        yield Finding(where=where, what=f"{at}: nodes, seen and missing,", got=str(named), expected=expected)


def _check_nodes(where: str, at: str, seen: Json) -> Iterator[Finding]:
    """Check that the figures of all nodes follow from each, and the energy of each from its GPUs."""
    if not seen["nodes"]:
        return
    for index, node in enumerate(seen["nodes"]):
        known = _energy_j([gpu for gpu in seen["gpus"] if gpu["node"] == node["node"]])
        if node["energy_j"] is not None:
            what = f"{at}.nodes[{index}].energy_j"
            yield from differing(where, what, node["energy_j"], known, tolerance=TOLERANCE)
    least = min(node["num_samples"] for node in seen["nodes"])
    yield from differing(where, f"{at}.num_samples", seen["num_samples"], least)
    for name in ("host_cpu_percent", "host_memory_used_gb", "host_load"):
        expected = _of_all([node[name] for node in seen["nodes"] if node[name] is not None])
        yield from differing(where, f"{at}.{name}", seen[name], expected, tolerance=TOLERANCE)


def _of_all(spreads: Sequence[Json]) -> Any:
    if not spreads:
        return None
    mean = math.fsum(one["mean"] for one in spreads) / len(spreads)
    return {"min": min(one["min"] for one in spreads), "mean": mean, "max": max(one["max"] for one in spreads)}
