"""*Every curve* and the pages of tasks: laws of scaling, serial fractions, predictions, and what they answer."""

from collections import Counter
from collections.abc import Sequence

from reports.verification.figures.estimates import Estimate
from reports.verification.figures.published import (
    SUPERLINEAR,
    baseline_of,
    efficiency_of,
    is_emulated,
    scaling_curves,
    twin_of,
    verdict_of,
    word_of,
)
from reports.verification.figures.rows import of_pair
from reports.verification.figures.series import series_of_kind, trains
from reports.verification.finding import Json
from reports.verification.pages.tasks import answers, laws_of_curves
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

type Curve = Sequence[StoredCase]


def figures(version: StoredVersion) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for one in version.with_speeds:
        cases = [stored for kept in series_of_kind(one, "scaling") for stored in kept if trains(stored)]
        curves = [curve for curve in scaling_curves(cases) if len(curve) > 1]
        found |= {f"{one.folder.name}: {curve[0].case_id}": _figures(one, curve) for curve in curves}
        if every := _every_curve(one, cases, curves):
            found[f"{one.folder.name}: all curves"] = every
    return {**found, **answers.figures(version)}


def _every_curve(one: StoredSet, cases: Curve, curves: Sequence[Curve]) -> Json | None:
    """Return what is left of ideal on the most ranks, by kind of scaling, and how many curves have each verdict."""
    real = [stored for stored in cases if not is_emulated(stored)]
    bases = [(baseline_of(stored, cases), stored) for stored in real]
    scaled = [
        (stored, efficiency_of(base, stored)[0])
        for base, stored in bases
        if base.published_s and stored.published_s and world_size(base.case) != world_size(stored.case)
    ]
    if not scaled:
        return None
    most = max(world_size(stored.case) for stored, _ in scaled)
    left: dict[str, list[float]] = {}
    for stored, efficiency in scaled:
        if world_size(stored.case) == most:
            left.setdefault(stored.case["scaling"], []).append(efficiency)
    words = Counter(verdict_of(one, curve) or "with too few rounds" for curve in curves)
    ends = {kind: [min(found), max(found)] for kind, found in left.items()}
    return {"most_ranks": most, "efficiency": ends, "verdicts": dict(words)}


def _figures(one: StoredSet, curve: Curve) -> Json:
    base, *others = curve
    twin = twin_of(one, base)
    fractions = {str(world_size(other.case)): laws_of_curves.serial_fraction(base, other) for other in others}
    said_of_each = {ranks: of_pair("serial_fraction", fraction) for ranks, fraction in fractions.items()}
    return {
        "verdict_ranks": (_decided(curve) or (None, None))[0],
        "with_repeat": _repeat([twin, *others]) if twin else None,
        "limited_by": laws_of_curves.limit(curve) if verdict_of(one, curve) == "limited" else None,
        "law": laws_of_curves.law(curve),
        "serial_fractions": said_of_each if base.case["scaling"] == "strong" else None,
    }


def _decided(curve: Curve) -> tuple[int, Estimate] | None:
    """Return the number of ranks that decides on the verdict, with its efficiency: the most, or one above ideal."""
    base, *others = curve
    if not base.published_s:
        return None
    known = {world_size(other.case): efficiency_of(base, other) for other in others if other.published_s}
    above = [ranks for ranks, (_, span) in known.items() if span and span[0] > SUPERLINEAR]
    most = world_size(others[-1].case)
    ranks = above[0] if above else most
    return (ranks, known[ranks]) if ranks in known else None


def _repeat(curve: Curve) -> Json:
    ranks, efficiency = _decided(curve) or (None, None)
    return {"verdict": word_of(curve), "ranks": ranks, **of_pair("efficiency", efficiency)}
