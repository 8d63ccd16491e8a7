"""What remarks on rounds say besides figures.json: what did not settle, and what a host took from them. Pure."""

from collections.abc import Mapping

from reports.display.topic import Figures
from reports.sets.version import Version
from suite.schema.record import CaseResult
from suite.statistics.round_flags import others_percent, stolen_shares, unsteady_rounds
from suite.statistics.steady import SteadyWindow


def remarks_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures by round, of the cases whose rounds are remarked on."""
    return {
        f"{one.name}: {result.case.case_id}": figures
        for one in version.scaling
        for result in one.campaign.results
        if (figures := _of_case(result))
    }


def _of_case(result: CaseResult) -> Figures:
    unsteady = unsteady_rounds(result.completed)
    found: Mapping[str, Mapping[int, object]] = {
        "unsteady": {number: _window(window) for number, window in unsteady.items()},
        "stolen_cpu_share": stolen_shares(result.completed),
        "other_processes_cpu_percent": others_percent(result.completed),
    }
    return {name: {str(number): rounds[number] for number in rounds} for name, rounds in found.items() if rounds}


def _window(window: SteadyWindow) -> Figures:
    return {
        "iterations": window.length,
        "later_half_longer_by": window.change,
        "warm_up_may_be_longer": window.is_at_limit,
    }
