"""Reads raw JSON, and what is in a case's document: its case and its runs, each with its case and its machine."""

import json
import math
from datetime import datetime
from pathlib import Path
from types import NoneType
from typing import Any, Final

from reports.verification.finding import Json
from reports.verification.regular_file import read_bytes

SCHEMA_VERSION: Final = 6
LARGEST: Final = 1e18
OUTCOMES: Final = ("completed", "crashed", "oom", "timeout", "hung", "lost", "skipped", "invalid")
_SIZES: Final = (
    "nnodes", "nproc_per_node", "num_envs", "num_envs_global", "num_steps_per_env", "iterations", "trainings_per_gpu",
)  # fmt: skip


def read_json(path: Path) -> Any:
    """Raise ValueError for a file that is not JSON, has NaN or infinity, or has a field twice in one object."""
    try:
        return json.loads(read_bytes(path), parse_constant=_refuse_constant, object_pairs_hook=_without_repeats)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def json_files(folder: Path) -> list[Path]:
    """Return all below ``folder``; none if it is missing. Raise OSError for a folder that cannot be read."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    paths = (at / name for at, _, names in folder.walk(on_error=refuse) for name in names)
    return sorted(path for path in paths if path.suffix == ".json")


def case_and_rounds(document: Json) -> tuple[Json, list[Json]]:
    """Return the case of a document and its runs. Raise LookupError, TypeError or ValueError for another shape."""
    stored = document["labscale"]
    if stored["schema_version"] != SCHEMA_VERSION:
        known = f"schema_version is {stored['schema_version']!r}, known is {SCHEMA_VERSION}"
        raise ValueError(f"{known}; the labscale of commit a230a9f6 reads 1 to 5")
    case = dict(stored["configuration"])
    case["case_id"], case["seed_per_round"] = str(case.pop("configuration_id")), case.pop("seed_per_run")
    for name in _SIZES:
        if not _is_count(case[name]) or not case[name]:
            raise ValueError(f"{name} is {case[name]!r}, expected a number above 0")
    rounds = [_round(run, case, stored["machines"]) for run in stored["runs"]]
    numbers = [record["round"] for record in rounds]
    if not rounds or len({*numbers}) < len(numbers):
        raise ValueError(f"runs are {numbers}; each may be there once, and a case that cannot run has a skipped one")
    return case, rounds


def _round(run: Json, case: Json, machines: list[Json]) -> Json:
    """Return a run with its case and machine, if its times are numbers and its outcome is known."""
    at, machine = f"run {run['run']!r}", run["machine"]
    if not _is_count(machine) or machine >= len(machines):
        raise ValueError(f"machine is {machine!r}, there are {len(machines)}")
    if not _is_count(run["run"]):
        raise ValueError(f"{at}: its number is none")
    if run["outcome"] not in OUTCOMES:
        raise ValueError(f"{at}: outcome is {run['outcome']!r}, expected {' or '.join(OUTCOMES)}")
    if run["started_utc"] is not None and not _is_moment(run["started_utc"]):
        raise ValueError(f"{at}: started_utc is {run['started_utc']!r}, no date and time with its offset")
    if type(run["wall_time_s"]) not in {float, int, NoneType}:
        raise ValueError(f"{at}: wall_time_s is {run['wall_time_s']!r}, no number")
    for rank in run["ranks"]:
        for name, column in rank["samples"].items():
            if not isinstance(column, list) or not {*map(type, column)} <= {float, int, NoneType}:
                raise ValueError(f"{at}, rank {rank['rank']}: {name} is not a list of numbers")
    return {**run, "round": run["run"], "case": case, "environment": machines[machine]}


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _is_moment(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
        return moment.tzinfo is not None and math.isfinite(moment.timestamp())
    except (TypeError, ValueError, OverflowError):
        return False


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> Json:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)} is there twice")
    return fields
