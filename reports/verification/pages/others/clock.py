"""*Clock*: our iteration times beside those of Isaac Lab's own benchmark, and of the library in the same process.

``set_folder`` has checked our side of each pair against the samples; here the other side, where each of its iterations
is stored.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.finding import Json
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.shape import read_json
from reports.verification.samples.stored_version import StoredVersion

PAIRS: Final = "upstream.json"


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return what the page says of each case, of each set and of all of them."""
    by_set = {one.folder.name: pairs for one in version.sets if (pairs := _pairs(one))}
    found = {}
    for name, pairs in by_set.items():
        for case_id in dict.fromkeys(pair["case_id"] for pair in pairs):
            found[f"{name}: {case_id}"] = _of_case([pair for pair in pairs if pair["case_id"] == case_id])
        differences = [_difference(pair) for pair in pairs]
        found[name] = {
            "pairs": len(pairs),
            "difference": formulas.median(differences),
            "least": min(differences),
            "most": max(differences),
        }
    every = [pair for pairs in by_set.values() for pair in pairs]
    return {**found, "every set": _of_all(every)} if every else {}


def _pairs(one: StoredSet) -> list[Json]:
    path = one.folder / PAIRS
    pairs: list[Json] = read_json(path) if path.is_file() else []
    counted = {
        (stored.case_id, record["round"]): formulas.counted_iterations(record, stored.rule)
        for stored in one.cases
        for record in stored.completed
        if pairs
    }
    return [{**pair, "theirs_s": _theirs_s(pair, counted)} for pair in pairs]


def _theirs_s(pair: Json, counted: Mapping[tuple[str, int], Sequence[int]]) -> float:
    """Return the median of upstream's iterations that count in ours; as it is stored, in pairs without iterations."""
    times_s = pair.get("theirs_iterations_s")
    if times_s is None:
        return float(pair["theirs_s"])
    return formulas.median([times_s[iteration] for iteration in counted[pair["case_id"], pair["round"]]])


def _of_case(pairs: Sequence[Json]) -> Json:
    theirs_s = [pair["theirs_s"] for pair in pairs]
    return {
        "pairs": len(pairs),
        "ours_s": formulas.median([pair["ours_s"] for pair in pairs]),
        "theirs_s": formulas.median(theirs_s),
        "difference": formulas.median([_difference(pair) for pair in pairs]),
        "difference_without_drift": formulas.median_of_known(_without_drift(pairs)),
        "spread_of_theirs": max(theirs_s) / min(theirs_s) - 1 if len(theirs_s) > 1 else None,
        "to_library": formulas.median_of_known(_to_library(pairs)),
    }


def _of_all(pairs: Sequence[Json]) -> Json:
    sizes = [abs(difference) for difference in _to_library(pairs)]
    return {
        "pairs": len(pairs),
        "difference": formulas.median([_difference(pair) for pair in pairs]),
        "to_library": formulas.median_of_known(sizes),
        "most_to_library": max(sizes, default=None),
    }


def _difference(pair: Json) -> float:
    return float(pair["ours_s"] / pair["theirs_s"] - 1)


def _to_library(pairs: Sequence[Json]) -> list[float]:
    return [pair["ours_s"] / pair["library_s"] - 1 for pair in pairs if pair["library_s"] is not None]


def _without_drift(pairs: Sequence[Json]) -> list[float]:
    """Compare each run with the mean of the two of the other kind around it: they ran in turns, ours first."""
    ran = [
        (kind, pair[kind])
        for pair in sorted(pairs, key=lambda pair: int(pair["round"]))
        for kind in ("ours_s", "theirs_s")
    ]
    found = []
    for (_, before_s), (kind, time_s), (_, after_s) in zip(ran, ran[1:], ran[2:], strict=False):
        around_s = (before_s + after_s) / 2
        found.append((time_s / around_s if kind == "ours_s" else around_s / time_s) - 1)
    return found
