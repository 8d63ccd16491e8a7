"""Stacks and numbers of nodes side by side, as tables. Pure."""

from collections.abc import Callable, Mapping, Sequence

from reports.analysis import CaseRow
from reports.pairs_of_cases import CasePair
from reports.resampling import Estimate
from reports.tables import MISSING, Html, bullets, count, estimated, html_table, link, percent, seconds

STACK_NAMES: Mapping[str, str] = {
    "kitless": "Newton, kit-less",
    "ovphysx": "PhysX without Isaac Sim",
    "isaacsim": "PhysX and RTX in Isaac Sim",
}


def stacks(pairs: Sequence[CasePair], rows: Mapping[str, CaseRow], *, label: str) -> Html:
    """``rows`` by case id."""
    return html_table(
        ["Case", "Stack", "Total FPS", "Held against", "Total FPS there", "Ratio", "Rounds"],
        (
            [
                pair.case.case.case_id,
                STACK_NAMES[pair.case.case.stack],
                count(rows[pair.case.case.case_id].total_fps),
                STACK_NAMES[pair.base.case.stack],
                count(rows[pair.base.case.case_id].total_fps),
                estimated(pair.over_base),
                _rounds(pair),
            ]
            for pair in pairs
        ),
        label=label,
        text_headings=("Stack", "Held against"),
    )


def nodes(pairs: Sequence[CasePair], rows: Mapping[str, CaseRow], *, label: str) -> Html:
    """``rows`` by case id."""
    return html_table(
        [
            "Case",
            "Nodes",
            "Interconnect",
            "Iteration in s",
            "Longer by",
            "All-reduce",
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
        text_headings=("Nodes", "Interconnect", "Iteration in s", "All-reduce"),
    )


def more_on_nodes() -> Html:
    """Where pages that only touch on nodes send the reader."""
    return bullets([link("One node and several", "nodes.html")])


def signed_percent(value: Estimate | None) -> str:
    return estimated(value, "{:+.1%}".format)


def _against(pair: CasePair, rows: Mapping[str, CaseRow], shown: Callable[[CaseRow], str]) -> str:
    return f"{shown(rows[pair.case.case.case_id])} against {shown(rows[pair.base.case.case_id])}"


def _rounds(pair: CasePair) -> str:
    return f"{len(pair.case.completed)} and {len(pair.base.completed)}"
