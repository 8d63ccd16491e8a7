"""The format of stored JSON and TOML: what each field that is read has to be. A wrong one is named before it is used.

A shape is a word of ``SCALARS``, a tuple of the values that a field may have, a list with the shape of its items, or
an object with the shape of each of its fields. ``?`` after a field or a word: it may be null. ``~`` before a field: it
may be missing. A name that begins with ``*`` is that of all other fields that end as it does. Fields without a shape
are not read.
"""

import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import NoneType
from typing import Any, Final

from reports.verification.finding import LARGEST, Json, Place
from reports.verification.hashes import read_bytes

# Word -> what is expected, of which types it is, and the least number.
SCALARS: Final[Mapping[str, tuple[str, set[type], float]]] = {
    "text": ("a text", {str}, 0),
    "moment": ("a date and time with its zone, as 2026-11-21T10:00:00+00:00", {str}, 0),
    "flag": ("true or false", {bool}, 0),
    "count": ("a whole number from 0 on", {int}, 0),
    "size": ("a whole number above 0", {int}, 1),
    "amount": ("a number from 0 on", {int, float}, 0),
    "length": ("a number above 0", {int, float}, sys.float_info.min),
    "number": ("a number", {int, float}, -LARGEST),
    "step": ("true, false or a whole number from 0 on", {bool, int}, 0),
    "scalar": ("a text, a number, true or false", {str, bool, int, float}, -LARGEST),
}
OUTCOMES: Final = ("completed", "crashed", "oom", "timeout", "hung", "lost", "skipped", "invalid")


def _all(shape: Any, names: str) -> Json:
    return dict.fromkeys(names.split(), shape)


_SUMMARY: Final = _all("number", "min mean max")
_CHECK: Final = _all("text", "name verdict found")
_CASE: Final = {
    **_all("text", "configuration_id series scaling task rl_library stack device assets minibatch_rule workload"),
    **_all("text", "division kernel_cache"),
    **_all("size", "nnodes nproc_per_node num_envs num_envs_global num_steps_per_env iterations trainings_per_gpu"),
    **_all("count", "minibatch_size optimiser_steps seed cpu_threads?"),
    "seed_per_run": "step",
    **_all("flag", "deterministic only_learning"),
    **_all(["text"], "presets with_packages overrides"),
}
_MACHINE: Final = {
    **_all("text", "host_label? driver_version? cuda_driver_version? cpu_model git_commit kernel"),
    "gpus": [{"name": "text", "memory_gb?": "length"}], "checks": [_CHECK], "git_dirty": "flag", "num_cpus": "count",
}  # fmt: skip
_SAMPLES: Final = {
    "*iteration_time_s": ["length?"],
    **_all(["amount?"], "*_time_s *start_s *_calls *_bytes *_switches"),
    "*": ["number?"],
}
_RANK: Final = {
    "rank": "count", "local_rank": "count", "node?": "count", "error?": "text", "validity": [_CHECK],
    "phases_s": {"*": "amount"}, "settings": {"*": "scalar?"}, "samples": _SAMPLES,
    "parameters_sha256?": "text", "peak_memory_gb?": "amount", "kernels_compiled?": "count",
}  # fmt: skip
_GPU: Final = {
    **_all("count", "index node"),
    **_all("amount", "energy_counter_j? energy_integrated_j? throttled_share?"),
    **_all(_SUMMARY, "sm_utilisation_percent? memory_utilisation_percent? memory_used_gb?"),
    **_all(_SUMMARY, "power_w? sm_clock_mhz? memory_clock_mhz? temperature_c?"),
}
_TELEMETRY: Final = {
    **_all(_SUMMARY, "power_w? host_cpu_percent? host_stolen_percent? host_memory_used_gb? host_load?"),
    **_all("amount", "window_start_unix_s energy_j? frames_per_joule? host_others_percent? sampler_cpu_share?"),
    "window_s": "length", "rate_hz": "length", "num_samples": "count", "energy_agrees?": "flag", "nodes": [{}],
    "missing_nodes": ["count"], "gpus": [_GPU],
    "ranks": [{"rank": "count", **_all(_SUMMARY, "cpu_percent? memory_gb? threads?")}],
}  # fmt: skip
_RUN: Final = {
    "run": "count", "outcome": OUTCOMES, "reason?": "text", "exit_code?": "number", "machine": "count",
    "started_utc?": "moment", "wall_time_s?": "amount", "ranks": [_RANK], "profiled_ranks": ["count"],
    "turns?": {"beside": ["text"], "turns": "count"}, "telemetry?": _TELEMETRY,
    "workload?": {
        **_all("length", "~episode_length_s? ~physics_dt_s? ~env.sim.dt? ~decimation?"), "*": "scalar?",
    },
    "readings": [{"node": "count", "columns": {"time_s": ["number"], "*.slowdowns": ["text?"], "*": ["number?"]}}],
}  # fmt: skip
CASE_FILE: Final = {
    "commit_info": {}, "machine_info": {}, "benchmarks": [{}],
    "labscale": {
        "schema_version": (6,), "ended_because?": "text",
        "configuration": _CASE, "machines": [_MACHINE], "runs": [_RUN],
    },
}  # fmt: skip
PLAN_FILE: Final = {"configurations": {"*": "count"}, "~missing": {"*": "text?"}}
PAIRS_FILE: Final = [{"configuration_id": "text", "run": "count", **_all("length", "ours_s theirs_s library_s?")}]
WEAKNESSES_FILE: Final = {"~weakness": [_all("text", "where what got why")]}
LOG_LINE: Final = _all("text", "before run outcome run_sha256")


def parse_json(place: Place, shape: Any, line: bytes | None = None) -> Any:
    """Return what the file at ``place`` has, or a line of it; None if something is not of its shape, which is noted."""

    def without_repeats(pairs: list[tuple[str, Any]]) -> Json:
        if len(fields := dict(pairs)) < len(pairs):
            raise ValueError("a field is there twice")
        return fields

    def parse(text: str) -> Any:  # NaN and infinity, which are not of JSON, become texts, so no number
        return json.loads(text, parse_constant=str, object_pairs_hook=without_repeats)

    return _parse(place, shape, "JSON", parse, line)


def parse_toml(place: Place, shape: Any) -> Any:
    """Return what the file at ``place`` has; None if something is not of its shape, which is noted."""
    return _parse(place, shape, "TOML", tomllib.loads)


def _parse(place: Place, shape: Any, kind: str, parse: Callable[[str], Any], line: bytes | None = None) -> Any:
    try:
        document = parse((read_bytes(place.path) if line is None else line).decode())
    except UnicodeDecodeError:
        place.fault("the file", f"no {kind} (it is not UTF-8)", f"{kind}, as UTF-8")
    except RecursionError:
        place.fault("the file", f"no {kind} (it is nested too deeply)", f"{kind}, as UTF-8")
    except ValueError as error:
        place.fault("the file", f"no {kind} ({str(error).partition(';')[0]})", f"{kind}, as UTF-8")
    else:
        for wrong in _wrong(document, shape):
            place.fault(*wrong)
            return None
        return document
    return None


def _wrong(value: Any, shape: Any, name: str = "") -> Iterator[tuple[str, Any, str]]:
    """Yield each field that is not of its shape, with what it is and what it has to be."""
    if isinstance(shape, str | tuple):
        if not _are([value], shape):
            yield name, repr(value), SCALARS[shape.removesuffix("?")][0] if isinstance(shape, str) else repr(shape)
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
        field = key.removeprefix("~").removesuffix("?")
        if key[0] == "*":
            others = {name: rest.pop(name) for name in [*rest] if name.endswith(key[1:])}
            for other, item in others.items():
                yield from _wrong(item, own, begin + other)
        elif field not in value:
            if key[0] != "~":
                yield begin + field, "missing", "there"
        elif value[field] is not None or key[-1] != "?":
            yield from _wrong(value[field], own, begin + field)


def _are(values: Any, shape: Any) -> bool:
    """Return whether all values are what a word or a tuple says, at a glance; False if it is neither."""
    if not isinstance(shape, str):
        return isinstance(shape, tuple) and all(value in shape for value in values)
    _, types, least = SCALARS[shape.removesuffix("?")]
    if not {*map(type, values)} <= ({*types, NoneType} if shape[-1] == "?" else types):
        return False
    if shape == "moment":
        return all(map(_is_moment, values))
    numbers = [value for value in values if type(value) is float or type(value) is int]
    return not numbers or (least <= min(numbers) and max(numbers) <= LARGEST)


def _is_moment(text: str) -> bool:
    try:
        unix_s(text)
    except ValueError:
        return False
    return True


def unix_s(moment: str) -> float:
    """Return the time of a date and time with its zone. Raise ValueError if it is none."""
    return datetime.strptime(moment, "%Y-%m-%dT%H:%M:%S%z").timestamp()
