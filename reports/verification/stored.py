"""Reads the cases of a set, and checks each file alone: format, name, plan, and its numbers against its samples."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, Final

from reports.verification.finding import NEVER_WRITTEN, OR_LIST, Json, Place, counted
from reports.verification.hashes import ALONE, CASES, PAIRS, PLAN, REPEATS, case_paths, read_json
from reports.verification.runs import COPY, REPEAT, Run
from reports.verification.samples import SHORTEST_S, check_run, has_samples

SCHEMA_VERSION: Final = 6
LARGEST: Final = 1e18
OUTCOMES: Final = ("completed", "crashed", "oom", "timeout", "hung", "lost", "skipped", "invalid")
RULE: Final = (  # each document names the rule of its numbers
    "mean over the last four fifths of the iterations, without the marked ones where others exist, of the slowest "
    "rank's iteration_time_s, in seconds; of several trainings on one GPU their harmonic mean"
)
ASKED: Final = "as many rounds as were asked for"
_SIZES: Final = (
    "nnodes", "nproc_per_node", "num_envs", "num_envs_global", "num_steps_per_env", "iterations", "trainings_per_gpu",
)  # fmt: skip
# What a case id says of its case: <series>/<library>-<stack>[-cpu]-n<num_envs_global>-<nnodes>x<nproc>[-<variant>]
_CASE_ID: Final = re.compile(
    r"(?P<series>[^/]+)/(?P<rl_library>[^-]+)-(?P<stack>[^-]+)(?:-cpu)?"
    r"-n(?P<num_envs_global>\d+)-(?P<nnodes>\d+)x(?P<nproc_per_node>\d+)(?:-.+)?"
)
_STORE_ANEW: Final = "Store the case anew from the records of its rounds, with `nox -s bench` in its folder."


@dataclass(frozen=True)
class StoredCase:
    runs: list[Run]  # each number once
    ended_because: str | None

    @property
    def case_id(self) -> str:
        return str(self.runs[0].case_id)


@dataclass(frozen=True)
class StoredSet:
    folder: Path
    cases: list[StoredCase]
    rejected: list[str]  # files whose runs are too wrong for figures

    @property
    def runs(self) -> list[Run]:
        return [run for stored in self.cases for run in stored.runs]


def read_set(place: Place, folder: Path) -> StoredSet:
    """Read and check each file of a set."""
    files = {path: read_case(place.at(path), path, folder.name) for path in case_paths(folder)}
    cases, place = [stored for stored in files.values() if stored is not None], place.at(folder)
    if not files:
        step = "Name a folder that `bench` wrote."
        place.fault("the folder", "without a case", f"{CASES}/<series>/<case>.json", step)
    for name, check in ((PAIRS, _check_pairs), (PLAN, _check_plan)):
        if (folder / name).is_file():
            with place.at(folder / name).as_far_as_possible() as file:
                check(file, read_json(folder / name), cases)
    ids = [stored.case_id for stored in cases]
    for case_id in sorted({*ids}):
        place.same(f"the number of files of {case_id}", ids.count(case_id), 1)
        if case_id.endswith(REPEAT) and case_id.removesuffix(REPEAT) not in ids:
            place.fault(f"the case that {case_id} repeats", "missing", "stored too")
    ran = [stored for stored in cases if any(run.outcome != "skipped" for run in stored.runs)]
    if silent := [stored for stored in ran if not stored.ended_because]:
        got = f"missing in {len(silent)} of {counted(len(cases), 'case')}"
        place.fault("the reason why no further round ran", got, "given in each (ended_because)", OR_LIST)
    are_whole = {
        path: stored and all(run.counts == run.is_measured for run in stored.runs) for path, stored in files.items()
    }
    return StoredSet(folder, cases, [place.at(path).where for path, is_whole in are_whole.items() if not is_whole])


# --- one case ---


def read_case(place: Place, path: Path, set_name: str = "") -> StoredCase | None:
    """Return the case of a file, with everything noted that differs in it; None if it cannot be read."""
    try:
        document = read_json(path)
        stored = stored_case(document["labscale"], set_name)
    except NEVER_WRITTEN as error:
        fault = f"missing: {error}" if isinstance(error, LookupError) else error
        place.fault("the file", f"not valid ({fault})", "a stored case")
        return None
    with place.as_far_as_possible():
        _check_name(place, stored)
        for run in stored.runs:
            of_run = place.within(f"round {run.number}")
            run.is_measured = run.counts and has_samples(of_run, run)
            if run.is_measured == run.counts:
                check_run(of_run, run)
        _check_numbers(place, stored, document)
    return stored


def stored_case(stored: Json, set_name: str = "") -> StoredCase:
    """Return the case of a document and its runs. Raise LookupError, TypeError or ValueError for another shape."""
    if stored["schema_version"] != SCHEMA_VERSION:
        known = f"schema_version is {stored['schema_version']!r}, known is {SCHEMA_VERSION}"
        raise ValueError(f"{known}; the labscale of commit a230a9f6 reads 1 to 5")
    case, machines = stored["configuration"], stored["machines"]
    if wrong := [name for name in _SIZES if type(case[name]) is not int or not 0 < case[name] <= LARGEST]:
        raise ValueError(f"{wrong[0]} is {case[wrong[0]]!r}, expected a number above 0")
    runs = [Run(record, case, machines[record["machine"]], set_name) for record in stored["runs"]]
    if unknown := [run.outcome for run in runs if run.outcome not in OUTCOMES]:
        raise ValueError(f"outcome is {unknown[0]!r}, expected {' or '.join(OUTCOMES)}")
    numbers = [run.number for run in runs]
    if not runs or len({*numbers}) < len(numbers) or min(numbers) < 0:
        raise ValueError(f"runs are {numbers}; each may be there once, and a case that cannot run has a skipped one")
    return StoredCase(runs, stored["ended_because"])


def _check_name(place: Place, stored: StoredCase) -> None:
    """Check the file's place against the case id, the case id against the case, and that no round is left out."""
    run, case, case_id = stored.runs[0], stored.runs[0].case, stored.case_id
    folder = REPEATS if case_id.endswith(REPEAT) else ALONE if case_id.endswith(COPY) else CASES
    if not f"/{place.where}".endswith(f"/{folder}/{case_id}.json"):
        place.fault("the file's name", place.where, f"{folder}/{case_id}.json", "Rename the file.")
    match = _CASE_ID.fullmatch(case_id)
    if match is None:
        place.fault("case_id", case_id, "a series, a library, a stack and its sizes")
        return
    is_cold = case_id.removesuffix(COPY).removesuffix(REPEAT).endswith("-cold")
    for name, text in (*match.groupdict().items(), ("kernel_cache", "empty" if is_cold else "kept")):
        place.same(f"case.{name}, which its id says,", str(case[name]), text)
    environments = case["num_envs"] * (1 if run.is_pipeline else run.processes)
    place.same("num_envs times ranks", environments, case["num_envs_global"])
    lost = "Add the missing record, or say in the pull request why a round was left out."
    numbers = sorted(run.number for run in stored.runs)
    place.same("the numbers of the rounds", numbers, list(range(len(numbers))), lost)


def _check_numbers(place: Place, stored: StoredCase, document: Json) -> None:
    """Check what the document says of its runs, if all completed ones have samples."""
    completed = [run for run in stored.runs if run.counts]
    if not all(run.is_measured for run in completed):
        return
    first, times_s = next(iter(completed), stored.runs[0]), [run.iteration_s() for run in completed]
    frames, machine = first.frames if first.has_frames else None, first.machine
    extra = {
        "statistic": RULE,
        "runs": [run.number for run in completed],
        "frames_per_iteration": frames,
        "total_fps": frames and [frames / time_s for time_s in times_s],
    }
    commit = {"project": "labscale", "id": machine["git_commit"], "dirty": machine["git_dirty"]}
    place.same("commit_info", document["commit_info"], commit)
    for name, version in first.ranks[0]["settings"].items() if completed else ():
        if name in document["machine_info"]:
            place.same(f"machine_info.{name}", document["machine_info"][name], version)
    stats = [benchmark_stats(times_s)] if completed else []
    benchmarks = [{"param": stored.case_id, "extra_info": extra, "stats": own} for own in stats]
    place.same("benchmarks", document["benchmarks"], benchmarks, _STORE_ANEW)


def benchmark_stats(data: Sequence[float]) -> Json:
    """Return what pytest-benchmark stores of ``data``, which is not empty, but for its quartiles and outliers."""
    return {
        "data": list(data), "min": min(data), "max": max(data), "mean": fmean(data), "median": median(data),
        "stddev": stdev(data) if len(data) > 1 else 0, "rounds": len(data), "iterations": 1,
        "total": math.fsum(data), "ops": 1 / fmean(data),
    }  # fmt: skip


# --- beside the cases ---


def _check_pairs(place: Place, pairs: Any, cases: Sequence[StoredCase]) -> None:
    """Check our side of every pair, and the library's; upstream's own time was measured elsewhere."""
    runs = {(run.case_id, run.number): run for stored in cases for run in stored.runs if run.is_measured}
    for index, pair in enumerate(pairs):
        run = runs.get((pair["configuration_id"], pair["run"]))
        if run is None:
            what = f"[{index}]: round {pair['run']} of {pair['configuration_id']}"
            place.fault(what, "without a stored round", "a completed one")
            continue
        run.isaaclab_difference = pair["ours_s"] / pair["theirs_s"] - 1
        if pair.get("theirs_iterations_s") is not None:  # else of iterations that were chosen by another rule
            expected = dict(zip(("ours_s", "library_s"), run.clocks_s(), strict=True))
            place.same(f"[{index}]", {name: pair[name] for name in expected}, expected)
        place.between(f"[{index}].theirs_s", pair["theirs_s"], SHORTEST_S, run.wall_s)


def _check_plan(place: Place, plan: Any, cases: Sequence[StoredCase]) -> None:
    """Check cases and rounds against ``{"configurations": {id: runs}, "missing": {id: why}}``."""
    stored, planned, missing = {case.case_id: case for case in cases}, plan["configurations"], plan.get("missing", {})
    for case_id in sorted(stored.keys() - planned):
        place.fault(case_id, "stored", "not: the plan does not have it")
    for case_id in sorted(name for name in planned if not missing.get(name)):
        case = stored.get(case_id)
        if case is None:
            place.fault(case_id, "not stored", "stored, or under `missing` with why")
        elif len(case.runs) < planned[case_id] and case.ended_because in {None, ASKED}:
            got, expected = counted(len(case.runs), "round"), f"{planned[case_id]}, or why there are fewer"
            place.fault(f"rounds of {case_id}", got, expected)
