"""What the sampler stored of a run: its summary against the samples and the readings of which it is one. Pure."""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import numpy as np

from reports.verification.finding import Json, Place
from reports.verification.samples.rank import Array, columns_of, pieces_of

TOLERANCE: Final = 1e-4  # its figures are stored to six digits
# Mean power against energy over time. Rounds up to 2026-11-23 have the mean of the readings, at most 0.5 % apart.
POWER_TOLERANCE: Final = 0.01
AGREEMENT: Final = 0.05  # of a counter and an integral that are said to agree
CLOCKS_S: Final = 60.0  # the wall clock of a node may differ by this from that of the host that started the run
HELD_BACK: Final = frozenset(
    {"power_cap", "hardware_slowdown", "sync_boost", "thermal_software", "thermal_hardware", "power_brake"}
)
READING_TOLERANCE: Final = 0.06  # of readings that are stored with one digit or more
ENERGY_TOLERANCE: Final = (
    0.001  # the counter at the ends of a window, between its readings: at most 0.0001 until 2026-12
)
INTEGRAL_TOLERANCE: Final = 0.05  # power once a second against all readings: at most 0.031 until 2026-12
# The mean of the readings that were kept, one a second, from the mean of all: in parts of the spread over the root of
# their number, at most 1.4 until 2026-12.
MEAN_SPREADS: Final = 2.5

type Spans = list[tuple[float, float]]  # on the clock of rank 0


def window_spans(record: Json) -> Spans:
    """Return the sampled window: the last iterations of rank 0, without what others ran between its turns.

    Runs before 30 Nov 2026 were sampled over a window that began elsewhere, so its length says where.
    """
    columns = columns_of(record["ranks"][0])
    starts_s, ends_s = columns["start_s"], columns["start_s"] + columns["iteration_time_s"]
    later_s, lengths_s, pieces = 0.0, np.empty(len(starts_s)), pieces_of(columns)
    for first, last in reversed(pieces):
        lengths_s[first : last + 1] = ends_s[last] - starts_s[first : last + 1] + later_s
        later_s += float(ends_s[last] - starts_s[first])
    start = 1 + int(np.argmin(abs(lengths_s[1:] - record["telemetry"]["window_s"])))
    return [(float(starts_s[max(first, start)]), float(ends_s[last])) for first, last in pieces if last >= start]


def zero_unix_s(record: Json) -> float:
    """Return the time of day at which rank 0's clock is zero."""
    return float(record["telemetry"]["window_start_unix_s"] - window_spans(record)[0][0])


def check_telemetry(place: Place, record: Json) -> None:
    seen, case, spans = record["telemetry"], record["case"], window_spans(record)
    _check_window(place, record, spans)
    gpus = case["nnodes"] * case["nproc_per_node"]
    is_whole = len(seen["gpus"]) == gpus and not seen["missing_nodes"]
    _check_energy(place, seen, is_whole=is_whole)
    if is_whole or seen["power_w"] is not None:
        _check_power(place, "power_w", seen["power_w"], seen["gpus"], seen["window_s"])
    wanted, stolen = seen["host_cpu_percent"], seen["host_stolen_percent"]
    if wanted is not None:  # of which a hypervisor took some, and others used some
        most, taken = wanted["mean"] * (1 + TOLERANCE), stolen["mean"] if stolen else 0.0
        place.between("host_stolen_percent.mean", taken, 0, most, "%")
        if not seen["nodes"]:  # of several it is that of the node with most
            place.between("host_others_percent", seen["host_others_percent"], 0, most - taken, "%")
    for node in record.get("readings") or ():
        _check_readings(place.within(f"readings of node {node['node']}"), record, node, spans)


def _check_window(place: Place, record: Json, spans: Spans) -> None:
    """Check the window against the samples and the time of the run, and frames per joule against both."""
    seen, case = record["telemetry"], record["case"]
    window_s = sum(end_s - start_s for start_s, end_s in spans)
    place.same("window_s", seen["window_s"], window_s, tolerance=TOLERANCE)
    number = sum(start_s >= spans[0][0] for start_s in record["ranks"][0]["samples"]["start_s"])
    frames = number * case["num_envs_global"] * case["num_steps_per_env"]
    has_frames = case["workload"] != "all_reduce" and bool(seen["energy_j"])
    expected = frames / seen["energy_j"] if has_frames else None
    place.same("frames_per_joule", seen["frames_per_joule"], expected, tolerance=TOLERANCE)
    if seen["rate_hz"] is not None:  # each turn may have a sample at both of its ends
        place.between("num_samples", seen["num_samples"], 1, seen["rate_hz"] * window_s + 1 + len(spans))
    started_s = datetime.fromisoformat(record["started_utc"]).timestamp()
    imports_s = record["ranks"][0]["phases_s"].get("imports_torch", 0.0)
    zero_s, most_s = seen["window_start_unix_s"] - spans[0][0] - started_s, record["wall_time_s"] - spans[-1][1]
    what, most_s = "the start of rank 0's clock after that of the run", min(most_s, imports_s + CLOCKS_S) + CLOCKS_S
    place.between(what, zero_s, imports_s - CLOCKS_S, most_s, "s")


def _check_energy(place: Place, seen: Json, *, is_whole: bool) -> None:
    """Check energy as the sum of the GPUs', and each GPU's against its power and its counter."""
    if is_whole or seen["energy_j"] is not None:
        energies = ([gpu[name] for gpu in seen["gpus"]] for name in ("energy_counter_j", "energy_integrated_j"))
        total_j = next((math.fsum(known) for known in energies if known and None not in known), None)
        place.same("energy_j", seen["energy_j"], total_j, tolerance=TOLERANCE)
    for index, gpu in enumerate(seen["gpus"]):
        name = f"gpus[{index}]"
        _check_power(place, f"{name}.power_w", gpu["power_w"], [gpu], seen["window_s"])
        counter_j, integral_j = gpu["energy_counter_j"], gpu["energy_integrated_j"]
        if None not in (counter_j, integral_j) and seen["energy_agrees"]:
            place.same(f"{name}.energy_counter_j", counter_j, integral_j, tolerance=AGREEMENT + TOLERANCE)


def _check_power(place: Place, name: str, power: Json | None, gpus: Sequence[Json], window_s: float) -> None:
    """Check that a mean power is the integrated energy over time."""
    energies_j = [gpu["energy_integrated_j"] for gpu in gpus]
    if energies_j and None not in energies_j:
        expected_w = math.fsum(energies_j) / window_s
        place.same(f"{name}.mean", power and power["mean"], expected_w, tolerance=POWER_TOLERANCE)


# --- the readings that were kept ---


def _check_readings(place: Place, record: Json, node: Json, spans: Spans) -> None:
    """Check a node's readings: they span the iterations, and those in the window fit the summary of all."""
    seen, samples = record["telemetry"], record["ranks"][0]["samples"]
    times_s = np.array(node["columns"]["time_s"], float)
    first_s, last_s = samples["start_s"][0], samples["start_s"][-1] + samples["iteration_time_s"][-1]
    beyond = int((times_s < first_s).sum()), int((times_s > last_s).sum())
    if max(beyond) > 1 or (np.diff(times_s) <= 0).any():
        got = f"{beyond[0]} before and {beyond[1]} after its iterations"
        place.fault("its times", got, "in order, at most one before and one after")
    inside = np.any([(times_s > start_s) & (times_s < end_s) for start_s, end_s in spans], axis=0)
    gpus = {f"gpu{gpu['index']}": gpu for gpu in seen["gpus"] if gpu["node"] == node["node"]}
    parts = {**gpus, **{f"rank{rank['rank']}": rank for rank in seen["ranks"]}}
    parts["host"] = {name.removeprefix("host_"): value for name, value in seen.items() if name.startswith("host_")}
    for name, column in node["columns"].items():
        part, _, field = name.partition(".")
        summary = parts.get(part, {}).get(field)
        known = [value for value, is_in in zip(column, inside, strict=True) if is_in and value is not None]
        if isinstance(summary, dict) and known:
            _check_summary(place, name, known, summary, has_mean=not seen["nodes"])
    for name, gpu in gpus.items():
        columns = {field: node["columns"].get(f"{name}.{field}") for field in ("power_w", "energy_j", "slowdowns")}
        _check_gpu(place.within(name), gpu, times_s, columns, spans)


def _check_gpu(place: Place, gpu: Json, times_s: Array, columns: Json, spans: Spans) -> None:
    """Check the energy of a GPU, by its counter and by its power over time, and whether nothing held it back."""
    if columns["energy_j"] is not None and gpu["energy_counter_j"] is not None and len(spans) == 1:
        start_j, end_j = np.interp(spans[0], times_s, np.array(columns["energy_j"], float))
        expected_j = float(end_j - start_j)
        place.same("energy_j over the window", gpu["energy_counter_j"], expected_j, tolerance=ENERGY_TOLERANCE)
    if columns["power_w"] is not None and gpu["energy_integrated_j"] is not None:
        power_w, integral_j = np.array(columns["power_w"], float), 0.0
        for start_s, end_s in spans:
            points_s = np.array([start_s, *times_s[(times_s > start_s) & (times_s < end_s)], end_s])
            integral_j += float(np.trapezoid(np.interp(points_s, times_s, power_w), points_s))
        got_j = gpu["energy_integrated_j"]
        place.same("power_w over the window", got_j, integral_j, tolerance=INTEGRAL_TOLERANCE)
    for time_s, words in zip(times_s, columns["slowdowns"] or (), strict=False):
        held_back = HELD_BACK.intersection((words or "").split("+"))
        if held_back and gpu["throttled_share"] == 0 and any(start_s < time_s < end_s for start_s, end_s in spans):
            place.fault("throttled_share", "0", f"above it, by a reading: {', '.join(held_back)}")


def _check_summary(place: Place, name: str, known: Sequence[float], summary: Json, *, has_mean: bool) -> None:
    """Check that readings lie within least and most, and that their mean is that of all but for chance."""
    slack = TOLERANCE * abs(summary["max"]) + READING_TOLERANCE
    place.between(f"the least {name}", min(known), summary["min"] - slack, math.inf)
    place.between(f"the most {name}", max(known), -math.inf, summary["max"] + slack)
    if has_mean and len(known) > 1:
        spread = (summary["max"] - summary["min"]) / math.sqrt(len(known))
        low, high = (summary["mean"] + side * (MEAN_SPREADS * spread + slack) for side in (-1, 1))
        place.between(f"the mean {name}", math.fsum(known) / len(known), low, high)
