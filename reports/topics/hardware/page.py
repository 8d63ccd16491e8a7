"""Where it ran, and what env_check said there."""

from collections.abc import Sequence

from reports.analysis.environments import gpu_name
from reports.analysis.machines import Machine
from reports.display.addresses import address_of_machine
from reports.display.contributors import byline
from reports.display.html import (
    Cell,
    Displayed,
    Html,
    answer_of_page,
    bullets,
    fold,
    heading,
    machine_cell,
    paragraph,
    together,
)
from reports.display.page import has_speeds
from reports.display.resource_tables import slowed_cores_table
from reports.sets.version import ResultSet, Version
from reports.topics.hardware import tables as machine_tables
from reports.topics.hardware.env_check import alike_hosts, looked_at, what_checks_said
from reports.topics.hardware.gpu_page import CPUS
from reports.topics.hardware.tables import cost_table
from suite.files.wording import counted


def environments(version: Version) -> Html:
    """Every machine, then what many of them have in common; whose a set is, where it is not the project's own."""
    hosts = [host for one in version.sets for host in hosts_of(version, one)]
    if not hosts:
        return together(())
    return together(
        [
            machine_tables.hosts_table(hosts, label="Hosts"),
            *(byline(one.contributor) for one in version.sets),
            heading("Platforms"),
            machine_tables.platforms_table([host.place for host in hosts], label="Platforms"),
        ]
    )


def opening(version: Version) -> Html:
    """Return the page's answer: how many machines of which kinds ran, and on how many env_check found something."""
    if not version.machines:
        return answer_of_page("Nothing here was measured by labscale.")
    kinds = sorted({gpu_name(machine.environment) or "CPUs" for machine in version.machines})
    found = looked_at(version.machines)
    machines = f"{counted(found.machines, 'machine')} ran this: {', '.join(kinds)}"
    return answer_of_page(f"{machines}; {what_checks_said(found)}")


def hosts_of(version: Version, one: ResultSet) -> Sequence[machine_tables.Host]:
    """Return every place of a set with its machine."""
    found = [(place, version.machine_of(one, place)) for place in one.campaign.places]
    return [
        machine_tables.Host(title=one.title, machine=machine, shown=_shown(version, machine), place=place)
        for place, machine in found
    ]


def _shown(version: Version, machine: Machine) -> Cell:
    """The name of a machine, with the way to its part of the page of its GPU model where that page is."""
    if not has_speeds(version):
        return machine_cell(machine.name)
    return machine_cell(machine.name, address_of_machine(machine.model or CPUS, machine.slug))


def env_checks(version: Version) -> Html:
    """Fold for fold, what was said of hosts alike, then what reports beside the results say."""
    parts: list[Displayed] = []
    for number, hosts in enumerate(alike_hosts(version), start=1):
        names = [f"{one.title or 'This campaign'}: {version.machine_of(one, place).name}" for one, place in hosts]
        table = machine_tables.checks(hosts[0][1].environment.checks, {}, label=f"Checks of hosts, {number}")
        parts.append(fold(_of_hosts(names), [bullets(names), table] if len(names) > 1 else [table]))
    for report in version.env_checks:
        table = machine_tables.checks(report.checks, report.repairs, label=f"Checks of {report.name}")
        parts.append(fold(f"{report.host}, stack {report.stack} ({report.name})", [table]))
    return together(parts)


def _of_hosts(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"The same of {len(names)} hosts"


def slowed_cores(version: Version) -> Html:
    """What slowed cores did in each set."""
    return slowed_cores_table(version.sets) or paragraph("No set has slowed cores, or none was probed.")


def cost(version: Version) -> Html:
    """What each set cost, against a plain loop over Isaac Lab's own command line."""
    return cost_table([(one.title or "This campaign", found) for one in version.shown if (found := one.campaign.cost)])
