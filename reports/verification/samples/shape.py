"""Reads raw JSON, and what is in a case's document: its case and its rounds. Pure but for reading files.

A document of another shape raises LookupError, TypeError or ValueError, which ``read_case`` makes a finding.
"""

import json
import math
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from reports.verification.finding import Json, counted
from reports.verification.regular_file import read_bytes

SCHEMA_VERSION: Final = 6
LARGEST: Final = 1e18
SHORTEST_S: Final = 1e-9  # no clock measures a shorter iteration
_WORDS: Final = {"scaling": ("strong", "weak"), "division": ("closed", "open"), "device": ("cpu", "cuda")}
_OUTCOMES: Final = ("completed", "crashed", "oom", "timeout", "hung", "lost", "skipped", "invalid")
_VERDICTS: Final = ("ok", "warning", "failure", "not_needed", "not_checked")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
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
    """Return the case of a document and its rounds, each with its case and its environment."""
    stored = document["labscale"]
    if stored["schema_version"] != SCHEMA_VERSION:
        said = f"schema_version is {stored['schema_version']!r}, known is {SCHEMA_VERSION}"
        raise ValueError(f"{said}; the labscale of commit a230a9f6 reads 1 to 5")
    case = dict(stored["configuration"])
    case["case_id"], case["seed_per_round"] = str(case.pop("configuration_id")), case.pop("seed_per_run")
    if fault := next(_case_faults(case), None):
        raise ValueError(fault)
    rounds = []
    for run in stored["runs"]:
        machine = run["machine"]
        if not _is_count(machine) or machine >= len(stored["machines"]):
            raise ValueError(f"machine is {machine!r}, there are {len(stored['machines'])}")
        rounds.append({**run, "round": run["run"], "case": case, "environment": stored["machines"][machine]})
        _require_readable(rounds[-1])
    numbers = [record["round"] for record in rounds]
    if not rounds or len({*numbers}) < len(numbers):
        raise ValueError(f"runs are {numbers}; each may be there once, and a case that cannot run has a skipped one")
    return case, rounds


def fault_of_round(record: Json) -> str | None:
    """Return why a round is no measurement at all: its fields are valid each, but contradict each other."""
    return next(_round_faults(record), None)


def _case_faults(case: Json) -> Iterator[str]:
    for name in _SIZES:
        if not _is_count(case[name]) or not case[name]:
            yield f"{name} is {case[name]!r}, expected a number above 0"
    for name, words in _WORDS.items():
        if case[name] not in words:
            yield f"{name} is {case[name]!r}, expected {' or '.join(words)}"
    if not all(_NAME.fullmatch(part) for part in (case["series"], *case["case_id"].split("/"))):
        yield f"its names are {case['series']!r} and {case['case_id']!r}"


def _require_readable(record: Json) -> None:
    """Raise ValueError unless all times of a round are numbers, and its words are known."""
    at = f"run {record['round']!r}"
    if not _is_count(record["round"]) or not all(map(_is_count, record["profiled_ranks"])):
        raise ValueError(f"{at}: its number or those of its profiled_ranks are none")
    if record["outcome"] not in _OUTCOMES:
        raise ValueError(f"{at}: outcome is {record['outcome']!r}, expected {' or '.join(_OUTCOMES)}")
    if record["started_utc"] is not None and not _is_moment(record["started_utc"]):
        raise ValueError(f"{at}: started_utc is {record['started_utc']!r}, no date and time with its offset")
    if record["wall_time_s"] is not None and not _is_number(record["wall_time_s"]):
        raise ValueError(f"{at}: wall_time_s is {record['wall_time_s']!r}, no number")
    for rank in record["ranks"]:
        _require_readable_rank(f"{at}, rank {rank['rank']}", rank)


def _require_readable_rank(at: str, rank: Json) -> None:
    for check in rank["validity"]:
        if check["verdict"] not in _VERDICTS:
            raise ValueError(f"{at}: verdict is {check['verdict']!r}, expected {' or '.join(_VERDICTS)}")
    for name, column in rank["samples"].items():
        if not isinstance(column, list) or not all(value is None or _is_number(value) for value in column):
            raise ValueError(f"{at}: {name} is not a list of numbers")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_moment(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
        return moment.tzinfo is not None and math.isfinite(moment.timestamp())
    except (TypeError, ValueError, OverflowError):
        return False


def _round_faults(record: Json) -> Iterator[str]:
    if record["started_utc"] is None and record["wall_time_s"] is not None:
        yield "it has a wall_time_s without a started_utc"
    for rank in record["ranks"]:
        lengths = {len(column) for column in rank["samples"].values()}
        if len(lengths) > 1:
            yield f"rank {rank['rank']} has columns of {sorted(lengths)} samples"
    if record["outcome"] == "completed":
        yield from _rank_faults(record, record["case"])


def _rank_faults(record: Json, case: Json) -> Iterator[str]:
    """Check that every rank has a time for every iteration: without the slowest rank a machine looks faster."""
    gpus = case["nnodes"] * case["nproc_per_node"]
    # A pipeline has two processes, which share a single GPU.
    sharing = 2 if (case["workload"], gpus) == ("async_pipeline", 1) else case["trainings_per_gpu"]
    processes = gpus * sharing
    ranks = [rank["rank"] for rank in record["ranks"]]
    if ranks != list(range(processes)):
        yield f"its ranks are {ranks}, expected {counted(processes, 'rank')}, each once and in order"
    columns = [rank["samples"].get("iteration_time_s", []) for rank in record["ranks"]]
    if len({len(column) for column in columns}) > 1 or min(map(len, columns), default=0) < 2:  # noqa: PLR2004
        yield f"its ranks have times of {[len(column) for column in columns]} iterations, expected one number above 1"
    for rank, column in zip(ranks, columns, strict=True):
        for iteration, time_s in enumerate(column):
            if time_s is None or time_s < SHORTEST_S:
                yield f"rank {rank}, iteration {iteration}: iteration_time_s is {time_s}, not a time above 0"


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the field {next(name for name in names if names.count(name) > 1)} is there twice")
    return found
