"""Rules over several runs: blocks, curves, one machine, evidence, copies, overlaps, the run log and the commits."""

import hashlib
import json
import math
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from reports.verification.finding import OR_LIST, RESTORE, RUN_AGAIN, Json, Place, counted
from reports.verification.hashes import RUN_LOG, read_bytes
from reports.verification.runs import REPEAT, Array, Columns, Run
from reports.verification.shape import LOG_LINE, parse_json
from reports.verification.stored import ASKED, Case

CLOCK_S: Final = 1.0  # a start is stored in whole seconds
TURN_SLACK_S: Final = 0.002  # the start of a window is stored to a millisecond; no turns overlapped until 2026-12
BLOCK_STARTS_S: Final = 10.0  # within which all runs of a block start: within 1 s until 2026-12
MIN_SAMPLES: Final = 4  # fewer can be alike by chance
DIGITS: Final = 6  # of a ratio of two samples, which are stored with 9
MIN_LENGTH: Final = 20  # iterations, to tell near copies from runs that are alike by nature
# The least of the correlations of collection and learning times, without trend and marks: at most 0.967 between two
# runs until 2026-12.
ALIKE: Final = 0.975
PROBES: Final = (0.4, 2.5)  # fastest core probe of a set over that of its env_check: 0.74 to 1.07 until 2026-12
FIRST: Final = "0" * 64  # what the first line of a log has in place of a hash
_OF_A_RUN: Final = {"seed", "cpus_allowed", "cores_numa_nodes", "gpu_numa_node"}  # settings that may change
_OF_A_CURVE: Final = (
    "iterations", "seed", "seed_per_run", "num_steps_per_env", "cpu_threads", "deterministic", "presets",
)  # fmt: skip
_OF_A_SIZE: Final = re.compile(r"minibatch_size|optimiser_steps|env\.scene\.terrain")  # what depends on the size
_PROBE: Final = re.compile(r"([1-9]\d*) µs at best")
_HASHED: Final = ("run", "outcome", "started_utc", "wall_time_s", "readings")  # of a run, in its line of the log
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


def check_set(place: Place, folder: Path, cases: Sequence[Case]) -> None:
    """Check the runs of one set together."""
    own, runs = place.at(folder), [run for case in cases for run in case]
    begun = [run for run in runs if run.has_begun]
    for rule in (_check_blocks, _check_alike, check_overlaps):
        with own.as_far_as_possible():
            rule(own, begun)
    _check_run_log(place.at(folder / RUN_LOG), folder, runs)


# --- blocks ---


def _check_blocks(place: Place, runs: Sequence[Run]) -> None:
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


def _check_alike(place: Place, runs: Sequence[Run]) -> None:
    """Check what has to be one in all runs of a case, of a curve, whose cases differ in size alone, and of a set."""
    kinds: dict[tuple[str, ...], set[str]] = defaultdict(set)
    probes_s: dict[float, list[float]] = defaultdict(list)
    for run in runs:
        for what, value in _alike(run):
            kinds[what].add(repr(value))
        checks = {check["name"]: check["found"] for check in run.machine["checks"]}
        if best := _PROBE.match(checks.get("core_speed", "")):
            columns = [columns.get("core_probe_time_s", np.zeros(0)) for columns in run.columns]
            probes_s[float(best[1])] += [probe_s for column in columns for probe_s in column[~np.isnan(column)]]
    _check_one(place, kinds)
    for best_us, own_s in probes_s.items():
        share = 1e6 * min(own_s, default=math.nan) / best_us
        place.between("its fastest core probe over that of env_check", share, *PROBES)


def _alike(run: Run) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what is one, in parts of its wording, with the value that it has here."""
    case, base, work = run.case, run.case_id.removesuffix(REPEAT), run.record["workload"] or {}
    variant = base.partition(f"-{case['nnodes']}x{case['nproc_per_node']}")[2]
    curve = f"{case['series']}/{case['rl_library']}-{case['stack']} on {case['device']}{variant}"
    yield from (((name, " of the case ", base), case[name]) for name in case if name != "configuration_id")
    yield from (((name, " of the curve ", curve), case[name]) for name in _OF_A_CURVE)
    if work:
        yield ("the number of names in the work of ", base), len(work)
    yield from (((name, " in the work of ", base), work[name]) for name in work)
    yield from (((name, " in the work of ", curve), work[name]) for name in work if not _OF_A_SIZE.search(name))
    asked = {f"versions.{package.partition('==')[0]}" for package in case["with_packages"]}
    for rank in run.ranks if run.counts else ():
        settings, of_rank = rank["settings"], f"rank {rank['rank']} of {run.case_id}"
        yield ("the number of settings of ", of_rank), len(settings)
        yield from (
            (("settings.", name, " of ", of_rank), settings[name]) for name in settings if name not in _OF_A_RUN
        )
        versions = [name for name in settings if name.startswith("versions.") and name not in asked]
        yield from (((name, " of its ranks"), settings[name]) for name in versions)


def _check_one(place: Place, values: Mapping[Any, set[Any]], next_step: str = RESTORE) -> None:
    for what, kinds in values.items():
        if len(kinds) > 1:
            place.fault("".join(what), " and ".join(sorted(map(str, kinds))), "one", next_step)


def check_published(place: Place, cases: Sequence[Case]) -> None:
    """Check what only a published set must be: of one machine, with all evidence, and with the rounds asked for."""
    runs = [run for case in cases for run in case if run.has_begun]
    kinds: dict[str, set[Any]] = defaultdict(set)
    for machine in (run.machine for run in runs):
        kinds["kind of GPU"].add(", ".join(sorted({gpu["name"] for gpu in machine["gpus"]})))
        kinds["number of GPUs"].add(len(machine["gpus"]))
        for name in ("driver_version", "kernel", "cpu_model", "num_cpus"):
            kinds[name].add(machine.get(name))
    kinds = {f"the {name} of its rounds": values for name, values in kinds.items()}
    kinds[f"rounds of cases with {ASKED!r}"] = {len(case) for case in cases if case[0].ended_because == ASKED}
    _check_one(place, kinds, OR_LIST)
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
    long: dict[int, list[tuple[Run, str, Columns]]] = defaultdict(list)
    for run in runs:
        if (first := seen.setdefault((run.began_s, run.wall_s), run.name)) != run.name:
            place.fault(f"the start and the time of {run.name}", f"those of {first}", "its own", RUN_AGAIN)
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
        every = [columns for _, _, columns in ranks]
        alike = np.minimum(*(_correlations(every, part) for part in ("collection_time_s", "learning_time_s")))
        for i, j in np.argwhere(np.triu(alike > ALIKE, 1)):
            (first_run, first, _), (run, name, _) = ranks[i], ranks[j]
            if first_run is not run:
                got = f"varying as those of {first} do (r = {alike[i, j]:.3f})"
                place.fault(f"the times of {name}", got, expected, RUN_AGAIN)


def _correlations(ranks: Sequence[Columns], part: str) -> Array:
    """Return how alike the times of ranks vary around their smooth course; the first iterations and marks are slow."""
    rest = []
    for columns in ranks:
        times_s, marks = columns[part][3:], columns.get("marked", np.zeros(len(columns[part])))[3:]
        course = np.column_stack([np.vander(np.linspace(-1, 1, len(times_s)), 4), marks])
        logs = np.log(np.maximum(times_s, 1e-9))
        left = logs - course @ np.linalg.lstsq(course, logs, rcond=None)[0]
        rest.append(left / max(float(np.linalg.norm(left)), 1e-12))
    alike: Array = np.array(rest) @ np.array(rest).T
    return alike


def check_overlaps(place: Place, runs: Sequence[Run], *, between_sets: bool = False) -> None:
    """Check that runs of one host that ran at the same time say so; one finding a host. A case never runs twice."""
    silent: dict[str, list[tuple[Run, Run]]] = defaultdict(list)
    ordered = sorted(runs, key=lambda run: (run.began_s, run.ended_s))
    for index, run in enumerate(ordered):
        host = run.machine["host_label"]
        for other in (other for other in ordered[index + 1 :] if other.began_s < run.ended_s - CLOCK_S):
            is_short, is_same = other.wall_s <= CLOCK_S, (run.set_name != other.set_name) == between_sets
            if is_short or not is_same or other.machine["host_label"] != host or (between_sets and not host):
                continue
            if run.case_id == other.case_id and not between_sets:
                place.fault(other.name, f"at the same time as {run.name}", "after it: a case runs once at a time")
            elif not (run.block and other.block):
                silent[host or "its host"].append((run, other))
    for host, pairs in silent.items():
        sets = f" of {len({run.set_name for pair in pairs for run in pair})} sets" if between_sets else ""
        got = f"shared by {counted(len(pairs), 'pair')} of rounds{sets} that do not say so, as "
        got += " and ".join(run.name for run in pairs[0])
        place.fault(f"the time on {host!r}", got, "one round's at a time, or rounds in turns", OR_LIST)


# --- when runs ran ---


def _check_run_log(place: Place, folder: Path, runs: Sequence[Run]) -> None:
    """Check the log of a set against its runs; sets from before there was a log have none.

    `bench` wrote a line as each run ended, with the hash of the line before. Whoever leaves a run out, exchanges one or
    moves one has to write all later lines anew, and then the last hash is no longer the one that was witnessed.
    """
    if not (folder / RUN_LOG).is_file():
        return
    before, logged = FIRST, dict[str, Json]()
    for number, text in enumerate(read_bytes(folder / RUN_LOG).splitlines(keepends=True), start=1):
        own = place.within(f"line {number}")
        if (line := parse_json(own, text, LOG_LINE)) is None:
            return
        own.same("the hash of the line before", line["before"], before)
        before, earlier = hashlib.sha256(text).hexdigest(), logged.get(line["run"])
        if earlier and earlier["outcome"] == "completed" and earlier["run_sha256"] != line["run_sha256"]:
            own.fault(line["run"], "run again", "not: it had completed", OR_LIST)
        logged[line["run"]] = line
    stored = {f"{run.case_id}/r{run.number}": run for run in runs if run.outcome != "skipped"}
    for name in sorted(stored.keys() - logged):
        step = "Run `nox -s store` on the campaign's folder, which appends it as late; or take the run out."
        place.fault(name, "stored without a line", "one", step)
    for name in sorted(logged.keys() - stored):
        step = "Store the run with the others: none is left out of what is published."
        place.fault(name, "not stored", "stored", step)
    for name in sorted(stored.keys() & logged):
        run = stored[name]
        content = {field: run.record[field] for field in _HASHED}
        content |= {"configuration_id": run.case_id, "samples": [rank["samples"] for rank in run.ranks]}
        text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        place.same(f"{name}: its outcome", run.outcome, logged[name]["outcome"])
        place.same(f"{name}: the hash of its samples", hashlib.sha256(text).hexdigest(), logged[name]["run_sha256"])


def check_commits(place: Place, version: Path, runs: Sequence[Run]) -> None:
    """Check each commit once, by git, unless the folder is outside of labscale's repository or in a shallow copy."""

    def git(arguments: Sequence[str], text: str = "") -> str:
        command = ["git", "-C", str(version), *arguments]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=True).stdout

    first: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run.began_s):
        first.setdefault(run.machine["git_commit"], run)
    named = [commit for commit in first if _COMMIT.fullmatch(commit)]
    arguments = ["rev-list", "--no-walk=unsorted", "--ignore-missing", "--timestamp", "--stdin"]
    try:
        is_whole = git(["rev-parse", "--is-shallow-repository"]).strip() == "false"
        lines = git(arguments, "".join(f"{commit}\n" for commit in named)).splitlines() if is_whole else []
    except (OSError, subprocess.SubprocessError):
        return
    times_s = {commit: float(time_s) for time_s, commit in map(str.split, lines)}
    for commit in named if times_s else ():
        name, early_s = first[commit].name, times_s.get(commit, -math.inf) - first[commit].began_s
        if commit not in times_s:
            got = f"{commit}, which the history does not have"
            place.fault(f"{name}: its commit", got, "a commit of labscale", OR_LIST)
        elif early_s > 0:
            place.fault(f"{name}: its start", f"{early_s:.0f} s before its commit {commit}", "after it")
