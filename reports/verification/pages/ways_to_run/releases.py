"""*Other versions of packages*: cases with them beside the same case with the pinned ones."""

from collections import Counter
from collections.abc import Iterator

from reports.verification import formulas
from reports.verification.figures.rows import of_median, of_pair, of_ratio
from reports.verification.figures.same_work import work_of
from reports.verification.figures.series import with_cold_starts
from reports.verification.figures.starts import starts_of
from reports.verification.finding import Json
from reports.verification.pages.tuning.changed_settings import Pair, gain_of
from reports.verification.samples.case_file import TWIN_SUFFIX, StoredCase
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
    """Yield each case with other versions, after the case of its series that differs in nothing else."""
    cases = [stored for stored in one.in_order if not stored.case_id.endswith(TWIN_SUFFIX)]
    pinned = {_key(stored): stored for stored in cases if not stored.case.get("with_packages")}
    for stored in cases:
        if stored.case.get("with_packages") and _key(stored) in pinned:
            yield pinned[_key(stored)], stored


def _key(stored: StoredCase) -> tuple[object, ...]:
    with_pins = {"with_packages": [], "division": "closed"} if stored.case.get("with_packages") else {}
    return stored.case["series"], work_of(stored.case, **with_pins)


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
