"""Rules over several runs: of a set, and of all sets of a folder. ``place`` is that set or folder.

The run log is compared with every run, the other rules are of those that have begun.
"""

import hashlib
import json
import math
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypedDict

import numpy as np
from pydantic import TypeAdapter

from reports.verification.finding import OR_LIST, RESTORE, RUN_AGAIN, Place
from reports.verification.runs import ASKED, REPEAT, Array, Columns, Run
from suite.files.input_file import read_input
from suite.files.json_file import read_json_lines
from suite.files.wording import counted

CLOCK_S: Final = 1.0  # a start is stored in whole seconds
TURN_SLACK_S: Final = 0.002  # the start of a window is stored to a millisecond; no turns overlapped until 2026-12
BLOCK_STARTS_S: Final = 10.0  # within which all runs of a block start: within 1 s until 2026-12
MIN_SAMPLES: Final = 4  # fewer can be alike by chance
DIGITS: Final = 6  # of a ratio of two samples, which are stored with 9
MIN_LENGTH: Final = 20  # iterations, to tell near copies from runs that are alike by nature
# The least of the correlations of collection and learning times, without trend and marks: at most 0.967 between two
# runs until 2026-12.
ALIKE: Final = 0.975
SLOWEST: Final = 2.5  # fastest core probe of all runs of a set over that of env_check: at most 1.17 until 2026-12
FIRST: Final = "0" * 64  # what the first line of a log has in place of a hash
_OF_A_RUN: Final = {"seed", "cpus_allowed", "cores_numa_nodes", "gpu_numa_node"}  # settings that may change
_OF_A_CURVE: Final = (
    "iterations", "seed", "seed_per_run", "num_steps_per_env", "cpu_threads", "deterministic", "presets",
)  # fmt: skip
_OF_A_SIZE: Final = re.compile(r"minibatch_size|optimiser_steps|env\.scene\.terrain")  # what depends on the size
_OF_AN_EPISODE: Final = ("env.sim.dt", "env.decimation", "env.episode_length_s")  # settings
_HASHED: Final = ("run", "outcome", "started_utc", "wall_time_s", "readings")  # of a run, in its line of the log
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


class _Line(TypedDict):
    """What is read of a line of the log of runs."""

    before: str
    run: str
    outcome: str
    run_sha256: str


_LINE: Final = TypeAdapter(_Line)


# --- blocks ---


def check_blocks(place: Place, runs: Sequence[Run]) -> None:
    """Check that runs of a block name each other, are all stored, start together, and take turns that never overlap."""
    there, lost, turns = {(run.case_id, run.number): run for run in runs}, [], defaultdict[Any, list[Any]](list)
    for run in runs:
        turns[run.number, run.block] += [(*turn, run.name) for turn in run.turns]
        neighbours = {name: there.get((name, run.number)) for name in sorted(run.block - {run.case_id})}
        if missing := [name for name, other in neighbours.items() if other is None]:
            lost.append(f"{', '.join(missing)} beside {run.case_id} round {run.number}")
        for other in filter(None, neighbours.values()):
            if other.block != run.block:
                place.fault(f"the neighbours of {run.name}", f"not those of {other.name}", "the same, in one block")
            apart_s = abs(other.began_s - run.began_s)
            place.between(f"the start of {run.name} beside {other.name}, in s,", apart_s, 0, BLOCK_STARTS_S)
    if lost:
        place.fault("neighbours in turns", f"missing: {'; '.join(lost)}", "stored too", OR_LIST)
    for of_block in turns.values():
        overlaps = [(a, b) for a, b in pairwise(sorted(of_block)) if a[1] > b[0] + TURN_SLACK_S]
        for (_, end_s, name), (start_s, _, other) in overlaps[:1]:
            place.fault(f"a turn of {name}", f"{end_s - start_s:.3f} s in a turn of {other}", "alone")


# --- one work, one machine ---


def check_alike(place: Place, runs: Sequence[Run]) -> None:
    """Check what has to be one in all runs of a case, of a curve, whose cases differ in size alone, and of a set."""
    _check_one(place, (same for run in runs for same in _alike(run)), RESTORE)


def check_one_machine(place: Place, runs: Sequence[Run]) -> None:
    """Check that runs that are published together are of one machine, and as many of each case as were asked for.

    The plan alone does not say so: whoever leaves out a slow round of a case changes its number there too.
    """
    numbers = Counter(run.case_id for run in runs if run.ended_because == ASKED).values()
    values: list[tuple[str, Any]] = [(f"rounds of cases with {ASKED!r}", number) for number in numbers]
    for machine in (run.machine for run in runs):
        values.append(("the kind of GPU of its rounds", ", ".join(sorted({gpu["name"] for gpu in machine["gpus"]}))))
        values.append(("the number of GPUs of its rounds", len(machine["gpus"])))
        names = ("driver_version", "kernel", "cpu_model", "num_cpus")
        values += [(f"the {name} of its rounds", machine[name]) for name in names]
    _check_one(place, values, OR_LIST)


def _check_one(place: Place, values: Iterable[tuple[str, Any]], next_step: str) -> None:
    """Check that what has one name has one value."""
    kinds = defaultdict[str, set[str]](set)
    for what, value in values:
        kinds[what].add(repr(value))
    for what, of_one in kinds.items():
        if len(of_one) > 1:
            place.fault(what, " and ".join(sorted(of_one)), "one", next_step)


def _alike(run: Run) -> Iterator[tuple[str, Any]]:
    """Yield what is one, with the value that it has here."""
    case, base, work = run.case, run.case_id.removesuffix(REPEAT), run.record["workload"] or {}
    variant = base.partition(f"-{case['nnodes']}x{case['nproc_per_node']}")[2]
    curve = f"{case['series']}/{case['rl_library']}-{case['stack']} on {case['device']}{variant}"
    yield from ((f"{name} of the case {base}", case[name]) for name in case if name != "configuration_id")
    yield from ((f"{name} of the curve {curve}", case[name]) for name in _OF_A_CURVE)
    yield "only_learning of its runs", case["only_learning"]
    if work:
        yield f"the number of names in the work of {base}", len(work)
    yield from ((f"{name} in the work of {base}", work[name]) for name in work)
    yield from ((f"{name} in the work of {curve}", work[name]) for name in work if not _OF_A_SIZE.search(name))
    asked = {f"versions.{package.partition('==')[0]}" for package in case["with_packages"]}
    for rank in run.ranks if run.counts else ():
        settings, of_rank = rank["settings"], f"rank {rank['rank']} of {run.case_id}"
        yield f"the number of settings of {of_rank}", len(settings)
        yield from ((f"settings.{name} of {of_rank}", settings[name]) for name in settings if name not in _OF_A_RUN)
        versions = [name for name in settings if name.startswith("versions.") and name not in asked]
        yield from ((f"{name} of its ranks", settings[name]) for name in versions)


def check_episodes(place: Place, runs: Sequence[Run]) -> None:
    """Check that an episode of a task is as long in all sets: its length decides when a run has a reward."""
    values = (
        (f"{name} of {run.case['task']} on {run.case['stack']}", (run.record["workload"] or {}).get(name))
        for run in runs
        for name in _OF_AN_EPISODE
        if not any(override.startswith(f"{name}=") for override in run.case["overrides"])
    )
    _check_one(place, ((what, value) for what, value in values if value is not None), OR_LIST)


def check_probes(place: Place, runs: Sequence[Run]) -> None:
    """Check that some run of a set had a core about as fast as env_check; a single run may have a slow one."""
    ratios = [run.probe_ratio() for run in runs if run.is_measured]
    fastest = np.fmin.reduce(ratios, initial=math.nan)
    place.between("its fastest core probe over that of env_check", fastest, 0, SLOWEST)


def check_evidence(place: Place, runs: Sequence[Run]) -> None:
    """Check that what shows the work and the machine of a completed run is published with it."""
    completed = [run for run in runs if run.counts]
    has_readings = any(run.readings for run in completed)
    missing = {
        "the fingerprint of the work": [not run.record["workload"] for run in completed],
        "a check of the work": [not all(rank["validity"] for rank in run.ranks) for run in completed],
        "env_check of the machine": [not run.machine["checks"] for run in completed],
        "readings of the sampler": [has_readings and run.telemetry and not run.readings for run in completed],
    }
    for what, are_missing in missing.items():
        if number := sum(map(bool, are_missing)):
            got = f"missing in {number} of {counted(len(completed), 'completed round')}"
            place.fault(what, got, "in each of them", OR_LIST)


# --- copies and overlaps ---


def check_copies(place: Place, runs: Sequence[Run]) -> None:
    """Check that no two ranks have the same times, in any order and up to a factor, nor times that vary alike."""
    expected, seen = "its own: no two processes take equal times", dict[Any, str]()
    long = defaultdict[int, list[tuple[Run, str, Columns]]](list)
    for run in runs:
        for number, columns in enumerate(run.columns if run.is_measured else ()):
            name, times_s = f"{run.name}, rank {number}", columns["iteration_time_s"]
            if len(times_s) >= MIN_SAMPLES and times_s.min() < times_s.max():
                ratios = tuple(np.sort(times_s / np.median(times_s)).round(DIGITS))
                if (first := seen.setdefault(ratios, name)) != name:
                    got = f"those of {first}, up to order and a factor"
                    place.fault(f"the times of {name}", got, expected, RUN_AGAIN)
            if len(times_s) >= MIN_LENGTH and run.case["workload"] == "train":
                long[len(times_s)].append((run, name, columns))
    for ranks in long.values():
        parts = [_residuals(ranks, part) for part in ("collection_time_s", "learning_time_s")]
        alike = np.minimum(*(part @ part.T for part in parts))  # the correlations
        for i, j in np.argwhere(np.triu(alike > ALIKE, 1)):
            (first_run, first, _), (run, name, _) = ranks[i], ranks[j]
            if first_run is not run:
                got = f"varying as those of {first} do (r = {alike[i, j]:.3f})"
                place.fault(f"the times of {name}", got, expected, RUN_AGAIN)


def _residuals(ranks: Sequence[tuple[Run, str, Columns]], part: str) -> Array:
    """Return how the times of ranks vary around their smooth course; the first iterations and marks are slow."""
    rest = []
    for _, _, columns in ranks:
        times_s, marks = columns[part][3:], columns.get("marked", np.zeros(len(columns[part])))[3:]
        course = np.column_stack([np.vander(np.linspace(-1, 1, len(times_s)), 4), marks])
        logs = np.log(np.maximum(times_s, 1e-9))
        left = logs - course @ np.linalg.lstsq(course, logs, rcond=None)[0]
        rest.append(left / max(float(np.linalg.norm(left)), 1e-12))
    return np.array(rest)


def check_learned(place: Place, runs: Sequence[Run]) -> None:
    """Check that no two seeds led to the same rewards or parameters."""
    learned = dict[Any, Run]()
    for run in (run for run in runs if run.is_measured):
        rewards = run.columns[0].get("reward_mean", np.zeros(0))
        curve = rewards.tobytes() if len(np.unique(rewards, equal_nan=True)) > MIN_SAMPLES else None
        for what, result in (("rewards", curve), ("parameters", run.ranks[0]["parameters_sha256"])):
            if result and (other := learned.setdefault(result, run)).seed != run.seed:
                place.fault(
                    f"the {what} of {run.name}", f"those of {other.name}, of another seed", "its own", RUN_AGAIN
                )


def check_overlaps(place: Place, runs: Sequence[Run]) -> None:
    """Check that runs of one host that ran at the same time say so; one finding a host. A case never runs twice."""
    silent = defaultdict[tuple[bool, Path, str], list[tuple[Run, Run]]](list)  # whether of one set, its folder, host
    ordered = sorted(runs, key=lambda run: (run.began_s, run.ended_s))
    for index, run in enumerate(ordered):
        host = run.machine["host_label"]
        for other in (other for other in ordered[index + 1 :] if other.began_s < run.ended_s - CLOCK_S):
            is_one_set = run.folder == other.folder
            if other.wall_s <= CLOCK_S or other.machine["host_label"] != host or not (is_one_set or host):
                continue
            if is_one_set and run.case_id == other.case_id:
                got, expected = f"at the same time as {run.name}", "after it: a case runs once at a time"
                place.at(run.folder).fault(other.name, got, expected)
            elif not ((run.block and other.block) or (run.case["only_learning"] and other.case["only_learning"])):
                silent[is_one_set, run.folder if is_one_set else place.path, host or "its host"].append((run, other))
    for (is_one_set, folder, host), pairs in silent.items():
        sets = "" if is_one_set else f" of {len({run.folder for pair in pairs for run in pair})} sets"
        got = f"shared by {counted(len(pairs), 'pair')} of rounds{sets} that do not say so, as "
        got += " and ".join(run.name for run in pairs[0])
        expected = "one round's at a time, or rounds in turns"
        place.at(folder).fault(f"the time on {host!r}", got, expected, OR_LIST)


# --- when runs ran ---


def check_run_log(place: Place, runs: Sequence[Run]) -> None:
    """Check the log at ``place`` against the runs of its set; sets from before there was a log have none.

    A line has the hash of the one before, so whoever leaves out, exchanges or moves a run changes the last hash too.
    """
    before, logged = FIRST, dict[str, _Line]()
    if not place.path.is_file():
        return
    lines, corrupt = read_json_lines(place.path, _LINE)
    texts = read_input(place.path).splitlines(keepends=True)
    if corrupt or len(lines) < len(texts):  # else the last line is cut off
        place.fault("the file", corrupt or f"cut off in line {len(texts)}", "as labscale writes it")
        return
    for number, (text, line) in enumerate(zip(texts, lines, strict=True), start=1):
        own = place.within(f"line {number}")
        own.same("the hash of the line before", line["before"], before)
        before, earlier = hashlib.sha256(text).hexdigest(), logged.get(line["run"])
        if earlier and earlier["outcome"] == "completed" and earlier["run_sha256"] != line["run_sha256"]:
            own.fault(line["run"], "run again", "not: it had completed", OR_LIST)
        logged[line["run"]] = line
    stored = {f"{run.case_id}/r{run.number}": run for run in runs if run.outcome != "skipped"}
    for name in sorted({*stored, *logged}):
        if name not in logged:
            step = "Run `nox -s store` on the campaign's folder, which appends it as late; or take the run out."
            place.fault(name, "stored without a line", "one", step)
        elif name not in stored:
            step = "Store the run with the others: none is left out of what is published."
            place.fault(name, "not stored", "stored", step)
        else:
            run = stored[name]
            content = {field: run.record[field] for field in _HASHED}
            content |= {"configuration_id": run.case_id, "samples": [rank["samples"] for rank in run.ranks]}
            text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
            place.same(f"{name}: its outcome", run.outcome, logged[name]["outcome"])
            place.same(f"{name}: the hash of its samples", hashlib.sha256(text).hexdigest(), logged[name]["run_sha256"])


def check_commits(place: Place, runs: Sequence[Run]) -> None:
    """Check each commit once, by git, unless the folder is outside of labscale's repository or in a shallow copy."""

    def git(arguments: Sequence[str], text: str = "") -> str:
        command = ["git", "-C", str(place.path), *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=True).stdout

    ordered = sorted(runs, key=lambda run: run.began_s, reverse=True)
    first = {run.machine["git_commit"]: run for run in ordered if _COMMIT.fullmatch(run.machine["git_commit"])}
    arguments = ["rev-list", "--no-walk=unsorted", "--ignore-missing", "--timestamp", "--stdin"]
    try:
        is_whole = git(["rev-parse", "--is-shallow-repository"]).strip() == "false"
        lines = git(arguments, "".join(f"{commit}\n" for commit in first)).splitlines() if is_whole else []
    except (OSError, subprocess.SubprocessError):
        return
    times_s = {commit: float(time_s) for time_s, commit in map(str.split, lines)}
    for commit, run in first.items() if times_s else ():
        if commit not in times_s:
            got = f"{commit}, which the history does not have"
            place.fault(f"{run.name}: its commit", got, "a commit of labscale", OR_LIST)
        elif (early_s := times_s[commit] - run.began_s) > 0:
            place.fault(f"{run.name}: its start", f"{early_s:.0f} s before its commit {commit}", "after it")
