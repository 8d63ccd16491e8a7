"""*Where it ran*: which hosts env_check said the same of, with the counts of its verdicts; and rounds by machine."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from reports.verification.finding import Json
from reports.verification.pages.hardware.counted_machines import (
    Machine,
    first_start,
    machines,
    machines_of,
    records_of,
    runs_of,
)
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.shape import read_json
from reports.verification.samples.stored_version import StoredVersion

SHOWN: Final = {"failure", "warning", "not_checked"}  # checks that are listed, with what they found
PLATFORM: Final = ("cpu_model", "driver_version", "cuda_driver_version", "os", "kernel", "suite_version")
HASHES: Final = ("git_commit", "worker_pins_sha256", "asset_sha256")  # of which a page shows the first 12 digits
DIGITS: Final = 12


def figures(version: StoredVersion) -> dict[str, Json]:
    addresses = {id(record): each.address for each in machines(version) for record in each.records}
    rounds = {f"{one.folder.name}: rounds by machine": _rounds(one, addresses) for one in version.sets}
    said = {f"env_check, {path.stem}": _counts(read_json(path)["checks"]) for path in version.env_checks}
    return {**rounds, **said, **_alike(version, addresses)}


def of_model(version: StoredVersion, model: str) -> dict[str, Json]:
    """Return of each machine its runs, and the counts of each distinct set of verdicts. ``version``: of the model."""
    return {each.address: _of_machine(each) for each in machines_of(version, model)}


def _of_machine(machine: Machine) -> Json:
    said = {_verdicts(where): where.get("checks", []) for where in machine.environments}
    return {
        "first_started_utc": first_start(machine.records),
        "runs": runs_of([*machine.records]),
        "tasks": sorted({record["case"]["task"] for record in machine.records}),
        "env_check": [_counts(checks) for checks in said.values()],
    }


def _alike(version: StoredVersion, addresses: dict[int, str]) -> dict[str, Json]:
    """Hosts are alike of which the same was said, and of which the same was found where it was no plain ok."""
    alike: dict[object, list[tuple[str, Sequence[Json]]]] = {}
    for one in version.sets:
        first: dict[object, Json] = {}
        for record in records_of(one):
            where = record["environment"]
            first.setdefault((where["host_label"], _verdicts(where)), record)
        for record in first.values():
            where = record["environment"]
            checks = where.get("checks", [])
            listed = [check["found"] for check in checks if check["verdict"] in SHOWN]
            host = f"{one.folder.name}: {addresses[id(record)]}"
            alike.setdefault((_verdicts(where), *listed), []).append((host, checks))
    return {
        f"env_check, {number}": {"hosts": len(hosts), "where": [name for name, _ in hosts], **_counts(hosts[0][1])}
        for number, hosts in enumerate(alike.values(), start=1)
    }


def _verdicts(environment: Json) -> tuple[object, ...]:
    return tuple((check["name"], check["verdict"], check["fault"]) for check in environment.get("checks", []))


def _counts(checks: Sequence[Json]) -> Json:
    """Without a check nothing is known."""
    return {"checks": len(checks) or None, "verdicts": Counter(check["verdict"] for check in checks) or None}


def _rounds(one: StoredSet, addresses: dict[int, str]) -> dict[str, list[Json]]:
    """Return the rounds of each row of the table of hosts, and their first and last start.

    Those that differ in nothing that the table shows share a row.
    """
    places: dict[str, list[Json]] = {}
    for record in records_of(one):
        places.setdefault(json.dumps(record["environment"], sort_keys=True), []).append(record)
    rows: dict[tuple[object, ...], list[Json]] = {}
    for records in places.values():
        rows.setdefault((addresses[id(records[0])], *_shown(records)), []).extend(records)
    found: dict[str, list[Json]] = {}
    for (address, *_), records in rows.items():
        starts = [datetime.fromisoformat(start) for record in records if (start := record["started_utc"])]
        times = sorted(start.astimezone(UTC).isoformat() for start in starts)
        first, last = (times[0], times[-1]) if times else (None, None)
        started = {"first_started_utc": first, "last_started_utc": last}
        found.setdefault(str(address), []).append({"rounds": runs_of(records), **started})
    return found


def _shown(records: Sequence[Json]) -> tuple[object, ...]:
    """Return what the tables of hosts and platforms show of an environment."""
    where = records[0]["environment"]
    memory = None if where.get("memory_gb") is None else f"{where['memory_gb']:.0f}"
    hashes = [(where.get(name) or "")[:DIGITS] for name in HASHES]
    is_dirty = bool(where.get("git_commit") and where.get("git_dirty"))
    ranks = [rank for record in records for rank in record["ranks"]]
    versions = {
        (name, str(value))
        for rank in ranks
        for name, value in rank.get("settings", {}).items()
        if name.startswith("versions.") and value is not None
    }
    packages = tuple(where.get("worker_packages", ()))
    platform = [where.get(name) for name in PLATFORM]
    return where["host_label"], memory, is_dirty, *hashes, *platform, packages, frozenset(versions)
