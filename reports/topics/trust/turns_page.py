"""Rounds in turns beside rounds that run alone."""

from collections.abc import Sequence
from typing import Final

from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    answer_of_page,
    estimated,
    html_table,
    paragraph,
    percent,
    percent_interval,
    seconds,
    together,
)
from reports.display.per_set import under_titles
from reports.sets.version import ResultSet, Version
from reports.topics.trust.turns_check import (
    Difference,
    TurnsCheck,
    judged,
    mean_ratio,
    pairs_of,
    pooled,
    turns_check,
)
from suite.files.wording import are, counted
from suite.statistics.intervals import Estimate

WITHIN: Final[dict[bool | None, str]] = {True: "yes", False: "no", None: MISSING}


def has_check(version: Version) -> bool:
    return any(_of(one) for one in version.sets)


def check(version: Version) -> Html:
    """Show for every set that measured cases both ways the answer, the differences and the cost."""
    asked = [one for one in version.sets if _of(one)]
    return together([*_over_sets(asked), under_titles(asked, _shown, are_named=version.must_name_all_sets)])


def answer(version: Version) -> Html:
    """Say how far turns and rounds alone are apart over all sets, and how many cases are outside their noise."""
    found = [checked for one in version.sets if (checked := _of(one))]
    counts = judged([case for one in found for case in one.cases])
    if not counts.cases:
        return answer_of_page("No case was measured three times each way, so nothing is known of the difference.")
    over_all = mean_ratio([pair for one in version.sets for pair in pairs_of(one)])
    where = "" if len(found) == 1 else f" of {len(found)} sets"
    return answer_of_page(
        f"Over all cases{where} an iteration takes {_apart(over_all)}."
        f" {counts.outside or 'None'} of {counted(counts.cases, 'case')} {are(counts.outside or 1)} outside the noise."
    )


def _of(one: ResultSet) -> TurnsCheck | None:
    return turns_check(pairs_of(one))


def _over_sets(sets: Sequence[ResultSet]) -> list[Displayed]:
    """Return a table of the cases that several sets have; nothing without any."""
    found = pooled([pair for one in sets for pair in pairs_of(one)])
    if not found:
        return []
    said = (
        "These cases were measured in several sets. A difference over sets is the mean of their differences: rounds of"
        " two machines are not compared with each other."
    )
    table = html_table(
        ["Case", "GPU", "Sets", "Processes", "Difference", "Within the noise"],
        [
            [
                case.case_id,
                case.gpu or MISSING,
                str(case.sets),
                f"{case.in_turns_rounds} and {case.alone_rounds}",
                estimated(_change(case.ratio), percent),
                WITHIN[case.is_within_noise],
            ]
            for case in found
        ],
        label="Rounds in turns and alone over sets",
    )
    return [paragraph(said), table]


def _shown(one: ResultSet) -> Html:
    found = _of(one)
    if found is None:
        raise AssertionError("only sets with a check are shown")
    table = html_table(
        ["Case", "In turns, s/iteration", "Alone, s/iteration", "Processes", "Difference", "Within the noise"],
        [_row(case) for case in found.cases],
        label=f"Rounds in turns and alone{f', {one.title}' if one.title else ''}",
    )
    return together([paragraph(_answer(found)), table, paragraph(f"{one.campaign.where}. {_cost(found)}")])


def _row(case: Difference) -> list[str]:
    return [
        case.case_id,
        estimated(case.in_turns_s, seconds),
        estimated(case.alone_s, seconds),
        f"{case.in_turns_rounds} and {case.alone_rounds}",
        estimated(_change(case.ratio), percent),
        WITHIN[case.is_within_noise],
    ]


def _change(ratio: Estimate) -> Estimate:
    return ratio.mapped(lambda value: value - 1)


def _answer(found: TurnsCheck) -> str:
    counts = judged(found.cases)
    over_all = f"Over all cases an iteration takes {_apart(found.over_all)}."
    if not counts.cases:
        return f"{over_all} No case has the three processes each way that an interval needs."
    if not counts.outside:
        return f"{over_all} The difference of no case exceeds its noise ({counted(counts.cases, 'case')})."
    return (
        f"{over_all} {counts.outside} of {counted(counts.cases, 'case')} {are(counts.outside)} outside the noise. If"
        " the core probes do not explain it, measure such a case with --no-turns."
    )


def _apart(ratio: Estimate) -> str:
    """Such as ``1.9 % less time in turns than alone (-8.6 to 4.0 %)``."""
    change = _change(ratio)
    amount, word = percent(abs(change.value)), "more" if change.value > 0 else "less"
    within = "" if change.interval is None else f" ({percent_interval(change.interval)})"
    return f"{amount} {word} time in turns than alone{within}"


def _cost(found: TurnsCheck) -> str:
    if found.cost is None:
        return (
            "What both ways cost is not compared: times are missing, or cases that did not run alone were measured in "
            "the same turns."
        )
    cost = (
        f"A process in turns cost {found.in_turns_minutes:.2f} GPU-minutes and one alone {found.alone_minutes:.2f}: "
        f"{found.cost:.2f} times as much."
    )
    if found.least_cost is None:
        return cost
    return (
        f"{cost} It cannot be less than {found.least_cost:.2f} times: so much of the time alone is iterations, which "
        "never overlap."
    )
