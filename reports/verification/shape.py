"""The format of stored JSON: what each field that is read has to be. A wrong one is named before anything uses it.

A shape is a word of ``SCALARS``, a tuple of the values that a field may have, a list with the shape of its items, or
an object with the shape of each of its fields. ``?`` after a field or a word: it may be null. A name that begins with
``*`` is that of all other fields that end as it does; they need not be there. Fields without a shape are not read.
"""

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import Any, Final

from reports.verification.finding import LARGEST, Json, Place
from reports.verification.hashes import read_bytes

# Word -> what is expected, of which types it is, and the least number.
SCALARS: Final[Mapping[str, tuple[str, set[type], float]]] = {
    "text": ("a text", {str}, 0),
    "flag": ("true or false", {bool}, 0),
    "time": ("a time with its zone", {str}, 0),
    "count": ("a whole number from 0 on", {int}, 0),
    "size": ("a whole number above 0", {int}, 1),
    "amount": ("a number from 0 on", {int, float}, 0),
    "length": ("a number above 0", {int, float}, sys.float_info.min),
    "number": ("a number", {int, float}, -LARGEST),
    "scalar": ("a text, a number, true or false", {str, bool, int, float}, -LARGEST),
}
_TYPES: Final = {
    **{word: types for word, (_, types, _) in SCALARS.items()},
    **{f"{word}?": {*types, NoneType} for word, (_, types, _) in SCALARS.items()},
}
OUTCOMES: Final = ("completed", "crashed", "oom", "timeout", "hung", "lost", "skipped", "invalid")
_SUMMARY: Final = dict.fromkeys(("min", "mean", "max"), "number")
_CHECK: Final = dict.fromkeys(("name", "verdict", "found"), "text")
_CASE: Final = {
    **dict.fromkeys(("configuration_id", "series", "scaling", "task", "rl_library", "stack", "device"), "text"),
    **dict.fromkeys(("assets", "minibatch_rule", "workload", "division", "kernel_cache"), "text"),
    **dict.fromkeys(("nnodes", "nproc_per_node", "num_envs", "num_envs_global", "num_steps_per_env"), "size"),
    **dict.fromkeys(("iterations", "trainings_per_gpu"), "size"),
    **dict.fromkeys(("minibatch_size", "optimiser_steps", "seed", "cpu_threads?"), "count"),
    **dict.fromkeys(("seed_per_run", "deterministic"), "flag"),
    "presets": ["text"],
    "with_packages": ["text"],
}
_MACHINE: Final = {
    **dict.fromkeys(("host_label?", "driver_version?", "cuda_driver_version?", "cpu_model", "git_commit"), "text"),
    "gpus": [{"name": "text", "memory_gb?": "length"}], "checks": [_CHECK], "git_dirty": "flag", "kernel": "text",
    "num_cpus": "count",
}  # fmt: skip
_RANK: Final = {
    "rank": "count", "local_rank": "count", "node?": "count", "error?": "text", "validity": [_CHECK],
    "phases_s": {"*": "amount"}, "settings": {"*": "scalar?"}, "samples": {"*": ["number?"]},
    "parameters_sha256?": "text", "peak_memory_gb?": "amount", "kernels_compiled?": "count",
}  # fmt: skip
_TELEMETRY: Final = {
    **dict.fromkeys(("power_w?", "host_cpu_percent?", "host_stolen_percent?"), _SUMMARY),
    **dict.fromkeys(("host_memory_used_gb?", "host_load?"), _SUMMARY),
    **dict.fromkeys(("energy_j?", "frames_per_joule?", "host_others_percent?", "sampler_cpu_share?"), "amount"),
    "window_start_unix_s": "amount", "window_s": "length", "rate_hz": "length", "num_samples": "count",
    "energy_agrees?": "flag", "nodes": [{}], "missing_nodes": ["count"],
    "ranks": [{"rank": "count", **dict.fromkeys(("cpu_percent?", "memory_gb?", "threads?"), _SUMMARY)}],
    "gpus": [{
        "index": "count", "node": "count",
        **dict.fromkeys(("energy_counter_j?", "energy_integrated_j?", "throttled_share?"), "amount"),
        **dict.fromkeys(("sm_utilisation_percent?", "memory_utilisation_percent?", "memory_used_gb?"), _SUMMARY),
        **dict.fromkeys(("power_w?", "sm_clock_mhz?", "memory_clock_mhz?", "temperature_c?"), _SUMMARY),
    }],
}  # fmt: skip
_RUN: Final = {
    "run": "count", "outcome": OUTCOMES, "reason?": "text", "exit_code?": "number", "machine": "count",
    "started_utc?": "time", "wall_time_s?": "amount", "ranks": [_RANK], "profiled_ranks": ["count"],
    "turns?": {"beside": ["text"], "turns": "count", "turn_s": "length"}, "telemetry?": _TELEMETRY,
    "workload?": {"*": "scalar?"},
    "readings": [{"node": "count", "columns": {"time_s": ["number"], "*.slowdowns": ["text?"], "*": ["number?"]}}],
}  # fmt: skip
CASE_FILE: Final = {
    "commit_info": {}, "machine_info": {}, "benchmarks": [{}],
    "labscale": {
        "schema_version": (6,), "ended_because?": "text",
        "configuration": _CASE, "machines": [_MACHINE], "runs": [_RUN],
    },
}  # fmt: skip
PLAN_FILE: Final = {"configurations": {"*": "count"}, "*missing": {"*": "text?"}}
PAIRS_FILE: Final = [
    {"configuration_id": "text", "run": "count", "ours_s": "length", "theirs_s": "length", "library_s?": "length"}
]
LOG_LINE: Final = dict.fromkeys(("before", "run", "outcome", "run_sha256"), "text")


def read_json(place: Place, path: Path, shape: Any) -> Any:
    """Return what a file has; None if something in it is not of its shape, which is noted."""
    return parse_json(place, read_bytes(path), shape)


def parse_json(place: Place, text: bytes, shape: Any) -> Any:
    def without_repeats(pairs: list[tuple[str, Any]]) -> Json:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            place.fault(f"the field {max(names, key=names.count)}", "there twice", "there once")
        return fields

    try:  # NaN and infinity, which are not of JSON, become texts, so no number
        document = json.loads(text, parse_constant=str, object_pairs_hook=without_repeats)
    except json.JSONDecodeError as error:
        place.fault("the file", f"no JSON from line {error.lineno}, column {error.colno} on", "JSON to its end")
        return None
    except (RecursionError, ValueError):
        place.fault("the file", "no JSON", "JSON, as UTF-8")
        return None
    wrong = next(_wrong(document, shape), None)
    if wrong is not None:
        place.fault(*wrong)
    return None if wrong is not None else document


def _wrong(value: Any, shape: Any, name: str = "") -> Iterator[tuple[str, Any, str]]:
    """Yield each field that is not of its shape, with what it is and what it has to be."""
    if isinstance(shape, str):
        if not _are([value], shape):
            yield name, repr(value), SCALARS[shape.removesuffix("?")][0]
    elif isinstance(shape, tuple):
        if value not in shape:
            yield name, repr(value), " or ".join(map(str, shape))
    elif type(value) is not type(shape):
        yield name or "the file", repr(value), "a list" if isinstance(shape, list) else "an object"
    elif isinstance(shape, list):
        for index, item in enumerate(() if _are(value, shape[0]) else value):
            yield from _wrong(item, shape[0], f"{name}[{index}]")
    else:
        yield from _wrong_fields(value, shape, f"{name}." if name else "")


def _wrong_fields(value: Json, shape: Json, begin: str) -> Iterator[tuple[str, Any, str]]:
    rest = {name: item for name, item in value.items() if name not in shape}
    for key, own in shape.items():
        field = key.removesuffix("?")
        if key[0] == "*":
            others = {name: rest.pop(name) for name in [*rest] if name.endswith(key[1:])}
            for name, item in others.items() if not _are(others.values(), own) else ():
                yield from _wrong(item, own, begin + name)
        elif field not in value:
            yield begin + field, "missing", "there"
        elif not _are([value[field]], own) and (value[field] is not None or field == key):
            yield from _wrong(value[field], own, begin + field)


def _are(values: Collection[Any], word: Any) -> bool:
    """Return whether all values are what a word says; of many it takes a glance. False if it is no word."""
    if not isinstance(word, str) or not {*map(type, values)} <= _TYPES[word]:
        return False
    if word in {"text", "time"}:
        return word == "text" or all(map(_is_time, values))
    numbers = [value for value in values if type(value) is float or type(value) is int]
    return not numbers or (SCALARS[word.removesuffix("?")][2] <= min(numbers) and max(numbers) <= LARGEST)


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
