"""labscale's clock beside those of the RL libraries and of Isaac Lab's own benchmark."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    answer_of_page,
    heading,
    html_table,
    paragraph,
    seconds,
    together,
)
from reports.sets.evidence import missing
from reports.sets.version import ResultSet, Version
from suite.campaign.runs.upstream import Pair, bracketed_differences
from suite.files.wording import counted


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


def by_case(pairs: Sequence[Pair]) -> Mapping[str, CasePairs]:
    """Return case id -> what its pairs say, in the order of ``pairs``."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(pair.case_id, []).append(pair)
    return {case_id: _of_case(those) for case_id, those in found.items()}


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


def answer(version: Version) -> Html:
    """Say how far labscale's times are from upstream's, and from the library's in the same process."""
    clocks = [abs(pair.clock_difference) for pair in version.pairs if pair.clock_difference is not None]
    difference = statistics.median(pair.difference for pair in version.pairs)
    said = (
        f"In {counted(len(version.pairs), 'pair')} of processes our iteration time differs from that of Isaac Lab's own"
        f" benchmark by {difference:+.1%}, in the median."
    )
    if not clocks:
        return answer_of_page(said)
    return answer_of_page(
        f"{said} In the same process our clock and the library's differ by at most {max(clocks):.2%}, and by"
        f" {statistics.median(clocks):.2%} in the median."
    )


def pairs(version: Version) -> Html:
    """Of every set with runs beside upstream: one row a case, then every pair."""
    return together(part for one in version.sets if one.pairs for part in _set(one))


def _set(one: ResultSet) -> list[Displayed]:
    differences = [pair.difference for pair in one.pairs]
    rows = ([case_id, str(those.pairs), *_case(those)] for case_id, those in by_case(one.pairs).items())
    return [
        heading(one.title or "This campaign"),
        paragraph(
            f"{counted(len(one.pairs), 'pair')} on {one.campaign.where}. Our iteration time against upstream's: median"
            f" {statistics.median(differences):+.1%}, from {min(differences):+.1%} to {max(differences):+.1%}. In the"
            " table a difference is the median of those of the pairs, and not that of the medians beside it."
            f" {missing(one.campaign.results)}".rstrip()
        ),
        html_table(
            [
                "Case",
                "Pairs",
                "Ours in s",
                "Upstream in s",
                "Difference",
                "Difference without drift",
                "Upstream's own spread",
                "Against the library's clock",
            ],
            rows,
            label=f"Clocks of {one.title or 'this campaign'}",
        ),
    ]


def _case(found: CasePairs) -> list[str]:
    return [
        seconds(found.ours_s),
        seconds(found.theirs_s),
        f"{found.difference:+.1%}",
        MISSING if found.difference_without_drift is None else f"{found.difference_without_drift:+.1%}",
        MISSING if found.spread_of_theirs is None else f"{found.spread_of_theirs:.1%}",
        MISSING if found.to_library is None else f"{found.to_library:+.2%}",
    ]
