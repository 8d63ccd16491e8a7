"""Stacks and numbers of nodes side by side, as tables. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.pairs_of_cases import CasePair
from reports.analysis.rows import CaseRow
from reports.analysis.stack_parts import StackPair, stack_pairs
from reports.analysis.time_split import GPU_MEMORY, PARTS
from reports.display.html import (
    MISSING,
    Html,
    bullets,
    count,
    estimated,
    html_table,
    link,
    paragraph,
    percent,
    percent_interval,
    rounds_text,
    seconds,
    together,
)
from reports.display.series_tables import STACK_NAMES
from reports.sets.version import ResultSet, Version
from suite.statistics.intervals import Estimate
from suite.statistics.speed import Speed


def stacks(pairs: Sequence[StackPair], rows: Mapping[str, CaseRow], *, label: str) -> Html:
    """``rows`` by case id."""
    return html_table(
        ["Case", "Stack", "Total FPS", "Compared with", "Its total FPS", "Ratio", "Verdict", "Rounds"],
        (
            [
                pair.case.case.case_id,
                STACK_NAMES[pair.case.case.stack],
                count(rows[pair.case.case.case_id].total_fps),
                STACK_NAMES[pair.base.case.stack],
                count(rows[pair.base.case.case_id].total_fps),
                estimated(pair.ratio.over_base),
                pair.speed,
                _rounds(pair.ratio),
            ]
            for pair in pairs
        ),
        label=label,
        text_headings=("Stack", "Compared with", "Verdict", "Rounds"),
    )


def parts_of_stacks(pairs: Sequence[StackPair], *, label: str) -> Html:
    """What an iteration of each goes to, what is in use of its GPU, and what is learned."""
    sides = [side for pair in pairs for side in (pair.base, pair.case)]
    shown = [part for part in PARTS.values() if any(part in side.parts_s for side in sides)]
    return html_table(
        ["Case", "Iteration in ms", *(part.capitalize() for part in shown), GPU_MEMORY, "Reward"],
        (
            [
                side.case.case_id,
                _ms(side.iteration_time_s),
                *(_ms(side.parts_s.get(part)) for part in shown),
                MISSING if side.gpu_memory_gb is None else f"{side.gpu_memory_gb:.1f}",
                MISSING if side.reward is None else f"{side.reward:.3g}",
            ]
            for side in sides
        ),
        label=label,
    )


SAID: Final[Mapping[Speed, str]] = {
    "faster": "clear",
    "slower": "clear",
    "within noise": "within noise",
    "too few runs": "too few runs",
}


def stack_in_words(pair: StackPair) -> str:
    """How much longer an iteration takes, where, and whether that is more than noise."""
    ours, theirs = (STACK_NAMES[side.case.stack] for side in (pair.case, pair.base))
    slower_by = pair.ratio.slower_by
    if slower_by is None:
        return f"{pair.case.case.case_id}: {ours} and {theirs} did not both complete."
    said = f"{pair.case.case.case_id}: an iteration takes {_longer(slower_by)} than on {theirs}: {SAID[pair.speed]}."
    longer_s = pair.longer_s
    if pair.speed == "slower" and longer_s:
        most = max(longer_s, key=longer_s.__getitem__)
        said += f" Its largest part is {most}, {1e3 * longer_s[most]:.0f} of {1e3 * sum(longer_s.values()):.0f} ms."
    return said


def cases_in_words(pairs: Iterable[StackPair]) -> list[str]:
    """Say it of every case once: all of it for the first machine, and how much longer it takes on the others."""
    of_cases: dict[str, list[StackPair]] = {}
    for pair in pairs:
        of_cases.setdefault(pair.case.case.case_id, []).append(pair)
    return list(map(_on_machines, of_cases.values()))


def _on_machines(pairs: Sequence[StackPair]) -> str:
    first, *others = sorted(pairs, key=lambda pair: pair.ratio.slower_by is None)
    also = [_longer(pair.ratio.slower_by) for pair in others if pair.ratio.slower_by]
    if not also:
        return stack_in_words(first)
    where = "another machine" if len(also) == 1 else f"{len(also)} other machines"
    return f"{stack_in_words(first)} On {where} it takes {' and '.join(also)}."


def _longer(slower_by: Estimate) -> str:
    sign, word = (1, "longer") if slower_by.value >= 0 else (-1, "shorter")
    said = f"{percent(sign * slower_by.value)} {word}"
    if slower_by.interval is None:
        return said
    low, high = sorted(sign * bound for bound in slower_by.interval)
    return f"{said} ({percent_interval((low, high))})"


def _ms(time_s: float | None) -> str:
    return MISSING if time_s is None else f"{1e3 * time_s:.1f}"


def nodes(pairs: Sequence[CasePair], rows: Mapping[str, CaseRow], *, label: str) -> Html:
    """``rows`` by case id."""
    return html_table(
        [
            "Case",
            "Nodes",
            "Interconnect",
            "Iteration in s",
            "Longer by",
            "All-reduce, waiting included",
            "Rounds",
        ],
        (
            [
                pair.case.case.case_id,
                f"{pair.case.case.nnodes} against {pair.base.case.nnodes}",
                rows[pair.case.case.case_id].interconnect or MISSING,
                _against(pair, rows, lambda row: seconds(row.iteration_time_s)),
                signed_percent(pair.slower_by),
                _against(pair, rows, lambda row: percent(row.all_reduce_share)),
                _rounds(pair),
            ]
            for pair in pairs
        ),
        label=label,
        text_headings=("Nodes", "Interconnect", "Iteration in s", "All-reduce", "Rounds"),
    )


def more_on_nodes() -> Html:
    """Where pages that only touch on nodes send the reader."""
    return bullets([link("One node and several", "nodes.html")])


def signed_percent(value: Estimate | None) -> str:
    return estimated(value, "{:+.1%}".format)


def _against(pair: CasePair, rows: Mapping[str, CaseRow], shown: Callable[[CaseRow], str]) -> str:
    return f"{shown(rows[pair.case.case.case_id])} against {shown(rows[pair.base.case.case_id])}"


def _rounds(pair: CasePair) -> str:
    sides = pair.case, pair.base
    return rounds_text([len(side.completed) for side in sides])


def stacks_in_words(version: Version) -> Html:
    """A sentence for each case on another stack, and the way to their page."""
    campaigns = (one.campaign for one in version.scaling)
    series = (campaign.series(name) for campaign in campaigns for name in campaign.series_names)
    said = cases_in_words(pair for one in series for pair in stack_pairs(one))
    if not said:
        return paragraph("No case ran on two stacks.")
    return together([bullets(said), bullets([link("Stacks side by side", "stacks.html")])])


def stacks_of_set(one: ResultSet) -> Html:
    """The table of a set on the first page: every series in one."""
    found = [pair for name in one.campaign.series_names for pair in stack_pairs(one.campaign.series(name))]
    rows = {row.case_id: row for row in one.campaign.rows}
    words = "The same case on one number of GPUs, on another stack: frames per second, learning included."
    table = stacks(found, rows, label=f"Stacks {one.title}".strip())
    return together([paragraph(words), table, bullets([link("Stacks side by side", "stacks.html")])])


def stacks_of(parts: Sequence[Campaign]) -> Html:
    """The sentences of one series; nothing where it ran on one stack."""
    said = cases_in_words(pair for part in parts for pair in stack_pairs(part))
    return together([bullets(said), bullets([link("Stacks side by side", "stacks.html")])] if said else [])
