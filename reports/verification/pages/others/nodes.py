"""*Nodes*: how much longer an iteration takes with the same ranks on more nodes."""

from reports.verification import formulas
from reports.verification.figures.published import curve_of, ratio_of
from reports.verification.figures.rows import of_pair
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return each case beside its like on the fewest nodes, then the least and the most of those that completed."""
    found = {
        f"{one.folder.name}: {stored.case_id}": _figures(base, stored)
        for one in version.with_speeds
        for stored in one.of_report
        if (base := _on_fewest_nodes(one, stored)).case["nnodes"] < stored.case["nnodes"]
    }
    longer = [row["longer_by"] for row in found.values() if row["longer_by"] is not None]
    if not found:
        return {}
    counts = {"comparisons": len(longer), "left_out": len(found) - len(longer)}
    ends = {"least": min(longer, default=None), "most": max(longer, default=None)}
    return {**found, "every comparison": {**counts, **ends}}


def _on_fewest_nodes(one: StoredSet, stored: StoredCase) -> StoredCase:
    alike = (other for other in one.of_report if _key(other) == _key(stored))
    return min(alike, key=lambda other: int(other.case["nnodes"]))


def _key(stored: StoredCase) -> tuple[object, ...]:
    return *curve_of(stored.case), world_size(stored.case)


def _figures(base: StoredCase, stored: StoredCase) -> Json:
    """An iteration takes longer by the inverse of the ratio of throughputs, less 1."""
    found = None
    if base.published_s and stored.published_s:
        ratio, span = ratio_of(base, stored)
        longer: formulas.Interval | None = span and (1 / span[1] - 1, 1 / span[0] - 1)
        found = 1 / ratio - 1, longer
    return {
        "compared_with": base.case_id,
        **of_pair("longer_by", found),
        "all_reduce_and_waiting_share": _all_reduce_share(stored),
        "all_reduce_and_waiting_share_of_compared": _all_reduce_share(base),
    }


def _all_reduce_share(stored: StoredCase) -> float | None:
    """Return the median round's share."""
    return formulas.median_of_known([_share(record) for record in stored.completed])


def _share(record: Json) -> float | None:
    """Return the time in all-reduce, waiting included, over that of the same iterations, both summed over all ranks.

    Of the steady iterations, those in which it was measured: the marked ones.
    """
    start, reduced_s, whole_s = formulas.steady_start(formulas.slowest_s(record)), 0.0, 0.0
    for rank in record["ranks"]:
        all_reduce_s = rank["samples"].get("all_reduce_time_s", [])[start:]
        for time_s, part_s in zip(rank["samples"]["iteration_time_s"][start:], all_reduce_s, strict=False):
            if part_s is not None:
                reduced_s, whole_s = reduced_s + part_s, whole_s + time_s
    return reduced_s / whole_s if whole_s else None
