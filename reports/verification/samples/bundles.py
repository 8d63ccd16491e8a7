"""Imported bundles of Isaac Lab's own benchmark: no samples to compute from, so each is checked in itself."""

import json
import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from reports.verification.finding import Finding, as_far_as_possible, differing, outside
from reports.verification.samples.shape import json_files, read_json

BUNDLES: Final = "isaaclab-bundles"
SCHEMA_VERSION: Final = "1.4"
RATE_SLACK_FPS: Final = 1.0  # rsl_rl rounds its frames per second down
_IMPORT_AGAIN: Final = "Take the file anew from whoever wrote it, and import it again with `nox -s import`."
_RANK_FIELDS: Final = ("world_size", "local_world_size", "num_nodes", "num_envs_per_rank")


def bundle_paths(folder: Path) -> list[Path]:
    return [path for path in json_files(folder / BUNDLES) if path.parent == folder / BUNDLES]


def read_bundles(folder: Path, *, root: Path) -> tuple[list[str], list[Finding]]:
    """Return the kind of work of every bundle that can be read, and what is wrong in the files."""
    kinds: list[str] = []
    findings: list[Finding] = []
    seen: dict[str, str] = {}
    where = (folder / BUNDLES).relative_to(root).as_posix()
    for path in bundle_paths(folder):
        at = path.relative_to(root).as_posix()
        try:
            bundle = read_json(path)
            if bundle.get("schema_version") == SCHEMA_VERSION:
                kinds.append(_kind_of(bundle))
                identity, fault = repr((bundle["run"]["run_id"], bundle["run"]["start_time_utc"])), None
            else:
                fault = f"schema_version is {bundle.get('schema_version', 'missing')!r}, not {SCHEMA_VERSION!r}"
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            fault = f"{type(error).__name__}: {error}"
        if fault:
            got, expected = f"not valid ({fault})", "a bundle"
            findings.append(Finding(where=at, what="the file", got=got, expected=expected, next_step=_IMPORT_AGAIN))
            continue
        findings += as_far_as_possible(at, _check(at, bundle))
        first = seen.setdefault(identity, at)
        if first != at:
            got = f"there twice ({first} and {at} are the same run)"
            findings.append(Finding(where=where, what="a run", got=got, expected="one file"))
    if not kinds and not findings:
        findings.append(Finding(where=where, what="the folder", got="empty", expected="a bundle in it"))
    return kinds, findings


def _kind_of(bundle: Any) -> str:
    """Return what is equal in runs of one case: task, library, settings, ranks, environments, hardware, versions."""
    run, timing = bundle["run"], bundle["runtime"].get("environment_step_timing") or {}
    same = [run[name] for name in ("task", "framework", "config", "num_envs")] + [run.get("max_iterations")]
    extra = bundle.get("extra") or {}
    ranks = [extra.get(name) for name in ("world_size", "num_nodes")]
    hardware = {name: value for name, value in bundle["hardware"].items() if name not in {"hostname", "ram_gb"}}
    steps = bundle["runtime"]["steps_per_iteration"]
    clock = [timing.get("measurement_mode"), extra.get("labscale_case_id") is None]  # labscale's bundles have its times
    return json.dumps([same, ranks, hardware, bundle["versions"], steps, clock], sort_keys=True)


def _check(where: str, bundle: Any) -> Iterator[Finding]:
    """Check the figures of one bundle, which all come from the same iterations, against each other."""
    run, runtime = bundle["run"], bundle["runtime"]
    yield from outside(where, "run.num_envs", run["num_envs"], 1, math.inf, next_step=_IMPORT_AGAIN)
    mean_s, steps = runtime["iteration_time_s"]["mean"], runtime["steps_per_iteration"]
    yield from outside(where, "runtime.iteration_time_s.mean", mean_s, 1e-9, math.inf, next_step=_IMPORT_AGAIN)
    yield from differing(where, "steps_per_iteration modulo num_envs", steps % run["num_envs"], 0)
    wall_s, found_s = runtime["iterations_completed"] * mean_s, runtime["total_wall_time_s"]
    yield from differing(where, "runtime.total_wall_time_s", found_s, wall_s, tolerance=1e-6)
    least_fps = steps / mean_s * (1 - 1e-6) - RATE_SLACK_FPS  # a mean of rates is never below the rate of the mean
    for name in ("collection_fps", "total_fps"):
        yield from outside(where, f"runtime.{name}.mean", runtime[name]["mean"], least_fps, math.inf)
    ends = [datetime.fromisoformat(run[name]) for name in ("start_time_utc", "end_time_utc")]
    duration_s = max(0.0, (ends[1] - ends[0]).total_seconds())
    yield from outside(where, "run.duration_s", run["duration_s"], duration_s - 1e-3, duration_s + 1e-3, unit="s")
    extra = bundle.get("extra") or {}
    if extra.get("distributed"):
        ranks, local, nodes, envs = (extra[name] for name in _RANK_FIELDS)
        yield from differing(where, "extra.world_size", ranks, local * nodes)
        yield from differing(where, "run.num_envs", run["num_envs"], envs * ranks)
