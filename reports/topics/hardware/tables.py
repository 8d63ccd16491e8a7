"""Where results came from, as tables: machines, versions, and what env_check said there. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from reports.analysis.cost import Cost, timed_points
from reports.analysis.environments import SHORT_HASH_LENGTH, Place, commit_of
from reports.analysis.machines import Machine
from reports.display.html import MISSING, Cell, Html, count, html_table, paragraph, together
from reports.topics.hardware.env_check import by_verdict, worth_showing
from suite.files.wording import counted
from suite.schema.record import CheckResult


def cost_table(costs: Sequence[tuple[str, Cost]]) -> Html:
    """GPU-minutes of a point, of labscale and of the loop: a row for each set; a sentence without any."""
    if not costs:
        return paragraph("No training was timed on GPUs, so there is no loop over upstream's commands to compare with.")
    table = html_table(
        ["Set", "Points", "In use", "Loop, in use", "Times", "Host", "Loop, host", "Times"],
        [_row(title, found) for title, found in costs],
        label="GPU-minutes of a published point",
    )
    timed, points = timed_points(found for _, found in costs)
    if timed == points:
        return table
    assumed = (
        f"Processes of the loop were timed for {timed} of {counted(points, 'point')}. Those of the others are assumed"
        " to take as long as ours."
    )
    return together([table, paragraph(assumed)])


def _row(title: str, found: Cost) -> list[str]:
    ours, loop = found.spent_of_a_point, found.loop_of_a_point
    in_use, host = (
        (f"{own:.1f}", f"{of_loop:.1f}") for own, of_loop in ((ours.in_use, loop.in_use), (ours.host, loop.host))
    )
    return [title, str(found.points), *in_use, f"{found.in_use_ratio:.2f}", *host, f"{found.host_ratio:.2f}"]


@dataclass(frozen=True, kw_only=True)
class Host:
    """A machine in one set, with the set's title, if it has one."""

    title: str
    machine: Machine
    shown: Cell  # its name, with the way to its page where there is one
    place: Place


def hosts_table(hosts: Sequence[Host], *, label: str) -> Html:
    """A row for each machine of each set.

    What many machines have in common is a platform, whose number is that of ``platforms_table``.
    """
    headings = ["Set", "Machine", "Label in its records", "Commit of labscale", "Measured (UTC)"]
    headings += ["Memory in GB", "Platform", "Rounds"]
    skipped = 0 if any(host.title for host in hosts) else 1
    platforms = _platforms([host.place for host in hosts])
    cells = (_host_row(those, platforms.index(_platform_facts(those[0].place)) + 1) for those in rows_of_hosts(hosts))
    return html_table(headings[skipped:], (row[skipped:] for row in cells), label=label, num_text_columns=5 - skipped)


def rows_of_hosts(hosts: Sequence[Host]) -> Sequence[Sequence[Host]]:
    """Return the hosts that share a row: those of one set that differ in nothing that the table shows."""
    rows: dict[tuple[object, ...], list[Host]] = {}
    for host in hosts:
        rows.setdefault((host.title, *_host_facts(host), _platform_facts(host.place)), []).append(host)
    return [*rows.values()]


def rounds_of_row(hosts: Sequence[Host]) -> int:
    return sum(host.place.num_rounds for host in hosts)


def _host_row(hosts: Sequence[Host], platform: int) -> list[Cell]:
    first, measured = hosts[0], _measured(hosts)
    _, where, commit, memory_gb = _host_facts(first)
    return [first.title, first.shown, where, commit, measured, memory_gb, str(platform), str(rounds_of_row(hosts))]


def platforms_table(places: Sequence[Place], *, label: str) -> Html:
    """A column for each distinct processor, driver and set of versions, in order of first appearance."""
    found = [dict(facts) for facts in _platforms(places)]
    headings = ["Fact", *(f"Platform {number}" for number in range(1, len(found) + 1))]
    rows = ([name, *(column[name] or MISSING for column in found)] for name in found[0])
    return html_table(headings, rows, label=label, num_text_columns=len(headings))


def _platforms(places: Sequence[Place]) -> list[tuple[tuple[str, str | None], ...]]:
    return list(dict.fromkeys(map(_platform_facts, places)))


def _host_facts(host: Host) -> tuple[str, str, str, str]:
    where = host.place.environment
    return (
        host.machine.slug,
        where.host_label or MISSING,
        commit_of(where) or MISSING,
        count(where.memory_gb),
    )


def started_of_row(hosts: Sequence[Host]) -> tuple[datetime, datetime] | None:
    """Return the first start of a round and the last, in UTC; None if no round says when it started."""
    places = [host.place for host in hosts]
    starts = [place.first_started_utc for place in places] + [place.last_started_utc for place in places]
    known = sorted(datetime.fromisoformat(start).astimezone(UTC) for start in starts if start is not None)
    return (known[0], known[-1]) if known else None


def _measured(hosts: Sequence[Host]) -> str:
    started = started_of_row(hosts)
    if started is None:
        return MISSING
    first, last = started
    until = f"{last:%H:%M}" if last.date() == first.date() else f"{last:%Y-%m-%d %H:%M}"
    return f"{first:%Y-%m-%d %H:%M} to {until}"


def _platform_facts(place: Place) -> tuple[tuple[str, str | None], ...]:
    where = place.environment
    return (
        ("Processor", where.cpu_model),
        ("GPU driver", where.driver_version),
        ("CUDA of the driver", where.cuda_driver_version),
        ("Operating system", where.os),
        ("Kernel", where.kernel),
        ("labscale", where.suite_version),
        ("Hash of the worker's pins", where.worker_pins_sha256 and where.worker_pins_sha256[:SHORT_HASH_LENGTH]),
        ("Packages added to the worker", ", ".join(where.worker_packages) or None),
        ("Hash of the assets", where.asset_sha256 and where.asset_sha256[:SHORT_HASH_LENGTH]),
        ("Packages", ", ".join(f"{name} {version}" for name, version in place.versions.items()) or None),
    )


def checks(found: Sequence[CheckResult], repairs: Mapping[str, str], *, label: str) -> Html:
    """How many checks said what, and every one that did not say ok."""
    if not found:
        return paragraph("env_check was not part of labscale yet when this was measured, so nothing is known.")
    said = ", ".join(f"{number} {verdict.replace('_', ' ')}" for verdict, number in by_verdict(found).items())
    shown = worth_showing(found)
    if not shown:
        return paragraph(f"{counted(len(found), 'check')}: {said}.")
    table = html_table(
        ["Check", "Verdict", "Found", *(["Repair"] if repairs else [])],
        (
            [
                check.name,
                check.verdict.replace("_", " "),
                check.found,
                *([repairs.get(check.name, MISSING)] if repairs else []),
            ]
            for check in shown
        ),
        label=label,
        num_text_columns=4,
    )
    return together([paragraph(f"{counted(len(found), 'check')}: {said}."), table])
