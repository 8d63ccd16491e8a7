"""What the sampler stored of a run: its summary against the samples and the readings of which it is one. Pure."""

import math
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import numpy as np

from reports.verification.finding import Json, Place, counted
from reports.verification.samples.rank import Array, begins_of_turns, columns_of

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
    begins = [0, *begins_of_turns(columns), len(starts_s)]
    spans = [(first, end - 1) for first, end in pairwise(begins)]
    later_s, lengths_s = 0.0, np.empty(len(starts_s))
    for first, last in reversed(spans):
        lengths_s[first : last + 1] = ends_s[last] - starts_s[first : last + 1] + later_s
        later_s += float(ends_s[last] - starts_s[first])
    start = 1 + int(np.argmin(abs(lengths_s[1:] - record["telemetry"]["window_s"])))
    return [(float(starts_s[max(first, start)]), float(ends_s[last])) for first, last in spans if last >= start]


def zero_unix_s(record: Json) -> float:
    """Return the time of day at which rank 0's clock is zero."""
    return float(record["telemetry"]["window_start_unix_s"] - window_spans(record)[0][0])


def check_telemetry(place: Place, record: Json) -> None:
    seen, case, spans = record["telemetry"], record["case"], window_spans(record)
    _check_window(place, record, spans)
    places = [(gpu["node"], gpu["index"]) for gpu in seen["gpus"]]
    gpus = case["nnodes"] * case["nproc_per_node"]
    if len({*places}) < len(places) or len(places) > max(gpus, len(record["environment"]["gpus"]) * case["nnodes"]):
        place.fault("(node, index) of the GPUs", str(places), f"each once, of {counted(gpus, 'GPU')}")
    is_whole = len(places) == gpus and not seen["missing_nodes"]
    _check_energy(place, seen, is_whole=is_whole)
    if is_whole or seen["power_w"] is not None:
        _check_power(place, "power_w", seen["power_w"], seen["gpus"], seen["window_s"])
    _check_spreads(place, "", seen)
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
    """Check energy as the sum of the GPUs', and each GPU's against its power, its counter and what held it back."""
    if is_whole or seen["energy_j"] is not None:
        energies = ([gpu[name] for gpu in seen["gpus"]] for name in ("energy_counter_j", "energy_integrated_j"))
        total_j = next((math.fsum(known) for known in energies if known and None not in known), None)
        place.same("energy_j", seen["energy_j"], total_j, tolerance=TOLERANCE)
    for index, gpu in enumerate(seen["gpus"]):
        name, shares = f"gpus[{index}]", gpu["slowdown_shares"]
        _check_power(place, f"{name}.power_w", gpu["power_w"], [gpu], seen["window_s"])
        counter_j, integral_j = gpu["energy_counter_j"], gpu["energy_integrated_j"]
        if None not in (counter_j, integral_j) and seen["energy_agrees"]:
            place.same(f"{name}.energy_counter_j", counter_j, integral_j, tolerance=AGREEMENT + TOLERANCE)
        held_back = [share for word, share in (shares or {}).items() if word in HELD_BACK]
        low, high = max(held_back, default=0.0), sum(held_back) if shares is not None else 1.0
        most = min(1.0, high * (1 + TOLERANCE))
        place.between(f"{name}.throttled_share", gpu["throttled_share"], low * (1 - TOLERANCE), most)


def _check_power(place: Place, name: str, power: Json | None, gpus: Sequence[Json], window_s: float) -> None:
    """Check that a mean power is the integrated energy over time, and lies between those of the GPUs together."""
    energies_j = [gpu["energy_integrated_j"] for gpu in gpus]
    if energies_j and None not in energies_j:
        expected_w = math.fsum(energies_j) / window_s
        place.same(f"{name}.mean", power and power["mean"], expected_w, tolerance=POWER_TOLERANCE)
    spreads = [gpu["power_w"] for gpu in gpus if gpu["power_w"] is not None]
    if power is not None:
        low_w, high_w = (sum(spread[side] for spread in spreads) for side in ("min", "max"))
        place.between(f"{name}.min", power["min"], low_w * (1 - POWER_TOLERANCE), math.inf, "W")
        place.between(f"{name}.max", power["max"], 0, high_w * (1 + POWER_TOLERANCE), "W")


def _check_spreads(place: Place, name: str, value: Any) -> None:
    """Check that means lie between least and most, and percentages below 100; of a rank's cores 100 is one."""
    if isinstance(value, dict) and value.keys() == {"min", "mean", "max"}:
        slack = TOLERANCE * max(abs(value["min"]), abs(value["max"]))
        place.between(f"{name}.mean", value["mean"], value["min"] - slack, value["max"] + slack)
        if name.endswith("_percent") and not name.endswith("].cpu_percent"):
            place.between(f"{name}.max", value["max"], max(0, value["min"]), 100)
    elif isinstance(value, dict):
        for key, part in value.items():
            _check_spreads(place, f"{name}.{key}" if name else key, part)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            _check_spreads(place, f"{name}[{index}]", part)


# --- the readings that were kept ---


def _check_readings(place: Place, record: Json, node: Json, spans: Spans) -> None:
    """Check a node's readings: they span the iterations, and those in the window fit the summary of all."""
    seen, samples = record["telemetry"], record["ranks"][0]["samples"]
    columns = {
        name: np.array(column, float)
        for name, column in node["columns"].items()
        if not name.endswith(("slowdowns", ".core"))
    }
    times_s = columns.pop("time_s")
    first_s, last_s = samples["start_s"][0], samples["start_s"][-1] + samples["iteration_time_s"][-1]
    beyond = int((times_s < first_s).sum()), int((times_s > last_s).sum())
    if max(beyond) > 1 or (np.diff(times_s) <= 0).any():
        got = f"{beyond[0]} before and {beyond[1]} after its iterations"
        place.fault("its times", got, "in order, at most one before and one after")
    inside = np.any([(times_s > start_s) & (times_s < end_s) for start_s, end_s in spans], axis=0)
    parts = {f"gpu{gpu['index']}": gpu for gpu in seen["gpus"] if gpu["node"] == node["node"]}
    parts |= {f"rank{rank['rank']}": rank for rank in seen["ranks"]}
    parts["host"] = {name.removeprefix("host_"): value for name, value in seen.items() if name.startswith("host_")}
    for name, column in columns.items():
        part, _, field = name.partition(".")
        summary, known = parts.get(part, {}).get(field), column[inside & ~np.isnan(column)]
        if field == "energy_j" and part in parts and len(spans) == 1:
            counted_j, (start_j, end_j) = parts[part]["energy_counter_j"], np.interp(spans[0], times_s, column)
            if counted_j is not None:
                place.same(f"{name} over the window", counted_j, float(end_j - start_j), tolerance=ENERGY_TOLERANCE)
        if field == "power_w" and part in parts and parts[part]["energy_integrated_j"] is not None:
            energy_j, integral_j = parts[part]["energy_integrated_j"], _integral(times_s, column, spans)
            place.same(f"{name} over the window", energy_j, integral_j, tolerance=INTEGRAL_TOLERANCE)
        if isinstance(summary, dict) and len(known):
            _check_summary(place, name, known, summary, has_mean=not seen["nodes"])


def _check_summary(place: Place, name: str, known: Array, summary: Json, *, has_mean: bool) -> None:
    """Check that readings lie within least and most, and that their mean is that of all but for chance."""
    slack = TOLERANCE * abs(summary["max"]) + READING_TOLERANCE
    place.between(f"the least {name}", float(known.min()), summary["min"] - slack, math.inf)
    place.between(f"the most {name}", float(known.max()), -math.inf, summary["max"] + slack)
    if has_mean and len(known) > 1:
        spread = (summary["max"] - summary["min"]) / math.sqrt(len(known))
        low, high = (summary["mean"] + side * (MEAN_SPREADS * spread + slack) for side in (-1, 1))
        place.between(f"the mean {name}", float(known.mean()), low, high)


def _integral(times_s: Array, column: Array, spans: Spans) -> float:
    """Return a power over the window, by lines between its readings."""
    total = 0.0
    for start_s, end_s in spans:
        inner = times_s[(times_s > start_s) & (times_s < end_s)]
        points_s = np.array([start_s, *inner, end_s])
        total += float(np.trapezoid(np.interp(points_s, times_s, column), points_s))
    return total
