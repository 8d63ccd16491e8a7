"""How many machines there are, by GPU model, and on how many env_check named a fault."""

from datetime import UTC, datetime
from typing import Final

from reports.verification.finding import Json
from reports.verification.samples.stored_version import StoredVersion

CPUS: Final = "CPUs"
FAULTS: Final = {"warning", "failure"}

type Machines = dict[object, list[Json]]  # machine -> the environments of its rounds


def counts(version: StoredVersion) -> Json:
    checked = [each for each in _machines(version).values() if any(environment.get("checks") for environment in each)]
    return {
        "machines": len(_machines(version)),
        "checked": len(checked),
        "with_fault": sum(any(map(_has_fault, each)) for each in checked),
    }


def counts_of_model(version: StoredVersion, model: str) -> Json:
    """``version``: the sets that have a machine with this model."""
    found = [each for each in _machines(version).values() if _model(each[0]) == model]
    ran = [
        record
        for one in version.sets
        for stored in one.of_report
        for record in stored.rounds
        if record["outcome"] != "skipped" and _model(record["environment"]) == model
    ]
    return {
        "machines": len(found),
        "most_gpus": max(len(environment.get("gpus", [])) for each in found for environment in each),
        "runs": len(ran),
        "sets": len(version.sets),
    }


def _machines(version: StoredVersion) -> Machines:
    """One label of one contributor is one machine with one kind of GPU; without labels, hardware on one day is."""
    found: Machines = {}
    for one in version.sets:
        for record in (record for stored in one.of_report for record in stored.rounds):
            environment = record["environment"]
            known = environment["host_label"] or _hardware_and_day(record)
            found.setdefault((version.whose(one), known, _model(environment)), []).append(environment)
    return found


def _hardware_and_day(record: Json) -> tuple[object, ...]:
    environment, started = record["environment"], record["started_utc"]
    names = [gpu["name"] for gpu in environment.get("gpus", [])]
    day = datetime.fromisoformat(started).astimezone(UTC).date() if started else None
    return (*names, environment["cpu_model"], environment["num_cpus"], day)


def _model(environment: Json) -> str:
    gpus = environment.get("gpus", [])
    return str(gpus[0]["name"]) if gpus else CPUS


def _has_fault(environment: Json) -> bool:
    return any(check["verdict"] in FAULTS for check in environment.get("checks", []))
