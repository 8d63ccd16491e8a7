"""What pages count: outcomes and evidence of the runs of a set, and what ran beside the runs of a series."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from reports.verification.figures import core_probes
from reports.verification.figures.case_figures import fastest_probes
from reports.verification.finding import Json
from reports.verification.pages.hardware.machines import slowed_of
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

EVIDENCE: Final[Mapping[str, Callable[[Json], bool]]] = {
    "a fingerprint of the work": lambda record: bool(record.get("workload")),
    "checks of it after training": lambda record: all(rank.get("validity") for rank in record["ranks"]),
    "power and memory": lambda record: record.get("telemetry") is not None,
    "what env_check found": lambda record: bool(record["environment"].get("checks")),
}


def figures(version: StoredVersion) -> dict[str, Json]:
    found = {one.folder.name: _of_set(one) for one in version.sets}
    for one in version.with_speeds:
        fastest = fastest_probes(one)
        for name in {stored.case["series"]: None for stored in one.of_report}:
            found[f"{one.folder.name}: {name}"] = _of_series(one, name, fastest)
    return found | _over_all_sets(version)


def _over_all_sets(version: StoredVersion) -> dict[str, Json]:
    """Return the counts of each series of each task."""
    found: dict[str, Json] = {}
    for one in version.with_speeds:
        of_set: dict[str, list[StoredCase]] = {}
        for stored in one.of_report:
            of_set.setdefault(f"{stored.case['task']}: {stored.case['series']}", []).append(stored)
        for series, cases in of_set.items():
            counts = found.setdefault(series, {"cases": 0, "completed": 0, "sets": 0})
            counts["cases"] += sum(bool(stored.completed) for stored in cases)
            counts["completed"] += sum(len(stored.completed) for stored in cases)
            counts["sets"] += 1
    return found


def _of_set(one: StoredSet) -> Json:
    cases = one.of_report
    others = [stored for stored in one.without_copies if stored not in cases]
    records = [record for stored in cases for record in stored.completed]
    return {
        "series": len({stored.case["series"] for stored in cases}),
        "cases": sum(bool(stored.completed) for stored in cases),
        "completed": len(records),
        "not_completed": _outcomes(cases),
        "not_completed_of_repeats_and_tests": _outcomes(others),
        "runs_that_lack": {name: sum(not has(record) for record in records) for name, has in EVIDENCE.items()},
    }


def _outcomes(cases: Sequence[StoredCase]) -> dict[str, int]:
    records = [record for stored in cases for record in stored.rounds]
    return dict(Counter(record["outcome"] for record in records if record["outcome"] != "completed"))


def _of_series(one: StoredSet, name: str, fastest: Mapping[core_probes.Host, float]) -> Json:
    said = [
        record.get("neighbours")
        for stored in one.of_report
        if stored.case["series"] == name
        for record in stored.completed
    ]
    known = [number for number in said if number is not None]
    beside = [number for number in known if number]
    slowed = slowed_of([stored for stored in one.without_copies if stored.case["series"] == name], fastest)
    return {
        "beside": {"known": len(known), "beside": len(beside), "most": max(beside, default=None)},
        "slowed_cores": slowed,
    }
