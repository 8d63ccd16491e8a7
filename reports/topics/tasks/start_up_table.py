"""Start-ups of processes, as a table."""

from collections.abc import Sequence

from reports.analysis.start_ups import StartUps, median_of_known, start_ups
from reports.display.html import MISSING, Html, html_table, paragraph, seconds
from suite.schema.record import CaseResult


def start_up_table(results: Sequence[CaseResult], *, label: str) -> Html:
    """Every case that completed a round, in the order given."""
    found = [(result.case, start_ups(result)) for result in results if result.completed]
    if not found:
        return paragraph("No case completed a round, so nothing is known of its start.")
    unknown = any(None in starts.by_kind for _, starts in found)
    return html_table(
        [
            "Case",
            "Ranks",
            "Warm start in s",
            "Cold start in s",
            "Kernels compiled",
            *(["Warm or cold in s"] if unknown else []),
            "Scene in s",
            "First iteration in s",
            "Rounds warm, cold",
        ],
        (
            [
                case.case_id,
                str(case.world_size),
                seconds(starts.median_s("warm")),
                seconds(starts.median_s("cold")),
                _range(starts.kernels_compiled),
                *([seconds(starts.median_s(None))] if unknown else []),
                seconds(median_of_known([start.phases_s.get("environment_creation") for start in starts.usual])),
                seconds(median_of_known([start.first_iteration_s for start in starts.usual])),
                _rounds(starts),
            ]
            for case, starts in found
        ),
        label=label,
    )


def _range(counts: Sequence[int]) -> str:
    if not counts:
        return MISSING
    return str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"


def _rounds(starts: StartUps) -> str:
    warm, cold, unknown = (len(starts.by_kind.get(kind, ())) for kind in ("warm", "cold", None))
    if not warm + cold:
        return MISSING
    return f"{warm}, {cold}" + (f" and {unknown} not known" if unknown else "")
