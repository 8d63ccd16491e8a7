"""Rules over several runs: blocks, copies, overlaps, one machine, one curve, evidence. All share one table of runs."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import numpy as np

from reports.verification.finding import OR_LIST, RUN_AGAIN, Finding, Json, Place, counted
from reports.verification.samples.rank import Array, Columns, columns_of, pieces_of
from reports.verification.samples.run import counts
from reports.verification.samples.stored import ASKED, TWIN_SUFFIX, StoredSet
from reports.verification.samples.telemetry import zero_unix_s

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
_OF_A_CURVE: Final = (
    "iterations", "seed", "seed_per_round", "num_steps_per_env", "cpu_threads", "deterministic", "presets",
)  # fmt: skip
_OF_A_SIZE: Final = re.compile(r"minibatch_size|optimiser_steps|env\.scene\.terrain")  # what depends on the size
_PROBE: Final = re.compile(r"(\d+) µs at best")


@dataclass(frozen=True, kw_only=True)
class TimedRun:
    """One run that began. ``turns`` are on the clock of the day, of a completed run in turns with telemetry."""

    set_name: str
    case_id: str
    number: int
    host: str | None
    began_s: float
    ended_s: float
    beside: frozenset[str]  # its neighbours and itself; empty if it ran alone
    turns: tuple[tuple[float, float], ...]
    record: Json

    @property
    def name(self) -> str:
        return f"{self.set_name}: {self.case_id} round {self.number}"


def table_of(one: StoredSet) -> list[TimedRun]:
    """Return every run of a set that began."""
    records = [record for stored in one.cases for record in stored.rounds if record["started_utc"] is not None]
    return [_run(one.folder.name, record) for record in records]


def _run(set_name: str, record: Json) -> TimedRun:
    case_id, began_s = record["case"]["case_id"], datetime.fromisoformat(record["started_utc"]).timestamp()
    turns: list[tuple[float, float]] = []
    if counts(record) and record["turns"] and record["telemetry"]:
        columns, zero_s = columns_of(record["ranks"][0]), zero_unix_s(record)
        starts_s, ends_s = zero_s + columns["start_s"], zero_s + columns["start_s"] + columns["iteration_time_s"]
        turns = [(float(starts_s[first]), float(ends_s[last])) for first, last in pieces_of(columns)[1:]]
    return TimedRun(
        set_name=set_name,
        case_id=case_id,
        number=record["round"],
        host=record["environment"]["host_label"],
        began_s=began_s,
        ended_s=began_s + (record["wall_time_s"] or 0.0),
        beside=frozenset([case_id, *record["turns"]["beside"]] if record["turns"] else ()),
        turns=tuple(turns),
        record=record,
    )


def check_set(name: str, runs: Sequence[TimedRun]) -> list[Finding]:
    """Check the runs of one set together."""
    place = Place(where=name)
    for rule in (_check_blocks, _check_turns, _check_curves, _check_packages, _check_probes):
        with place.as_far_as_possible():
            rule(place, runs)
    return [*place.findings, *check_overlaps(name, runs, between_sets=False)]


def check_published(one: StoredSet, runs: Sequence[TimedRun]) -> list[Finding]:
    """Check what only a published set must be: of one machine, with all evidence, and with the rounds asked for."""
    place = Place(where=one.name)
    with place.as_far_as_possible():
        _check_environment(place, runs)
        _check_evidence(place, [run.record for run in runs if counts(run.record)])
        asked = {len(stored.rounds) for stored in one.cases if stored.ended_because == ASKED}
        if len(asked) > 1:
            place.fault(f"rounds of cases with {ASKED!r}", " and ".join(map(str, sorted(asked))), "one number", OR_LIST)
    return place.findings


# --- blocks ---


def _check_blocks(place: Place, runs: Sequence[TimedRun]) -> None:
    """Check that the runs of a block name each other, are all stored, and start together."""
    there, lost = {(run.case_id, run.number): run for run in runs}, []
    for run in runs:
        neighbours = {name: there.get((name, run.number)) for name in sorted(run.beside - {run.case_id})}
        if missing := [name for name, other in neighbours.items() if other is None]:
            lost.append(f"{', '.join(missing)} beside {run.case_id} round {run.number}")
        for other in filter(None, neighbours.values()):
            if other.beside != run.beside:
                place.fault(f"the neighbours of {run.name}", f"not those of {other.name}", "the same, in one block")
            apart_s = abs(other.began_s - run.began_s)
            place.between(f"the start of {run.name} beside {other.name}", apart_s, 0, BLOCK_STARTS_S, "s")
    if lost:
        place.fault("neighbours in turns", f"missing: {'; '.join(lost)}", "stored too", OR_LIST)


def _check_turns(place: Place, runs: Sequence[TimedRun]) -> None:
    """Check that of each block one run at a time had a turn; one finding a block."""
    blocks: dict[Any, list[tuple[float, float, str]]] = defaultdict(list)
    for run in runs:
        blocks[run.number, run.beside] += [(*turn, run.name) for turn in run.turns]
    for turns in blocks.values():
        for (_, end_s, name), (start_s, _, other) in pairwise(sorted(turns)):
            if end_s > start_s + TURN_SLACK_S:
                place.fault(f"a turn of {name}", f"{end_s - start_s:.3f} s in a turn of {other}", "alone")
                break


# --- one work, one machine ---


def _check_curves(place: Place, runs: Sequence[TimedRun]) -> None:
    """Check that cases that differ in size alone did the same work, and that twins are the same case."""
    curves: dict[Any, dict[str, Json]] = defaultdict(dict)
    for run in runs:
        case = run.record["case"]
        variant = case["case_id"].partition(f"-{case['nnodes']}x{case['nproc_per_node']}")[2].removesuffix(TWIN_SUFFIX)
        key = (case["series"], case["rl_library"], case["stack"], case["device"], variant)
        curves[key].setdefault(run.case_id, run.record)
    for of_curve in curves.values():
        (first_id, first), *others = of_curve.items()
        for case_id, record in others:
            case, other = record["case"], first["case"]
            is_twin = case_id.removesuffix(TWIN_SUFFIX) == first_id.removesuffix(TWIN_SUFFIX)
            names = set(case) - {"case_id"} if is_twin else _OF_A_CURVE
            work, other_work = record["workload"] or {}, first["workload"] or {}
            unlike = [name for name in names if case[name] != other.get(name)]
            unlike += [
                name
                for name in work.keys() & other_work.keys()
                if work[name] != other_work[name] and not _OF_A_SIZE.search(name)
            ]
            if unlike:
                got = f"unlike {first_id} in {', '.join(sorted(unlike))}"
                place.fault(f"the case {case_id}", got, "alike: they are compared")


def _check_packages(place: Place, runs: Sequence[TimedRun]) -> None:
    """Check that all ranks of a set had the same packages, but for those that a case asks for."""
    versions: dict[str, set[Any]] = defaultdict(set)
    for run in runs:
        asked = {f"versions.{package.partition('==')[0]}" for package in run.record["case"]["with_packages"]}
        for name, value in (item for rank in run.record["ranks"] for item in rank["settings"].items()):
            if name.startswith("versions.") and name not in asked:
                versions[name].add(value)
    for name, kinds in versions.items():
        if len(kinds) > 1:
            place.fault(f"{name} of its ranks", " and ".join(sorted(map(str, kinds))), "one")


def _check_probes(place: Place, runs: Sequence[TimedRun]) -> None:
    """Check the fastest core probe of the ranks against what env_check measured on the same cores."""
    fastest: dict[float, float] = {}
    for run in runs:
        checks = {check["name"]: check["found"] for check in run.record["environment"]["checks"]}
        best = _PROBE.match(checks.get("core_speed") or "")
        columns = [rank["samples"].get("core_probe_time_s", []) for rank in run.record["ranks"]]
        known = [probe_s for column in columns for probe_s in column if probe_s is not None]
        if best and known:
            fastest[float(best[1])] = min(fastest.get(float(best[1]), known[0]), *known)
    for best_us, probe_s in fastest.items():
        place.between("its fastest core probe over that of env_check", 1e6 * probe_s / best_us, *PROBES)


def _check_environment(place: Place, runs: Sequence[TimedRun]) -> None:
    """Check that a set is of one machine, by driver, kernel, cores, and kind and number of GPUs."""
    machines = [run.record["environment"] for run in runs]
    values: dict[str, set[Any]] = {
        name: {machine.get(name) for machine in machines}
        for name in ("driver_version", "kernel", "cpu_model", "num_cpus")
    }
    values["kind of GPU"] = {", ".join(sorted({gpu["name"] for gpu in machine["gpus"]})) for machine in machines}
    values["number of GPUs"] = {len(machine["gpus"]) for machine in machines}
    for name, kinds in values.items():
        if len(kinds) > 1:
            place.fault(f"the {name} of its rounds", " and ".join(sorted(map(str, kinds))), "one", OR_LIST)


def _check_evidence(place: Place, completed: Sequence[Json]) -> None:
    """Check that every completed round of training has a fingerprint of its work, and what checks of it found."""
    has_readings = any(record.get("readings") for record in completed)
    missing = {
        "the fingerprint of the work": sum(not record["workload"] for record in completed),
        "a check of the work": sum(not all(rank["validity"] for rank in record["ranks"]) for record in completed),
        "env_check of the machine": sum(not record["environment"]["checks"] for record in completed),
        "readings of the sampler": sum(
            has_readings and bool(record["telemetry"]) and not record.get("readings") for record in completed
        ),
    }
    for what, number in missing.items():
        if number:
            got = f"missing in {number} of {counted(len(completed), 'completed round')}"
            place.fault(what, got, "in each of them", OR_LIST)


# --- copies and overlaps ---


def check_copies(where: str, runs: Sequence[TimedRun]) -> list[Finding]:
    """Check that no two ranks have the same times, in any order and up to a factor, nor times that vary alike."""
    place, expected = Place(where=where), "its own: no two processes take equal times"
    seen: dict[Any, str] = {}
    long: dict[int, list[tuple[TimedRun, str, Columns]]] = defaultdict(list)
    for run in runs:
        for rank in run.record["ranks"] if counts(run.record) else ():
            columns, name = columns_of(rank), f"{run.name}, rank {rank['rank']}"
            times_s = columns.get("iteration_time_s", np.zeros(0))
            if len(times_s) >= MIN_SAMPLES and times_s.min() < times_s.max():
                ratios = tuple(np.sort(times_s / np.median(times_s)).round(DIGITS))
                if (first := seen.setdefault(ratios, name)) != name:
                    place.fault(
                        f"the times of {name}", f"those of {first}, up to order and a factor", expected, RUN_AGAIN
                    )
            if len(times_s) >= MIN_LENGTH and run.record["case"]["workload"] == "train":
                long[len(times_s)].append((run, name, columns))
        clock = (run.host, run.record["started_utc"], run.record["wall_time_s"])
        if (first := seen.setdefault(clock, run.name)) != run.name:
            place.fault(f"the start of {run.name}", f"that of {first}, with its wall time", "its own")
    for ranks in long.values():
        alike = np.minimum(*(_correlations(ranks, part) for part in ("collection_time_s", "learning_time_s")))
        for i, j in np.argwhere(np.triu(alike > ALIKE, 1)):
            (first_run, first, _), (run, name, _) = ranks[i], ranks[j]
            if first_run is not run:
                got = f"varying as those of {first} do (r = {alike[i, j]:.3f})"
                place.fault(f"the times of {name}", got, expected, RUN_AGAIN)
    return place.findings


def _correlations(ranks: Sequence[tuple[TimedRun, str, Columns]], part: str) -> Array:
    """Return how alike the times of ranks vary around their smooth course; the first iterations and marks are slow."""
    rest = []
    for _, _, columns in ranks:
        times_s, marks = columns[part][3:], columns.get("marked", np.zeros(len(columns[part])))[3:]
        course = np.column_stack([np.vander(np.linspace(-1, 1, len(times_s)), 4), marks])
        logs = np.log(np.maximum(times_s, 1e-9))
        left = logs - course @ np.linalg.lstsq(course, logs, rcond=None)[0]
        rest.append(left / max(float(np.linalg.norm(left)), 1e-12))
    alike: Array = np.array(rest) @ np.array(rest).T
    return alike


def check_overlaps(where: str, runs: Sequence[TimedRun], *, between_sets: bool) -> list[Finding]:
    """Check that runs of one host that ran at the same time say so; one finding a host. A case never runs twice."""
    place, hosts = Place(where=where), defaultdict(list)
    for run in runs:
        host = run.host if between_sets else run.host or "its host"  # one set without a label is of one host
        if host is not None:
            hosts[host].append(run)
    for host, on_host in hosts.items():
        ordered = sorted(on_host, key=lambda run: (run.began_s, run.ended_s))
        pairs = [pair for pair in _overlapping(ordered) if (pair[0].set_name != pair[1].set_name) == between_sets]
        twice = [(first, run) for first, run in pairs if not between_sets and first.case_id == run.case_id]
        for first, run in twice[:1]:
            place.fault(run.name, f"at the same time as {first.name}", "after it: a case runs once at a time")
        silent = [pair for pair in pairs if not (pair[0].beside and pair[1].beside) and pair not in twice]
        if silent:
            sets = f" of {len({run.set_name for pair in silent for run in pair})} sets" if between_sets else ""
            rounds = f"{counted(len(silent), 'pair')} of rounds{sets}"
            got = f"shared by {rounds} that do not say so, as {silent[0][0].name} and {silent[0][1].name}"
            place.fault(f"the time on {host!r}", got, "one round's at a time, or rounds in turns", OR_LIST)
    return place.findings


def _overlapping(ordered: Sequence[TimedRun]) -> Iterator[tuple[TimedRun, TimedRun]]:
    for index, run in enumerate(ordered):
        for other in ordered[index + 1 :]:
            if other.began_s >= run.ended_s - CLOCK_S:
                break
            if other.ended_s - other.began_s > CLOCK_S:
                yield run, other
