"""*Limits*: how many cases have an interval, and how many runs settled, completed and have evidence."""

from collections import Counter
from typing import Final

from reports.verification import formulas
from reports.verification.figures.neighbours import neighbours_in
from reports.verification.finding import Json
from reports.verification.pages.overview import planned
from reports.verification.samples.stored_version import StoredVersion

MAX_SETS_APART: Final = 2  # that ran alone, or of which nothing is known, and yet are named one by one


def figures(version: StoredVersion) -> dict[str, Json]:
    by_set = _by_set(version)
    return {**by_set, "all": _over_all(version), "neighbours": _neighbours(version, by_set), **planned.figures(version)}


def _neighbours(version: StoredVersion, by_set: dict[str, Json]) -> Json:
    """Return how many sets ran alone, of how many nothing is known, and how many others share what is said of them."""
    runs = {one.folder.name: sum(len(stored.completed) for stored in one.of_report) for one in version.sets}
    alone = [name for name, row in by_set.items() if row["known"] == runs[name] > 0 == row["beside"]]
    unknown = [name for name, row in by_set.items() if row["known"] == 0 < runs[name]]
    many = [names for names in (alone, unknown) if len(names) > MAX_SETS_APART]
    named = [name for name in by_set if not any(name in names for names in many)]
    sentences = Counter((runs[name], *by_set[name].values()) for name in named)
    return {
        "sets_alone": len(alone) if alone in many else 0,
        "sets_unknown": len(unknown) if unknown in many else 0,
        "sets_of_one_sentence": sorted(sentences.values()),
    }


def _by_set(version: StoredVersion) -> dict[str, Json]:
    """Return of each set how many runs say whether others ran beside them, in how many some did, and the most."""
    neighbours, found = neighbours_in(version), {}
    for one in version.sets:
        numbers = [neighbours.of(one, record) for stored in one.of_report for record in stored.completed]
        known = [number for number in numbers if number is not None]
        beside = [number for number in known if number > 0]
        found[one.folder.name] = {"known": len(known), "beside": len(beside), "most": max(beside, default=None)}
    return found


def _over_all(version: StoredVersion) -> Json:
    cases = [stored for one in version.sets for stored in one.of_report if stored.completed]
    runs = [record for stored in cases for record in stored.completed]
    paid = [stored for one in version.sets for stored in one.without_copies]
    by_runs = Counter(len(stored.completed) for stored in cases)
    return {
        "cases": len(cases),
        "cases_by_runs": {str(number): by_runs[number] for number in sorted(by_runs)},
        "with_interval": sum(len(stored.completed) >= formulas.MIN_PROCESSES for stored in cases),
        "without_interval": sum(len(stored.completed) < formulas.MIN_PROCESSES for stored in cases),
        "runs": len(runs),
        "unsettled": sum(not formulas.has_settled(record) for record in runs),
        "with_fingerprint": sum(bool(record.get("workload")) for record in runs),
        "with_telemetry": sum(record.get("telemetry") is not None for record in runs),
        "with_checks": sum(bool(record["environment"].get("checks")) for record in runs),
        "with_official_assets": sum(record["case"]["assets"] == "official" for record in runs),
        "on_several_nodes": sum(record["case"]["nnodes"] > 1 for record in runs),
        "emulated": sum(bool((record.get("transport") or {}).get("emulated")) for record in runs),
        "failed": sum(record["outcome"] != "completed" for stored in paid for record in stored.rounds),
    }
