"""Show the progress of a campaign: which run of how many, elapsed time, estimated time left.

A terminal gets a live line. A log file gets a line when a run starts, every half minute, and when it ends.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task
from rich.text import Text

from suite.options.command_line import say
from suite.schema.record import Case, PlannedCase, RunRecord

HEARTBEAT_S: Final = 30.0
PACE_S: Final = 10.0  # of iterations, before they predict the end of a run


def clock(seconds: float) -> str:
    """``h:mm:ss``, or ``m:ss`` below an hour."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class Rest:
    """Estimates the time left: the plan's estimates, scaled by how long finished runs took against theirs.

    The first run of a task may compile kernels for all that follow, so it does not enter that scale. The time that it
    took beyond its estimate is expected again for the first run of each further task.
    """

    def __init__(self, planned: Sequence[PlannedCase]) -> None:
        self._estimates = {item.case.case_id: item.estimated_wall_s for item in planned}
        # Estimated and true duration of runs that have ended [s].
        self._firsts: dict[tuple[str, str], tuple[float | None, float]] = {}
        self._later: list[tuple[float | None, float]] = []

    def add(self, case: Case, wall_time_s: float) -> None:
        took = (self._estimates.get(case.case_id), wall_time_s)
        if self._firsts.setdefault(_kernels(case), took) is not took:
            self._later.append(took)

    def of(self, waiting: Sequence[Case]) -> float | None:
        """Seconds that the runs in ``waiting`` will take one after another; None while nothing is known."""
        expected_s = [self._expected_s(self._estimates.get(case.case_id)) for case in waiting]
        known_s = [value for value in expected_s if value is not None]
        if len(known_s) < len(waiting):
            return None
        return sum(known_s) + len({_kernels(case) for case in waiting} - self._firsts.keys()) * self._compiling_s()

    def _expected_s(self, estimate_s: float | None) -> float | None:
        """Expected duration of a run that compiles nothing [s]; None while nothing is known."""
        ended = self._later or list(self._firsts.values())
        if estimate_s is None:
            return sum(wall_s for _, wall_s in ended) / len(ended) if ended else None
        compared = [(planned_s, wall_s) for planned_s, wall_s in self._later if planned_s is not None]
        if len(compared) < len(self._later) or not compared:
            return estimate_s
        return estimate_s * sum(wall_s for _, wall_s in compared) / sum(planned_s for planned_s, _ in compared)

    def _compiling_s(self) -> float:
        """Extra time of a task's first run [s]: the mean of those that have ended; 0 before one has."""
        first_s = [(self._expected_s(planned_s), wall_s) for planned_s, wall_s in self._firsts.values()]
        longer_s = [max(0.0, wall_s - expected_s) for expected_s, wall_s in first_s if expected_s is not None]
        return sum(longer_s) / len(longer_s) if longer_s else 0.0


def _kernels(case: Case) -> tuple[str, str]:
    """The stack and task whose kernels a run needs."""
    return case.stack, case.task


class Reporter:
    """Prints the progress of a campaign to ``console``."""

    def __init__(
        self, console: Console, planned: Sequence[PlannedCase], waiting: list[Case], *, total: int | None = None
    ) -> None:
        """``total`` is how many of ``waiting`` this reporter shows; None for all of them."""
        self._console = console
        self._rest = Rest(planned)
        self._waiting = waiting
        self._total = len(waiting) if total is None else total
        self._begun = self._ended = 0  # runs
        self._took_s: float | None = None  # a run of the latest block, which had several
        self._started_s = time.monotonic()

    @contextmanager
    def block(self, starts: Sequence[tuple[Case, int]], *, note: str | None = None) -> Iterator[list["RunLine"]]:
        """Show runs that start together (case and round) until all have ended; a line each.

        Runs beyond ``waiting`` are added to the total.
        """
        begun_s, cases = time.monotonic(), [case for case, _ in starts]
        extra = cases[len(self._waiting) :]
        self._waiting += extra
        self._total += len(extra)
        lines = [self._line(case, round_index, cases, note) for case, round_index in starts]
        with Progress(
            _StateColumn(), console=self._console, transient=True, disable=not self._console.is_terminal
        ) as live:
            for line in lines:
                live.add_task("", line=line)  # the column draws the whole line, ten times a second
            yield lines
        for case in cases:
            self._waiting.remove(case if case in self._waiting else self._waiting[0])
        self._took_s = (time.monotonic() - begun_s) / len(cases) if len(cases) > 1 else None

    def _line(self, case: Case, round_index: int, cases: list[Case], note: str | None) -> "RunLine":
        self._begun += 1
        return RunLine(
            title=f"[{self._begun}/{self._total}] {case.case_id} round {round_index}" + (f", {note}" if note else ""),
            iterations=case.iterations,
            campaign_started_s=self._started_s,
            rest_s=self._rest.of(self._waiting),
            own_s=self._rest.of(cases),
            log=None if self._console.is_terminal else self._console,
        )

    def ended(self, record: RunRecord, figures: str) -> None:
        """Print the line that stays after a run."""
        self._ended += 1
        if record.wall_time_s is not None:
            self._rest.add(record.case, record.wall_time_s if self._took_s is None else self._took_s)
        rest_s = self._rest.of(self._waiting)
        mark = {"completed": "[green]completed[/]", "skipped": "[yellow]skipped[/]"}.get(
            record.outcome, f"[red]{record.outcome}[/]"
        )
        wall = "" if record.wall_time_s is None else f" in {clock(record.wall_time_s)}"
        left = "" if rest_s is None or not self._waiting else f", about {clock(rest_s)} left"
        self._console.print(
            f"[{self._ended}/{self._total}] {record.case.case_id} round {record.round}: {mark}{wall}{figures}"
            f" (elapsed {clock(time.monotonic() - self._started_s)}{left})",
            highlight=False,
            soft_wrap=True,
        )
        if record.reason:
            say(self._console, f"    {record.reason}", style="dim")


@dataclass(kw_only=True)
class RunLine:
    """The state of the run in progress. A launcher calls ``update`` with the number of finished iterations."""

    title: str
    iterations: int
    campaign_started_s: float
    rest_s: float | None  # the campaign's time left when this run starts
    own_s: float | None  # this run's part of it
    log: Console | None  # an output that is no terminal: the line is printed there now and with later updates

    def __post_init__(self) -> None:
        self._started_s = self._printed_s = self._heard_s = time.monotonic()
        self._done = 0
        self._first: tuple[int, float] | None = None  # first reported iterations and their time; start-up ends before
        if self.log:
            say(self.log, self.text())

    def text(self) -> str:
        return f"{self.title} {self.state()}"

    def state(self) -> str:
        now_s = time.monotonic()
        state = f"iteration {self._done}/{self.iterations}" if self._done else "starting"
        left_s = self._left_s(now_s)
        left = "" if left_s is None else f", about {clock(left_s)} left"
        own = clock(now_s - self._started_s)
        return f"{state}, {own} (elapsed {clock(now_s - self.campaign_started_s)}{left})"

    def _left_s(self, now_s: float) -> float | None:
        """Time left of the campaign [s]: from the plan; for this run from its own pace once that is known."""
        if self.rest_s is None:
            return None
        elapsed_s = now_s - self._started_s
        if self.own_s is None or self._first is None or self._heard_s - self._first[1] < PACE_S:
            return max(0.0, self.rest_s - elapsed_s)
        done, first_s = self._first
        pace_s = (self._heard_s - first_s) / (self._done - done)
        own_left_s = max(0.0, pace_s * (self.iterations - self._done) - (now_s - self._heard_s))
        return max(0.0, self.rest_s - self.own_s) + own_left_s

    def update(self, done: int) -> None:
        """Note ``done`` finished iterations."""
        if done > self._done:
            self._done, self._heard_s = done, time.monotonic()
            self._first = self._first or (done, self._heard_s)
        if self.log and time.monotonic() - self._printed_s > HEARTBEAT_S:
            self._printed_s = time.monotonic()
            say(self.log, self.text())


class _StateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        """The state comes first, because a narrow terminal cuts the end; a second row would flicker."""
        line: RunLine = task.fields["line"]
        return Text(f"{line.state()}: {line.title}", no_wrap=True, overflow="ellipsis")
