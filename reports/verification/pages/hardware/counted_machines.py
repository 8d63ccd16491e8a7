"""Which machines there are, how many by GPU model, and on how many env_check named a fault."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from reports.verification.finding import Json
from reports.verification.samples.round_facts import gpu_model
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

CPUS: Final = "CPUs"
LAST: Final = "~"  # after every time


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine with the records of its rounds; ``address``: its name in links, as ``h200x4-20261122-0828``."""

    address: str
    records: tuple[Json, ...]

    @property
    def environments(self) -> list[Json]:
        return [record["environment"] for record in self.records]


def counts(found: list[Machine]) -> Json:
    checked = [each.environments for each in found if any(where.get("checks") for where in each.environments)]
    return {
        "machines": len(found),
        "checked": len(checked),
        "with_failure": sum(_has("failure", each) for each in checked),
        "with_warning": sum(_has("warning", each) for each in checked),
    }


def counts_of_model(version: StoredVersion, model: str) -> Json:
    """``version``: the sets that have a machine with this model."""
    found = machines_of(version, model)
    records = [record for each in found for record in each.records]
    return {
        **counts(found),
        "most_gpus": max(len(record["environment"].get("gpus", [])) for record in records),
        "runs": runs_of(records),
        "sets": len(version.sets),
    }


def runs_of(records: list[Json]) -> int:
    return sum(record["outcome"] == "completed" for record in records)


def machines_of(version: StoredVersion, model: str) -> list[Machine]:
    return [each for each in machines(version) if model_of(each.environments[0]) == model]


def machines(version: StoredVersion) -> list[Machine]:
    """Return every machine, the one that ran first first. Whichever has the address of one before gets a number."""
    alike: dict[object, list[Json]] = {}
    for one in version.sets:
        for record in records_of(one):
            alike.setdefault(key_of(version, one, record), []).append(record)
    by_start = sorted(alike.values(), key=lambda records: first_start(records) or LAST)
    taken: dict[str, int] = {}
    found = []
    for records in by_start:
        address = _address(records)
        taken[address] = taken.get(address, 0) + 1
        number = f"-{taken[address]}" if taken[address] > 1 else ""
        found.append(Machine(address=address + number, records=tuple(records)))
    return found


def records_of(one: StoredSet) -> list[Json]:
    """Return those of the cases that pages show, in their order."""
    return [record for stored in sorted(one.of_report, key=lambda each: each.case_id) for record in stored.rounds]


def key_of(version: StoredVersion, one: StoredSet, record: Json) -> tuple[object, ...]:
    """One label of one contributor is one machine with one kind of GPU; without labels, hardware on one day is."""
    environment = record["environment"]
    return version.whose(one), environment["host_label"] or _hardware_and_day(record), model_of(environment)


def model_of(environment: Json) -> str:
    return gpu_model(environment) or CPUS


def _hardware_and_day(record: Json) -> tuple[object, ...]:
    environment, started = record["environment"], record["started_utc"]
    names = [gpu["name"] for gpu in environment.get("gpus", [])]
    day = datetime.fromisoformat(started).astimezone(UTC).date() if started else None
    return (*names, environment["cpu_model"], environment["num_cpus"], day)


def first_start(records: Sequence[Json]) -> str | None:
    return min((record["started_utc"] for record in records if record["started_utc"]), default=None)


def _address(records: list[Json]) -> str:
    """Return the GPU, the most of them that a run saw, and the minute of the first start."""
    most = max((record["environment"].get("gpus", []) for record in records), key=len)
    model = re.sub("[^a-z0-9]+", "-", most[0]["name"].removeprefix("NVIDIA ").lower()).strip("-") if most else ""
    kind, start = f"{model}x{len(most)}" if most else "cpu", first_start(records)
    return f"{kind}-{datetime.fromisoformat(start).astimezone(UTC):%Y%m%d-%H%M}" if start else kind


def _has(verdict: str, environments: list[Json]) -> bool:
    return any(check["verdict"] == verdict for where in environments for check in where.get("checks", []))
