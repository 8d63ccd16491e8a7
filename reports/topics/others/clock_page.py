"""labscale's clock beside those of the RL libraries and of Isaac Lab's own benchmark."""

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
from reports.topics.others.clock_model import CasePairs, by_case, of_all, of_set
from suite.files.wording import counted


def answer(version: Version) -> Html:
    """Say how far labscale's times are from upstream's, and from the library's in the same process."""
    found = of_all(version.pairs)
    said = (
        f"In {counted(found.pairs, 'pair')} of processes our iteration time differs from that of Isaac Lab's own"
        f" benchmark by {found.difference:+.1%}, in the median."
    )
    if found.to_library is None or found.most_to_library is None:
        return answer_of_page(said)
    return answer_of_page(
        f"{said} In the same process our clock and the library's differ by at most {found.most_to_library:.2%}, and by"
        f" {found.to_library:.2%} in the median."
    )


def pairs(version: Version) -> Html:
    """Of every set with runs beside upstream: one row a case, then every pair."""
    return together(part for one in version.sets if one.pairs for part in _set(one))


def _set(one: ResultSet) -> list[Displayed]:
    found = of_set(one.pairs)
    rows = ([case_id, str(those.pairs), *_case(those)] for case_id, those in by_case(one.pairs).items())
    return [
        heading(one.title or "This campaign"),
        paragraph(
            f"{counted(found.pairs, 'pair')} on {one.campaign.where}. Our iteration time against upstream's: median"
            f" {found.difference:+.1%}, from {found.least:+.1%} to {found.most:+.1%}. In the"
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
