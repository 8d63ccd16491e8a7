"""The machines that are published: a host of one label on one day, with its rounds that ran alone on one GPU model.

Series with cold starts are left out.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from reports.verification.figures.neighbours import neighbours_in
from reports.verification.figures.same_work import work_of
from reports.verification.figures.series import with_cold_starts
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import gpu_model, trainings
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

_VERSIONS: Final = "versions."
_FREE: Final = "versions.python"  # its patch level comes with the operating system


@dataclass(frozen=True, kw_only=True)
class Round:
    """A completed round, with its time of an iteration."""

    record: Json
    time_s: float

    @property
    def identity(self) -> Hashable:
        record = self.record
        place = record["environment"]["host_label"], record["case"]["case_id"], record["round"]
        return place, record["started_utc"], record["wall_time_s"]


@dataclass(frozen=True, kw_only=True)
class Machine:
    model: str
    by_work: dict[Hashable, list[Round]] = field(default_factory=dict)

    @property
    def identities(self) -> set[Hashable]:
        return {one.identity for rounds in self.by_work.values() for one in rounds}

    def comparable(self, record: Json) -> list[Round]:
        """Return its rounds of the same work and versions of what both name that shared their GPU in the same way."""
        ours = _versions(record)
        return [
            one
            for one in self.by_work.get(work_of(record["case"]), [])
            if all(ours.get(name, version) == version for name, version in _versions(one.record).items())
            and (trainings(record["case"]) == 1 or _mps(one.record) == _mps(record))
        ]


def measured_on_gpus(one: StoredSet) -> list[StoredCase]:
    """Return the cases on GPUs outside series with cold starts, which say little of a machine's speed."""
    cold = with_cold_starts(one.of_report)
    return [case for case in one.of_report if case.case["device"] == "cuda" and case.case["series"] not in cold]


def rounds_of(stored: StoredCase) -> list[Round]:
    return [Round(record=record, time_s=stored.published_s[record["round"]]) for record in stored.completed]


def machines_of(versions: Sequence[StoredVersion]) -> list[Machine]:
    found: dict[Hashable, Machine] = {}
    for version in versions:
        for whose, set_name, one in _alone(version):
            environment = one.record["environment"]
            model = gpu_model(environment)
            if model is not None:
                key = whose, environment["host_label"] or set_name, _day(one.record), model
                machine = found.setdefault(key, Machine(model=model))
                machine.by_work.setdefault(work_of(one.record["case"]), []).append(one)
    return [*found.values()]


def _alone(version: StoredVersion) -> Iterator[tuple[str | None, str, Round]]:
    neighbours = neighbours_in(version)
    for one in version.sets:
        if version.role(one) != "archive":
            name = one.folder.name
            for stored in measured_on_gpus(one):
                for each in rounds_of(stored):
                    if neighbours.of(one, each.record) == 0:
                        yield version.contributors.get(name), name, each


def _versions(record: Json) -> dict[str, str]:
    settings = record["ranks"][0]["settings"]
    named = {name: value for name, value in settings.items() if name.startswith(_VERSIONS) and name != _FREE}
    return {name: str(value) for name, value in named.items() if value is not None}


def _mps(record: Json) -> set[bool | None]:
    return {rank["settings"].get("mps") for rank in record["ranks"]}


def _day(record: Json) -> str:
    started = record["started_utc"]
    return str(datetime.fromisoformat(started).astimezone(UTC).date()) if started else "unknown"
