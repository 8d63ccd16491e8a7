"""Reads the cases of a set, and checks each file alone: format, name, plan, and its numbers against its samples."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Final

from reports.verification.finding import OR_LIST, Json, Place
from reports.verification.hashes import PAIRS, case_paths
from reports.verification.runs import ASKED, COPY, REPEAT, Run
from reports.verification.samples import check_run
from suite.campaign.runs.upstream import Pair, read_pairs
from suite.files.input_file import read_input
from suite.files.wording import counted
from suite.records.folders import ALONE, CASES, PLAN_FILE, TWINS, StoredPlan, read_plan
from suite.records.validation import case_of
from suite.statistics.reduce import ROUND_STATISTIC

_STORE_ANEW: Final = "Store the case anew from the records of its rounds, with `nox -s bench` in its folder."

type Case = Sequence[Run]  # all runs of a configuration, at least one, each number once


def read_set(place: Place) -> tuple[list[Run], list[str]]:
    """Check each file of a set; return its runs, and the files whose runs are too wrong for figures."""
    cases, rejected, folder = list[Case](), list[str](), place.path
    for path in case_paths(folder):
        runs = read_case(own := place.at(path), folder)
        cases += [runs] if runs else []
        rejected += [own.where] if not runs or any(run.counts and not run.is_measured for run in runs) else []
    with place.at(folder / PAIRS).as_far_as_possible() as own:
        _check_pairs(own, read_pairs(own.path), cases)
    with place.at(folder / PLAN_FILE).as_far_as_possible() as own:
        if (plan := read_plan(folder)) is not None:
            _check_plan(own, plan, cases)
    ran = [runs for runs in cases if any(run.outcome != "skipped" for run in runs)]
    if silent := [runs for runs in ran if not runs[0].ended_because]:
        got = f"missing in {len(silent)} of {counted(len(cases), 'case')}"
        place.fault("the reason why no further round ran", got, "given in each (ended_because)", OR_LIST)
    return [run for runs in cases for run in runs], rejected


def read_case(place: Place, folder: Path) -> Case:
    """Return the runs of a file of a set, with everything noted that differs in it; none if no report can read it."""
    runs: Case = ()
    with place.as_far_as_possible():
        content = read_input(place.path)
        case_of(content, place.path, next_step="")
        document = json.loads(content)
        runs = [Run(record, document["labscale"], folder) for record in document["labscale"]["runs"]]
        for run in runs:
            check_run(place.within(f"round {run.number}"), run)
        _check_name(place, runs)
        _check_numbers(place, runs, document)
    return runs


def _check_name(place: Place, runs: Case) -> None:
    """Check the file's place against the case id, the case id against the case, and that no round is left out."""
    case, case_id = runs[0].case, runs[0].case_id
    folder = TWINS if case_id.endswith(REPEAT) else ALONE if case_id.endswith(COPY) else CASES
    own = place.at(runs[0].folder / folder / f"{case_id}.json").where
    place.same("the file's name", place.where, own, "Rename the file.")
    begin = f"{case['series']}/{case['rl_library']}-{case['stack']}{'-cpu' if case['device'] == 'cpu' else ''}"
    begin += f"-n{case['num_envs_global']}-{case['nnodes']}x{case['nproc_per_node']}"
    own_id = case_id.removesuffix(COPY).removesuffix(REPEAT)
    ends = {"-cold": case["kernel_cache"] == "empty", "-learning": case["only_learning"]}
    if not f"{case_id}-".startswith(f"{begin}-") or any(own_id.endswith(end) != ends[end] for end in ends):
        expected = f"{begin}, as its case is{''.join(f', and {end}' for end in ends if ends[end])}"
        place.fault("labscale.configuration.configuration_id", case_id, expected)
    environments = case["num_envs"] * (1 if runs[0].is_pipeline else runs[0].processes)
    place.same("num_envs times ranks", environments, case["num_envs_global"])
    lost = "Add the missing record, or say in the pull request why a round was left out."
    place.same("the numbers of the rounds", sorted(run.number for run in runs), list(range(len(runs))), lost)


def _check_numbers(place: Place, runs: Case, document: Json) -> None:
    """Check what the document says of its runs, if all completed ones have samples."""
    completed = [run for run in runs if run.counts]
    if not all(run.is_measured for run in completed):
        return
    times_s, (first, *_) = [run.iteration_s() for run in completed], (*completed, *runs)
    frames = first.frames if first.has_frames else None
    extra = {
        "statistic": ROUND_STATISTIC,
        "runs": [run.number for run in completed],
        "frames_per_iteration": frames,
        "total_fps": frames and [frames / time_s for time_s in times_s],
    }
    commit = {"project": "labscale", "id": first.machine["git_commit"], "dirty": first.machine["git_dirty"]}
    place.same("commit_info", document["commit_info"], commit)
    settings = first.ranks[0]["settings"] if completed else {}
    versions = {name: version for name, version in settings.items() if name in document["machine_info"]}
    place.same("machine_info", document["machine_info"], versions)
    of_runs = {"param": first.case_id, "extra_info": extra}
    benchmarks = [{**of_runs, "stats": benchmark_stats(times_s)}] if completed else []
    place.same("benchmarks", document["benchmarks"], benchmarks, _STORE_ANEW)


def benchmark_stats(data: Sequence[float]) -> Json:
    """Return what pytest-benchmark stores of ``data``, which is not empty, but for its quartiles and outliers."""
    return {
        "data": list(data), "min": min(data), "max": max(data), "mean": fmean(data), "median": median(data),
        "stddev": stdev(data) if len(data) > 1 else 0, "rounds": len(data), "iterations": 1,
        "total": math.fsum(data), "ops": 1 / fmean(data),
    }  # fmt: skip


# --- beside the cases ---


def _check_pairs(place: Place, pairs: Sequence[Pair], cases: Sequence[Case]) -> None:
    """Check our side of every pair with Isaac Lab's own benchmark; its time was measured elsewhere."""
    stored = {(run.case_id, run.number): run for runs in cases for run in runs if run.is_measured}
    for index, pair in enumerate(pairs):
        if (run := stored.get((pair.case_id, pair.round))) is None:
            what = f"[{index}]: round {pair.round} of {pair.case_id}"
            place.fault(what, "without a stored round", "a completed one")
            continue
        run.isaaclab_difference = pair.difference
        if pair.theirs_iterations_s is not None:  # else of iterations that were chosen by another rule
            ours_s, library_s = run.clocks_s()
            place.same(f"[{index}].ours_s", pair.ours_s, ours_s)
            place.same(f"[{index}].library_s", pair.library_s, library_s)
        place.between(f"[{index}].theirs_s", pair.theirs_s, 0, run.wall_s)


def _check_plan(place: Place, plan: StoredPlan, cases: Sequence[Case]) -> None:
    """Check that all cases and rounds that were planned are stored, and no other case."""
    stored, planned = {runs[0].case_id: runs for runs in cases}, plan["configurations"]
    for case_id in sorted(stored.keys() - planned):
        place.fault(case_id, "stored", "not: the plan does not have it")
    for case_id in sorted(name for name in planned if not plan.get("missing", {}).get(name)):
        if (runs := stored.get(case_id)) is None:
            place.fault(case_id, "not stored", "stored, or under `missing` with why")
        elif runs[0].ended_because == ASKED or (len(runs) < planned[case_id] and not runs[0].ended_because):
            place.same(f"the number of rounds of {case_id}", len(runs), planned[case_id])
