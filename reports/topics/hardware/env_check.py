"""What env_check said of machines, and on which hosts it said the same. Pure."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.analysis.environments import Place
from reports.analysis.machines import Machine
from reports.sets.version import ResultSet, Version
from suite.schema.record import CheckResult, CheckVerdict

WORTH_SHOWING: Final = ("failure", "warning", "not_checked")


@dataclass(frozen=True, kw_only=True)
class Looked:
    """How many machines there are, on how many env_check looked, and on how many a check failed or warned."""

    machines: int
    checked: int
    with_failure: int
    with_warning: int


def looked_at(machines: Sequence[Machine]) -> Looked:
    checked = [machine.places for machine in machines if any(place.environment.checks for place in machine.places)]
    return Looked(
        machines=len(machines),
        checked=len(checked),
        with_failure=_machines_with("failure", checked),
        with_warning=_machines_with("warning", checked),
    )


def what_checks_said(found: Looked) -> str:
    """Say on how many machines a check failed or warned. Pure."""
    failed, warned = found.with_failure or "none", found.with_warning or "none"
    return f"env_check looked at {found.checked}: a check failed on {failed}, and warned on {warned}."


def _machines_with(verdict: CheckVerdict, checked: Sequence[Sequence[Place]]) -> int:
    return sum(
        any(check.verdict == verdict for place in each for check in place.environment.checks) for each in checked
    )


def verdicts(place: Place) -> Hashable:
    """What was said of a host, without what changes by the minute, as free space does."""
    return tuple((check.name, check.verdict, check.fault) for check in place.environment.checks)


def worth_showing(found: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """The checks that did not simply say ok."""
    return tuple(check for check in found if check.verdict in WORTH_SHOWING)


def by_verdict(found: Sequence[CheckResult]) -> Mapping[str, int]:
    """Return verdict -> the number of checks that said it, the most first."""
    return dict(Counter(check.verdict for check in found).most_common())


def alike_hosts(version: Version) -> Sequence[Sequence[tuple[ResultSet, Place]]]:
    """Return the hosts of all sets in groups of which the same is shown."""
    alike: dict[Hashable, list[tuple[ResultSet, Place]]] = {}
    for one in version.sets:
        firsts: dict[Hashable, Place] = {}
        for place in one.campaign.places:
            firsts.setdefault((place.environment.host_label, verdicts(place)), place)
        for place in firsts.values():
            alike.setdefault((verdicts(place), worth_showing(place.environment.checks)), []).append((one, place))
    return [*alike.values()]


def said_of(machine: Machine) -> Sequence[Sequence[CheckResult]]:
    """Return the checks of a machine, once for each distinct set of verdicts."""
    return [*{verdicts(place): place.environment.checks for place in machine.places}.values()]
