"""labscale's clock beside those of the RL libraries and of Isaac Lab's own benchmark."""

import statistics
from collections.abc import Sequence

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


def answer(version: Version) -> Html:
    """Say how far labscale's times are from upstream's, and from the library's in the same process."""
    found = [pair for one in version.sets for pair in one.pairs]
    differences = [pair.difference for pair in found]
    said = (
        f"In {counted(len(found), 'pair')} of processes our iteration time differs from that of Isaac Lab's own"
        f" benchmark by {statistics.median(differences):+.1%}, in the median."
    )
    clocks = [abs(pair.clock_difference) for pair in found if pair.clock_difference is not None]
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
    by_case: dict[str, list[Pair]] = {}
    for pair in one.pairs:
        by_case.setdefault(pair.case_id, []).append(pair)
    differences = [pair.difference for pair in one.pairs]
    rows = ([case_id, str(len(found)), *_case(found)] for case_id, found in by_case.items())
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


def _case(found: Sequence[Pair]) -> list[str]:
    bracketed = bracketed_differences(found)
    clocks = [pair.clock_difference for pair in found if pair.clock_difference is not None]
    return [
        seconds(statistics.median(pair.ours_s for pair in found)),
        seconds(statistics.median(pair.theirs_s for pair in found)),
        f"{statistics.median(pair.difference for pair in found):+.1%}",
        f"{statistics.median(bracketed):+.1%}" if bracketed else MISSING,
        _spread([pair.theirs_s for pair in found]),
        f"{statistics.median(clocks):+.2%}" if clocks else MISSING,
    ]


def _spread(times_s: Sequence[float]) -> str:
    """How much longer upstream's slowest run took than its fastest: no pair can say less than that."""
    return f"{max(times_s) / min(times_s) - 1:.1%}" if len(times_s) > 1 else MISSING
