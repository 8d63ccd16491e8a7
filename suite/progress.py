"""What the user sees while a campaign runs: which run of how many, elapsed time, estimated rest.

A terminal gets a live line; a log file gets a line when a run starts and ends and every half minute between.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task
from rich.text import Text

from suite.schema import Case, PlannedCase, RunRecord

HEARTBEAT_S: Final = 30.0


def clock(seconds: float) -> str:
    """``h:mm:ss``, or ``m:ss`` below an hour."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class Rest:
    """Estimates the time that is left: the plan's estimates, corrected by how the runs so far compared to theirs."""

    def __init__(self, planned: list[PlannedCase]) -> None:
        self._estimates = {item.case.case_id: item.estimated_wall_s for item in planned}
        self._measured_s: list[float] = []
        self._estimated_s: list[float] = []

    def add(self, case: Case, wall_time_s: float) -> None:
        estimate = self._estimates.get(case.case_id)
        self._measured_s.append(wall_time_s)
        if estimate is not None:
            self._estimated_s.append(estimate)

    def of(self, waiting: list[Case]) -> float | None:
        """Seconds that ``waiting`` will take; None while nothing is known."""
        mean_s = sum(self._measured_s) / len(self._measured_s) if self._measured_s else None
        complete = len(self._estimated_s) == len(self._measured_s) > 0
        correction = sum(self._measured_s) / sum(self._estimated_s) if complete else 1.0
        total_s = 0.0
        for case in waiting:
            estimate = self._estimates.get(case.case_id)
            expected_s = mean_s if estimate is None else estimate * correction
            if expected_s is None:
                return None
            total_s += expected_s
        return total_s


class Reporter:
    """Prints a campaign's course to ``console``."""

    def __init__(self, console: Console, planned: list[PlannedCase], waiting: list[Case]) -> None:
        self._console = console
        self._rest = Rest(planned)
        self._waiting = waiting
        self._total = len(waiting)
        self._started_s = time.monotonic()

    def expect(self, case: Case) -> None:
        """Add a run at the end: one that was not known to be needed when the campaign began."""
        self._waiting.append(case)
        self._total += 1

    @property
    def waiting(self) -> int:
        """Runs known of that have not ended."""
        return len(self._waiting)

    @contextmanager
    def run(self, case: Case, round_index: int) -> Iterator["RunLine"]:
        """Show one run from its start to its end."""
        number = self._total - len(self._waiting) + 1
        line = RunLine(
            title=f"[{number}/{self._total}] {case.case_id} round {round_index}",
            iterations=case.iterations,
            campaign_started_s=self._started_s,
            rest_s=self._rest.of(self._waiting),
        )
        live = Progress(
            _StateColumn(line), console=self._console, transient=True, disable=not self._console.is_terminal
        )
        if not self._console.is_terminal:
            line.print_to(self._console)
        with live:
            live.add_task("")  # the column says it all, redrawn ten times a second
            yield line
        del self._waiting[0]

    def ended(self, record: RunRecord, figures: str) -> None:
        """Print the one line that stays."""
        if record.wall_time_s is not None:
            self._rest.add(record.case, record.wall_time_s)
        rest_s = self._rest.of(self._waiting)
        done = self._total - len(self._waiting)
        mark = {"completed": "[green]completed[/]", "skipped": "[yellow]skipped[/]"}.get(
            record.outcome, f"[red]{record.outcome}[/]"
        )
        wall = "" if record.wall_time_s is None else f" in {clock(record.wall_time_s)}"
        left = "" if rest_s is None or not self._waiting else f", about {clock(rest_s)} left"
        self._console.print(
            f"[{done}/{self._total}] {record.case.case_id} round {record.round}: {mark}{wall}{figures}"
            f" (elapsed {clock(time.monotonic() - self._started_s)}{left})",
            highlight=False,
            soft_wrap=True,
        )
        if record.reason:
            self._console.print(f"    {record.reason}", style="dim", highlight=False, markup=False, soft_wrap=True)


class RunLine:
    """The state of the run in progress; ``update`` is what a launcher calls with the iterations done."""

    def __init__(self, *, title: str, iterations: int, campaign_started_s: float, rest_s: float | None) -> None:
        self._title, self._iterations = title, iterations
        self._campaign_started_s, self._rest_s = campaign_started_s, rest_s
        self._started_s = self._printed_s = time.monotonic()
        self._done = 0
        self._log: Console | None = None

    def text(self) -> str:
        now_s = time.monotonic()
        elapsed_s = now_s - self._started_s
        state = f"iteration {self._done}/{self._iterations}" if self._done else "starting"
        left = "" if self._rest_s is None else f", about {clock(max(0.0, self._rest_s - elapsed_s))} left"
        return f"{self._title} {state}, {clock(elapsed_s)} (elapsed {clock(now_s - self._campaign_started_s)}{left})"

    def print_to(self, console: Console) -> None:
        """Print the line now and again with later updates, for an output that is not a terminal."""
        self._log = console
        console.print(self.text(), highlight=False, markup=False, soft_wrap=True)

    def update(self, done: int) -> None:
        """Note ``done`` finished iterations."""
        self._done = done
        if self._log and time.monotonic() - self._printed_s > HEARTBEAT_S:
            self._printed_s = time.monotonic()
            self.print_to(self._log)


class _StateColumn(ProgressColumn):
    def __init__(self, line: RunLine) -> None:
        super().__init__()
        self._line = line

    def render(self, task: Task) -> Text:  # noqa: ARG002  (rich's signature)
        return Text(self._line.text(), no_wrap=True, overflow="ellipsis")  # a second row would flicker
