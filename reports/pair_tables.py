"""Stacks and numbers of nodes side by side, as tables. Pure."""

from collections.abc import Mapping, Sequence

from reports.analysis import CaseRow
from reports.pairs_of_cases import CasePair
from reports.resampling import Estimate
from reports.tables import Html, count, estimated, html_table, percent, seconds

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
            "Iteration in s",
            "On fewer nodes in s",
            "Longer by",
            "All-reduce",
            "On fewer nodes",
            "Rounds",
        ],
        (
            [
                pair.case.case.case_id,
                f"{pair.case.case.nnodes} against {pair.base.case.nnodes}",
                *(seconds(row.iteration_time_s) for row in _both(pair, rows)),
                signed_percent(pair.slower_by),
                *(percent(row.all_reduce_share) for row in _both(pair, rows)),
                _rounds(pair),
            ]
            for pair in pairs
        ),
        label=label,
        text_headings=("Nodes",),
    )


def signed_percent(value: Estimate | None) -> str:
    return estimated(value, "{:+.1%}".format)


def _both(pair: CasePair, rows: Mapping[str, CaseRow]) -> tuple[CaseRow, CaseRow]:
    return rows[pair.case.case.case_id], rows[pair.base.case.case_id]


def _rounds(pair: CasePair) -> str:
    return f"{len(pair.case.completed)} and {len(pair.base.completed)}"
