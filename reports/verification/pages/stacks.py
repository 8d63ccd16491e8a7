"""*Stacks*: the throughput of a case over that of its like on another stack."""

from typing import Final

from reports.verification import formulas
from reports.verification.case_file import StoredCase
from reports.verification.finding import Json
from reports.verification.pages.stored_version import StoredVersion
from reports.verification.published import curve_of, ratio_of
from reports.verification.set_folder import StoredSet, noise_of

ORDER: Final = ("kitless", "ovphysx", "isaacsim")  # each is compared with the first of these that was measured


def figures(version: StoredVersion) -> dict[str, Json]:
    return {
        f"{one.folder.name}: {stored.case_id}": _figures(one, base, stored)
        for one in version.with_speeds
        for stored in one.of_report
        if (base := _base(one, stored)) is not stored
    }


def _base(one: StoredSet, stored: StoredCase) -> StoredCase:
    """Return the case of its like that all others are compared with."""
    return min((other for other in one.of_report if _key(other) == _key(stored)), key=_rank)


def _key(stored: StoredCase) -> tuple[object, ...]:
    case = stored.case
    as_first = {**case, "stack": ORDER[0], "case_id": stored.case_id.replace(f"-{case['stack']}-", f"-{ORDER[0]}-", 1)}
    return curve_of(as_first), case["nnodes"], case["nproc_per_node"]


def _rank(stored: StoredCase) -> int:
    return ORDER.index(stored.case["stack"])


def _figures(one: StoredSet, base: StoredCase, stored: StoredCase) -> Json:
    ratio, span = ratio_of(base, stored) if base.published_s and stored.published_s else (None, None)
    of_series = [other for other in one.cases if other.case["series"] == stored.case["series"]]
    noise = max((pair["noise"] for pair in noise_of(of_series)), default=None)
    return {
        "compared_with": base.case_id,
        "ratio": ratio,
        "ratio_interval": span and list(span),
        "against_noise": formulas.against_noise(ratio, span, noise),
    }
