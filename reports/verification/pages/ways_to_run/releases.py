"""*Other versions of packages*: cases with them beside the same case with the pinned ones."""

from collections import Counter
from collections.abc import Iterator

from reports.verification import formulas
from reports.verification.figures.rows import of_median, of_pair, of_ratio
from reports.verification.figures.series import with_cold_starts
from reports.verification.figures.starts import starts_of
from reports.verification.finding import Json
from reports.verification.pages.tuning.changed_settings import Pair, changed_pairs, gain_of
from reports.verification.samples.round_facts import trainings
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    found = {
        f"{one.folder.name}: {pair[1].case_id}": _figures(one, pair)
        for one in version.with_speeds
        for pair in _pairs(one)
    }
    return {**found, "all": _over_all([*found.values()])} if found else {}


def _pairs(one: StoredSet) -> Iterator[Pair]:
    """Yield those that differ in nothing else that has a page: they are neither deterministic nor share a GPU."""
    for pair in changed_pairs(one):
        case = pair[1].case
        if case.get("with_packages") and not case.get("deterministic") and trainings(case) == 1:
            yield pair


def _figures(one: StoredSet, pair: Pair) -> Json:
    pinned, other = pair
    series = other.case["series"]
    is_timed = series not in with_cold_starts(one.in_order)
    gained = gain_of(pair) if is_timed else None
    gain, span = gained or (None, None)
    is_cold = other.case.get("kernel_cache") == "empty"
    pinned_s, other_s = (
        [start.total_s for start in starts_of(stored) if start.is_cold is is_cold] for stored in (pinned, other)
    )
    return {
        "compared_with": pinned.case_id,
        **of_pair("frames_ratio", gained),
        "against_noise": formulas.against_noise(gain, span, one.noise(series)) if is_timed else "unknown",
        **of_median("pinned_start_s", pinned_s),
        **of_median("start_s", other_s),
        **of_ratio("start_ratio", other_s, pinned_s),
    }


def _over_all(found: list[Json]) -> Json:
    timed = [row for row in found if row["frames_ratio"] is not None]
    ratios = [row["frames_ratio"] for row in timed]
    return {
        "comparisons": len(timed),
        "verdicts": dict(Counter(row["against_noise"] for row in timed)),
        "least_frames_ratio": min(ratios, default=None),
        "most_frames_ratio": max(ratios, default=None),
    }
