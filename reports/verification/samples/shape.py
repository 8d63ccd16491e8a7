"""The stored format: which fields a document has and what each may be. Unknown fields and words are faults. Pure.

``name:kind`` is a field. ``?`` after a kind allows null; ``+`` before a name marks a field that older files lack. A new
field of the format is added here, and nowhere else in this package.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from reports.verification.finding import Json, counted
from reports.verification.regular_file import read_bytes

# 3: rounds may have ``readings`` and ``turns``. 4: cases ``seed_per_round``. 5: cases ``deterministic``,
# ``trainings_per_gpu``, ``kernel_cache`` and ``with_packages``, and ranks what Warp compiled.
SCHEMA_VERSIONS: Final = (1, 2, 3, 4, 5)
LARGEST: Final = 1e18
SHORTEST_S: Final = 1e-9  # no clock measures a shorter iteration
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def _fields(text: str) -> Mapping[str, tuple[str, bool, bool]]:
    """Field -> kind, whether it may be null, whether it may be missing."""
    pairs = (item.partition(":") for item in text.split())
    return {name.lstrip("+"): (kind.rstrip("?"), kind[-1] == "?", name[0] == "+") for name, _, kind in pairs}


DOCUMENT: Final = _fields(
    "machine_info:object commit_info:object benchmarks:list datetime:text version:text labscale:object"
)
RESULT: Final = _fields("case:object rounds:list +ended_because:text?")
CASE: Final = _fields(
    "case_id:text series:text scaling:strong|weak task:text"
    " rl_library:rl_games|rsl_rl|skrl|skrl_jax|sb3|torchrl|lerobot"
    " stack:kitless|ovphysx|isaacsim device:cpu|cuda nnodes:size nproc_per_node:size num_envs:size num_envs_global:size"
    " num_steps_per_env:size iterations:size minibatch_rule:fixed_minibatch|fixed_updates minibatch_size:count"
    " optimiser_steps:count seed:count assets:offline|official presets:list overrides:list timeout_s:number"
    " hang_timeout_s:number +division:closed|open"
    " +workload:train|environment_step|rendering|all_reduce|collection|collection_ray|async_pipeline"
    "|policy_rollout|dataset_recording"
    " +cpu_threads:count? +pin_cpus:flag +seed_per_round:flag +deterministic:flag +trainings_per_gpu:size"
    " +kernel_cache:kept|empty +with_packages:list"
)
ROUND: Final = _fields(
    "case:object round:count outcome:completed|crashed|oom|timeout|hung|lost|skipped|invalid reason:text?"
    " exit_code:number? started_utc:moment? wall_time_s:number? environment:object argv:list ranks:list"
    " schema_version:count +image_digest:text? +workload:object? +telemetry:object? +telemetry_note:text?"
    " +profiled_ranks:list +neighbours:count? +turns:any +readings:list +clocks:list? +transport:object?"
)
RANK: Final = _fields(
    "rank:count local_rank:count phases_s:object settings:object samples:object parameters_sha256:text?"
    " peak_memory_gb:number? error:text? +validity:list +kernels_compiled:number? +node:count?"
    " +warp_modules_compiled:count? +warp_compile_time_s:number?"
)
VALIDITY: Final = _fields(
    "name:text feature:text verdict:ok|warning|failure|not_needed|not_checked found:text fault:text?"
)
ENVIRONMENT: Final = _fields(
    "host_label:text? cpu_model:text? num_cpus:count? memory_gb:number? os:text? kernel:text? +gpus:list"
    " +driver_version:text? +cuda_driver_version:text? +suite_version:text? +git_commit:text? +git_dirty:flag?"
    " +worker_pins_sha256:text? +asset_sha256:text? +worker_packages:list +checks:list"
)
BENCHMARK: Final = _fields(
    "group:any name:any fullname:any params:any param:any extra_info:object options:any stats:object"
)


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


def fault_of_document(document: Any) -> str | None:
    """Return the first fault of a case's document; None if everything is as labscale writes it."""
    return next(_document_faults(document), None)


def fault_of_round(record: Json) -> str | None:
    """Return why a round is no measurement at all: its fields are valid each, but contradict each other."""
    return next(_round_faults(record), None)


def _document_faults(document: Any) -> Iterator[str]:
    yield from _faults("", document, DOCUMENT)
    stored = document["labscale"]
    if stored.get("schema_version") not in SCHEMA_VERSIONS:
        yield f"schema_version is {stored.get('schema_version')!r}, known are {', '.join(map(str, SCHEMA_VERSIONS))}"
    result = stored.get("case_result")
    yield from _faults("case_result", result, RESULT)
    yield from _faults("case", result["case"], CASE)
    for index, benchmark in enumerate(document["benchmarks"]):
        yield from _faults(f"benchmarks[{index}]", benchmark, BENCHMARK)
        stats = benchmark["stats"]
        if not isinstance(stats.get("data"), list) or not all(map(_is_number, (*stats["data"], stats.get("q3")))):
            yield f"benchmarks[{index}].stats has no numbers in data and q3"
    if not result["rounds"]:
        yield "rounds is empty; a case that cannot run has a skipped one"
    for index, record in enumerate(result["rounds"]):
        yield from _record_faults(f"rounds[{index}]", record)
        if record["case"] != result["case"]:
            yield f"rounds[{index}] is of another case"
    numbers = [record["round"] for record in result["rounds"]]
    if len({*numbers}) < len(numbers):
        yield f"rounds are {numbers}; each may be there once"


def _record_faults(at: str, record: Any) -> Iterator[str]:
    yield from _faults(at, record, ROUND)
    yield from _faults(f"{at}.environment", record["environment"], ENVIRONMENT)
    for rank in record["ranks"]:
        yield from _faults(f"{at}.ranks", rank, RANK)
        for check in rank.get("validity", ()):
            yield from _faults(f"{at}.ranks.validity", check, VALIDITY)
        for name, column in rank["samples"].items():
            if not isinstance(column, list) or not all(value is None or _is_number(value) for value in column):
                yield f"{at}, rank {rank['rank']}: {name} is not a list of numbers"


def _faults(at: str, found: Any, fields: Mapping[str, tuple[str, bool, bool]]) -> Iterator[str]:
    if not isinstance(found, dict):
        yield f"{at or 'the file'} is not an object"
    prefix = f"{at}." if at else ""
    for name in sorted(found.keys() - fields.keys()):
        yield f"{prefix}{name} is not a field of the format"
    for name, (kind, is_nullable, is_newer) in fields.items():
        if name not in found:
            if not is_newer:
                yield f"{prefix}{name} is missing"
        elif not (is_nullable and found[name] is None) and not _is_of_kind(found[name], kind):
            yield f"{prefix}{name} is {str(found[name])[:80]!r}, expected {kind.replace('|', ' or ')}"


def _is_of_kind(value: Any, kind: str) -> bool:
    if "|" in kind:
        return value in kind.split("|")
    types: Mapping[str, type] = {"text": str, "list": list, "object": dict, "flag": bool}
    if kind in types:
        return isinstance(value, types[kind])
    if kind == "moment":
        return isinstance(value, str) and _is_moment(value)
    if kind in {"count", "size"}:
        return _is_number(value) and isinstance(value, int) and value >= (kind == "size")
    return kind == "any" or _is_number(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_moment(text: str) -> bool:
    try:
        moment = datetime.fromisoformat(text)
        return moment.tzinfo is not None and math.isfinite(moment.timestamp())
    except (ValueError, OverflowError):
        return False


def _round_faults(record: Json) -> Iterator[str]:
    case = record["case"]
    if not all(_NAME.fullmatch(part) for part in (case["series"], *case["case_id"].split("/"))):
        yield f"its names are {case['series']!r} and {case['case_id']!r}"
    if record["started_utc"] is None and record["wall_time_s"] is not None:
        yield "it has a wall_time_s without a started_utc"
    for rank in record["ranks"]:
        for (name, column), (other, other_column) in pairwise(rank["samples"].items()):
            if len(column) != len(other_column):
                yield f"rank {rank['rank']} has {len(column)} samples of {name} and {len(other_column)} of {other}"
    if record["outcome"] == "completed":
        yield from _rank_faults(record, case)


def _rank_faults(record: Json, case: Json) -> Iterator[str]:
    """Check that every rank has a time for every iteration: without the slowest rank a machine looks faster."""
    gpus = case["nnodes"] * case["nproc_per_node"]
    # A pipeline has two processes, which share a single GPU.
    sharing = 2 if (case.get("workload"), gpus) == ("async_pipeline", 1) else case.get("trainings_per_gpu", 1)
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
