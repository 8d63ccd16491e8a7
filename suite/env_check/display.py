"""Prints a report: a table of the needed checks, then the repairs, then the checks that the stack does not need."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from suite.env_check.check import Check, ExitCode
from suite.env_check.nodes import Difference, NodeFailure
from suite.env_check.report import Report
from suite.env_check.request import is_needed
from suite.files.wording import counted

WORDS: Final = {
    "ok": "[green]ok[/]",
    "warning": "[yellow]warning[/]",
    "failure": "[red]failure[/]",
    "not_checked": "[dim]not checked[/]",
    "not_needed": "[dim]not needed[/]",
}
NOT_MADE: Final = "could not be made"
WORST: Final[Mapping[ExitCode, str]] = {0: "ok", 1: "warning", 2: "failure"}
VERDICTS: Final = {
    0: "[green]The stack {stack} can run here on {device}.[/]",
    1: "[yellow]The stack {stack} can run here on {device}, with the reservations above.[/]",
    2: "[red]The stack {stack} cannot run here on {device} as asked for: see the repairs above.[/]",
}


def _table(*narrow: str) -> Table:
    """Return a table that begins with columns which never wrap."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in narrow:
        table.add_column(heading, no_wrap=True)
    return table


def print_report(console: Console, report: Report) -> None:
    needed = [check for check in report.checks if is_needed(check, report.needed)]
    table = _table("check", "verdict")
    table.add_column("found", overflow="fold", ratio=3)
    table.add_column("wanted", overflow="fold", ratio=2)
    not_checked: dict[str, list[str]] = {}  # reason -> checks: without a GPU, many have the same
    for check in needed:
        if check.verdict == "not_checked":
            not_checked.setdefault(check.found, []).append(check.name)
        else:
            table.add_row(check.name, WORDS[check.verdict], escape(check.found), escape(check.wanted))
    console.print(table)
    for reason, names in not_checked.items():
        console.print(f"[dim]not checked ({escape(reason)}):[/] {', '.join(names)}", highlight=False)
    _print_repairs(console, (*report.failures, *report.warnings))
    for check in report.unproved:
        console.print(f"[yellow]{check.name}[/] {NOT_MADE}: {escape(check.found)}", highlight=False)
    _print_rest(console, report)
    verdict = VERDICTS[report.exit_code].format(stack=report.stack, device=report.device)
    console.print(f"\n{verdict} ({counted(len(report.checks), 'check')} in {report.duration_s:.1f} s)", highlight=False)


def print_faults(console: Console, report: Report) -> None:
    """Print what `bench` shows before it starts: one summary line, then each fault that matters, with its repair."""
    bad = [*report.failures, *report.warnings]
    summary = (
        f"{len(bad)} of {counted(len(report.checks), 'check')} found a fault"
        if bad
        else f"{counted(len(report.checks), 'check')}, no fault"
    )
    console.print(f"env_check: {summary} that concerns {report.stack} on {report.device}", highlight=False)
    _print_repairs(console, bad)


def _print_repairs(console: Console, checks: Sequence[Check]) -> None:
    if not checks:
        return
    table = _table("check", "fault")
    table.add_column("repair", overflow="fold")
    for check in checks:
        colour = "red" if check.verdict == "failure" else "yellow"
        table.add_row(check.name, f"[{colour}]{check.fault}[/]", escape(check.repair or ""))
    console.print(table)


def _print_rest(console: Console, report: Report) -> None:
    """Print one line for each feature that the stack does not need, with its first fault and how to repair it."""
    rest = [check for check in report.checks if not is_needed(check, report.needed)]
    if not rest:
        return
    console.print(f"Not needed by {report.stack} on {report.device}:", highlight=False)
    for feature in dict.fromkeys(check.feature for check in rest):
        faults = [check for check in rest if check.feature == feature and check.verdict == "not_needed"]
        if not faults:
            verdicts = [check.verdict for check in rest if check.feature == feature]
            text = f"{counted(verdicts.count('ok'), 'check')} ok, {verdicts.count('not_checked')} not checked"
            console.print(f"  [bold]{feature}[/]: {text}", highlight=False)
            continue
        first = faults[0]
        more = f" (and {counted(len(faults) - 1, 'more fault')})" if len(faults) > 1 else ""
        hint = first.repair if feature == "cuda" else f"--require {feature} says how to repair it."
        console.print(
            f"  [bold]{feature}[/]: {escape(first.found)}{more}. [dim]{escape(hint or '')}[/]", highlight=False
        )


def print_nodes(
    console: Console,
    reports: Mapping[str, Report],
    failures: Sequence[NodeFailure],
    differing: Sequence[Difference],
) -> None:
    """Print one line for each node, then the differences between nodes."""
    table = _table()
    for heading in ("node", "verdict", "faults"):
        table.add_column(heading, overflow="fold")
    for node, report in reports.items():
        faults = [f"{check.name}: {check.fault}" for check in report.checks if check.verdict in ("failure", "warning")]
        faults += [f"{check.name}: {NOT_MADE}" for check in report.unproved]
        table.add_row(node, WORDS[WORST[report.exit_code]], escape(", ".join(faults)))
    for failure in failures:
        table.add_row(failure.node, WORDS["failure"], escape(f"{failure.fault}: {failure.message}. {failure.repair}"))
    console.print(table)
    for difference in differing:
        console.print(f"[yellow]differs[/] {escape(str(difference))}", highlight=False)
    if not differing and len(reports) > 1:
        console.print(f"[green]{len(reports)} nodes are alike.[/]", highlight=False)
