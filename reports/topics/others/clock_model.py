"""What pairs of runs say of our clock beside upstream's and the library's. Pure."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suite.campaign.runs.upstream import Pair, bracketed_differences


@dataclass(frozen=True, kw_only=True)
class CasePairs:
    """All pairs of a case in a set: medians, of which a difference is that of the pairs."""

    pairs: int
    ours_s: float
    theirs_s: float
    difference: float
    difference_without_drift: float | None  # None for a single pair
    spread_of_theirs: float | None  # how much longer upstream's slowest run took than its fastest; None for one run
    to_library: float | None  # difference to the library's clock in the same process; None if it has none


@dataclass(frozen=True, kw_only=True)
class SetPairs:
    """All pairs of a set."""

    pairs: int
    difference: float  # median
    least: float
    most: float


@dataclass(frozen=True, kw_only=True)
class AllPairs:
    """All pairs of a version. The differences to the library's clock are without their signs."""

    pairs: int
    difference: float  # median
    to_library: float | None  # median; None if no library has a clock
    most_to_library: float | None


def by_case(pairs: Sequence[Pair]) -> Mapping[str, CasePairs]:
    """Return case id -> what its pairs say, in the order of ``pairs``."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(pair.case_id, []).append(pair)
    return {case_id: _of_case(those) for case_id, those in found.items()}


def of_set(pairs: Sequence[Pair]) -> SetPairs:
    """Raises ValueError without a pair."""
    differences = [pair.difference for pair in pairs]
    return SetPairs(
        pairs=len(pairs), difference=statistics.median(differences), least=min(differences), most=max(differences)
    )


def of_all(pairs: Sequence[Pair]) -> AllPairs:
    """Raises ValueError without a pair."""
    clocks = [abs(pair.clock_difference) for pair in pairs if pair.clock_difference is not None]
    return AllPairs(
        pairs=len(pairs),
        difference=statistics.median(pair.difference for pair in pairs),
        to_library=statistics.median(clocks) if clocks else None,
        most_to_library=max(clocks, default=None),
    )


def _of_case(found: Sequence[Pair]) -> CasePairs:
    bracketed = bracketed_differences(found)
    clocks = [pair.clock_difference for pair in found if pair.clock_difference is not None]
    theirs_s = [pair.theirs_s for pair in found]
    return CasePairs(
        pairs=len(found),
        ours_s=statistics.median(pair.ours_s for pair in found),
        theirs_s=statistics.median(theirs_s),
        difference=statistics.median(pair.difference for pair in found),
        difference_without_drift=statistics.median(bracketed) if bracketed else None,
        spread_of_theirs=max(theirs_s) / min(theirs_s) - 1 if len(theirs_s) > 1 else None,
        to_library=statistics.median(clocks) if clocks else None,
    )
