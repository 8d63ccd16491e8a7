"""What the nodes of a campaign say of themselves, as one: nodes that are not alike are refused, by name."""

from collections.abc import Callable, Mapping, Sequence

from pydantic import ValidationError

from suite.env_check.nodes import differences
from suite.env_check.report import Report
from suite.errors import EnvironmentNotFit, SchedulerError
from suite.files.paths import ROOT
from suite.launch.nodes import facts


def as_one(said: Mapping[str, str], *, say: Callable[[str], None], differing_is_fine: bool) -> facts.NodeFacts:
    """The environment of the first node, and the worst report of all, from what ``suite.launch.nodes.facts`` printed.

    Raises:
        SchedulerError: a node printed anything else.
        EnvironmentNotFit: the nodes differ, and ``differing_is_fine`` is False.
    """
    there = {host: parsed(host, text, facts.read) for host, text in said.items()}
    for difference in differences({host: found.report for host, found in there.items()}):
        say(f"The hosts differ: {difference}")
        if not difference.subject.startswith("check ") and not differing_is_fine:
            raise EnvironmentNotFit(
                f"The hosts differ: {difference}. The slowest of them would set every figure. Leave out those that "
                "differ, or run anyway with --ignore-env-check."
            )
    first = next(iter(there.values()))
    return facts.NodeFacts(environment=first.environment, report=worst([found.report for found in there.values()]))


def worst(reports: Sequence[Report]) -> Report:
    """The first report with a failure, else the first with a warning: what only one host finds must be shown."""
    return min(reports, key=lambda report: (not report.failures, not report.warnings))


def parsed[T](host: str, text: str, parse: Callable[[str], T]) -> T:
    """What the host printed. Raises SchedulerError if that is anything else."""
    try:
        return parse(text)
    except (ValueError, ValidationError) as error:
        raise SchedulerError(
            f"{host} gives another answer than expected ({error}). Its login scripts must print nothing, and "
            f"the checkout in {ROOT} must be the same as here."
        ) from error
