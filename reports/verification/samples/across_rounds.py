"""Checks over all rounds of a set or of a version: copies, overlapping clocks, one machine, missing evidence. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from typing import Any, Final

from reports.verification.finding import OR_LIST, RUN_AGAIN, Finding, Json, counted
from reports.verification.samples.case_file import StoredCase

CLOCK_S: Final = 1.0  # a start is stored in whole seconds
MIN_SAMPLES: Final = 4  # fewer can be alike by chance
DIGITS: Final = 6  # of a ratio of two samples, which are stored with 9


@dataclass(frozen=True, kw_only=True)
class Run:
    """One round that began, and where it is stored."""

    set_name: str
    where: str
    record: Json

    @property
    def name(self) -> str:
        return f"{self.set_name}: {self.record['case']['case_id']} round {self.record['round']}"

    @property
    def host(self) -> str | None:
        label: str | None = self.record["environment"]["host_label"]
        return label

    @property
    def span_s(self) -> tuple[float, float]:
        began_s = datetime.fromisoformat(self.record["started_utc"]).timestamp()
        return began_s, began_s + (self.record["wall_time_s"] or 0.0)

    @property
    def says_so(self) -> bool:
        """Whether the record says that others ran in turns with it."""
        return bool(self.record["turns"])


def runs_of(set_name: str, cases: Sequence[StoredCase]) -> list[Run]:
    return [
        Run(set_name=set_name, where=stored.where, record=record)
        for stored in cases
        for record in stored.rounds
        if record["started_utc"] is not None
    ]


def check_copies(runs: Sequence[Run]) -> Iterator[Finding]:
    """Check that no two ranks have the same samples, or samples that differ by one factor; nor the same clock."""
    seen: dict[Any, str] = {}
    for run in runs:
        for rank in run.record["ranks"]:
            times_s, starts_s = (rank["samples"].get(name, []) for name in ("iteration_time_s", "start_s"))
            if len(times_s) < MIN_SAMPLES or None in times_s or not times_s[0]:
                continue
            place = f"{run.name}, rank {rank['rank']}"
            ratios = tuple(round(time_s / times_s[0], DIGITS) for time_s in times_s)
            alike = {"list of iteration times": ("times", ratios), "list of starts": ("starts", tuple(starts_s))}
            for what, key in alike.items():
                first = seen.setdefault(key, place)
                if first != place and len({*key[1]}) > 1:
                    got, expected = f"that of {first}, up to a factor", "its own: no two processes take equal times"
                    yield Finding(
                        where=run.where, what=f"{place}: its {what}", got=got, expected=expected, next_step=RUN_AGAIN
                    )
        clock = (run.host, run.record["started_utc"], run.record["wall_time_s"])
        first = seen.setdefault(clock, run.name)
        if first != run.name:
            got = f"that of {first}, to the microsecond of their wall times"
            yield Finding(where=run.where, what=f"{run.name}: its start", got=got, expected="its own")


def check_overlaps(where: str, runs: Sequence[Run], *, between_sets: bool) -> Iterator[Finding]:
    """Check that rounds of one host that ran at the same time say so; one finding a host."""
    hosts: dict[str, list[Run]] = {}
    for run in runs:
        host = run.host if between_sets else run.host or "its host"  # one set without a label is of one host
        if host is not None:
            hosts.setdefault(host, []).append(run)
    for host, found in hosts.items():
        ordered = sorted(found, key=lambda run: run.span_s)
        pairs = [pair for pair in _overlapping(ordered) if (pair[0].set_name != pair[1].set_name) == between_sets]
        if pairs:
            first, other = pairs[0]
            sets = f" of {len({run.set_name for pair in pairs for run in pair})} sets" if between_sets else ""
            yield Finding(
                where=where,
                what=f"the time on {host!r}",
                got=f"shared by {counted(len(pairs), 'pair')} of rounds{sets} that do not say so, as {first.name} and"
                f" {other.name}",
                expected="one round's at a time, or rounds in turns",
                next_step=OR_LIST,
            )


def _overlapping(ordered: Sequence[Run]) -> Iterator[tuple[Run, Run]]:
    for index, run in enumerate(ordered):
        for other in ordered[index + 1 :]:
            if other.span_s[0] >= run.span_s[1] - CLOCK_S:
                break
            if other.span_s[1] - other.span_s[0] > CLOCK_S and not (run.says_so and other.says_so):
                yield run, other


def check_environment(where: str, runs: Sequence[Run]) -> Iterator[Finding]:
    """Check that a set is of one machine, by driver, kernel, cores, and kind and number of GPUs."""
    values: Mapping[str, set[Any]] = {
        name: {_of_machine(run.record["environment"], name) for run in runs}
        for name in ("driver_version", "kernel", "cpu_model", "num_cpus", "kind of GPU", "number of GPUs")
    }
    for name, found in values.items():
        if len(found) > 1:
            got = " and ".join(sorted(map(str, found)))
            yield Finding(where=where, what=f"the {name} of its rounds", got=got, expected="one", next_step=OR_LIST)


def _of_machine(environment: Json, name: str) -> Any:
    gpus = environment["gpus"]
    if name == "kind of GPU":
        return ", ".join(sorted({gpu["name"] for gpu in gpus}))
    return len(gpus) if name == "number of GPUs" else environment.get(name)


def check_evidence(where: str, cases: Sequence[StoredCase]) -> Iterator[Finding]:
    """Check that every completed round of training has a fingerprint of its work, and what checks of it found."""
    completed = [record for stored in cases for record in stored.completed]
    missing = {
        "the fingerprint of the work": sum(not record["workload"] for record in completed),
        "a check of the work": sum(not all(rank["validity"] for rank in record["ranks"]) for record in completed),
        "env_check of the machine": sum(not record["environment"]["checks"] for record in completed),
    }
    for what, number in missing.items():
        if number:
            got = f"missing in {number} of {counted(len(completed), 'completed round')}"
            yield Finding(where=where, what=what, got=got, expected="in each of them", next_step=OR_LIST)


def check_one_work(where: str, cases: Sequence[StoredCase]) -> Iterator[Finding]:
    """Check that a case and its A/A twin are the same case."""
    by_id = {stored.case_id: stored for stored in cases}
    for one, other in combinations(sorted(by_id), 2):
        if other == f"{one}-aa":
            mine, twins = ({**by_id[name].case, "case_id": ""} for name in (one, other))
            names = sorted(name for name in {*mine, *twins} if mine.get(name) != twins.get(name))
            if names:
                got = f"another case than its twin, in {', '.join(names)}"
                yield Finding(where=where, what=other, got=got, expected="the same case")
