"""The end of a campaign in the terminal: what worked, how certain the speeds are, where files are, what is next."""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

from suite.campaign import run_log
from suite.campaign.display.answers import answers
from suite.campaign.display.progress import clock
from suite.campaign.display.tables import print_summary, print_timing_cost
from suite.campaign.state import Campaign
from suite.options.command_line import say
from suite.records.worked import LEGEND, SPEEDS_MEAN_NOTHING, SYMBOLS, State, Worked, has_speeds, what_worked
from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import CONFIDENCE

STYLES: Final[dict[State, str]] = {"works": "green", "failed": "red", "none": "dim", "unknown": "yellow"}
PLAIN: Final[dict[State, str]] = {"works": "yes", "failed": "NO", "none": "-", "unknown": "?"}  # without Unicode
MORE_ROUNDS: Final = 8
WITNESS: Final = "commit or post this hash with a date before you submit: it proves that no run was removed later"
MOST_WORKS: Final = 4  # more are better read on the page


def print_what_worked(
    console: Console, results: Sequence[CaseResult], *, logs: Callable[[Case, int], Path | str]
) -> None:
    """Print a mark for each part by task and library, each failed round with its logs, and speeds as details.

    ``logs`` returns where the logs of a round are.
    """
    worked = what_worked(results)
    symbols = SYMBOLS if console.encoding.startswith("utf") else PLAIN
    if worked:
        console.print(_marks(worked, symbols))
        shown = dict.fromkeys(state for one in worked for state in one.parts.values())
        legend = "; ".join(f"{symbols[state]} {meaning}" for state, meaning in LEGEND.items() if state in shown)
        say(console, legend, style="dim")
    for record in (record for one in worked for record in one.failed):
        say(
            console,
            f"{symbols['failed']} {record.case.case_id} round {record.round} {record.outcome}: {record.reason}\n"
            f"  logs: {logs(record.case, record.round)}",
            style="red",
        )
    if any(result.completed for result in results):
        say(console, f"\nDetails. {SPEEDS_MEAN_NOTHING}", style="dim")
        print_summary(console, results)
        print_timing_cost(console, results)


def _marks(worked: Sequence[Worked], symbols: Mapping[State, str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("what works", overflow="fold")
    for name in ("ranks", *worked[0].parts):
        table.add_column(name, justify="center")
    for one in worked:
        marks = (f"[{STYLES[state]}]{symbols[state]}[/]" for state in one.parts.values())
        table.add_row(one.name, ", ".join(map(str, one.ranks)) or "-", *marks)
    return table


def print_answers(campaign: Campaign) -> None:
    """Print what a campaign of few tasks says, how sure that is, and which command makes it surer."""
    by_work = answers(campaign.results)
    if not 0 < len(by_work) <= MOST_WORKS:
        return
    for name, sentences in by_work.items():
        say(campaign.console, name, style="bold")
        for sentence in sentences:
            say(campaign.console, f"  {sentence}")
    rounds = min(len(result.completed) for result in campaign.results if result.completed)
    say(campaign.console, f"In brackets: the interval at {CONFIDENCE:.0%}.")
    if rounds < MORE_ROUNDS:
        more = f"{_command(campaign)} --repeats {MORE_ROUNDS}"
        say(campaign.console, f"More certain, with {MORE_ROUNDS} rounds (finished ones count): {more}")


def _command(campaign: Campaign) -> str:
    """The command that measures the same cases again."""
    options = campaign.options
    chosen = ["--matrix", options.selection.matrix]
    chosen += [part for name in options.selection.series for part in ("--series", name)]
    chosen += [part for glob in options.selection.case_globs for part in ("--case", glob)]
    chosen += [part for name in options.selection.rl_libraries for part in ("--rl-library", name)]
    chosen += ["--gpus", ",".join(map(str, options.selection.gpus))] if options.selection.gpus else []
    chosen += [part for package in options.setup.with_packages for part in ("--with", package)]
    chosen += ["--out", str(options.results.out)] if options.results.out else []
    return _program("bench", *chosen)


def _program(name: str, *arguments: str) -> str:
    return f"python3 -m nox -s {name}" + (f" -- {shlex.join(arguments)}" if arguments else "")


def print_where_and_next(campaign: Campaign, page: Path | None) -> None:
    """Print how long the command took, where its files are, and what to do next."""
    console = campaign.console
    say(console, f"\nThis took {clock(time.monotonic() - campaign.began_s)}.")
    if page is not None:
        say(console, f"  page:     {page}")
    say(console, f"  results:  {campaign.out / 'cases'}")
    say(console, f"  logs:     {campaign.out / 'raw'}")
    if head := run_log.head(campaign.out):
        say(console, f"  run log:  {head[:12]} ({WITNESS})")
    next_steps = _next_on_gpus() if has_speeds(campaign.results) else _next_elsewhere(campaign)
    say(console, "What next")
    for what, how in next_steps:
        say(console, f"  {what + ':':<46} {how}")


def _next_elsewhere(campaign: Campaign) -> list[tuple[str, str]]:
    retry = [("run what failed again", f"{_command(campaign)} --retry-failed")] if _any_failed(campaign) else []
    return [
        *retry,
        ("check a GPU machine and what to repair", f"{_program('env_check')}, on that machine"),
        ("take a first measurement", f"{_program('bench')}, on that machine"),
        ("measure everything", f"{_program('bench', '--matrix', 'full')}, on that machine"),
        ("measure your own task", "OWN_TASK.md says how"),
    ]


def _next_on_gpus() -> list[tuple[str, str]]:
    return [
        ("see what everything would cost", _program("plan", "--matrix", "full")),
        ("measure every task and number of GPUs", _program("bench", "--matrix", "full")),
        ("measure your own task", "OWN_TASK.md says how"),
    ]


def _any_failed(campaign: Campaign) -> bool:
    return any(record.outcome != "completed" for result in campaign.results for record in result.begun)
