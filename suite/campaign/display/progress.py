"""Show the progress of a campaign: which run of how many, elapsed time, estimated time left.

A terminal gets a live line. A log file gets a line when a run starts, every half minute, and when it ends.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task
from rich.text import Text

from suite.matrix.resources import time_of_block_s
from suite.options.command_line import say
from suite.schema.record import Case, PlannedCase, RunRecord

HEARTBEAT_S: Final = 30.0
PACE_S: Final = 10.0  # of iterations, before they predict the end of a run


def clock(seconds: float) -> str:
    """``h:mm:ss``, or ``m:ss`` below an hour."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


@dataclass(frozen=True)
class _Took:
    """A block that has ended: its estimated and its true duration."""

    runs: int
    planned_s: float | None
    wall_s: float


class Rest:
    """Estimates the time left: the plan's estimates of blocks, scaled by how long finished ones took against theirs.

    The first block of a task may compile kernels for all that follow, so it does not enter that scale. The time that it
    took beyond its estimate is expected again for the first run of each further task.
    """

    def __init__(self, items: Iterable[PlannedCase]) -> None:
        self._items = {item.case.case_id: item for item in items}
        self._compiled: set[tuple[str, str]] = set()  # stacks and tasks of blocks that have ended
        self._firsts: list[_Took] = []  # blocks with the first run of a task
        self._later: list[_Took] = []

    def add(self, block: Sequence[Case], wall_s: float) -> None:
        """Note how long the runs of a block took together."""
        took = _Took(len(block), self._planned_s(block), wall_s)
        new = {_kernels(case) for case in block} - self._compiled
        self._compiled |= new
        (self._firsts if new else self._later).append(took)

    def of(self, blocks: Sequence[Sequence[Case]]) -> float | None:
        """Seconds that the runs of ``blocks`` will take; None while nothing is known."""
        expected_s = [self._expected_s(self._planned_s(block), len(block)) for block in blocks]
        known_s = [value for value in expected_s if value is not None]
        if len(known_s) < len(blocks):
            return None
        new = {_kernels(case) for block in blocks for case in block} - self._compiled
        return sum(known_s) + len(new) * self._compiling_s()

    def _planned_s(self, block: Sequence[Case]) -> float | None:
        items = [item for case in block if (item := self._items.get(case.case_id))]
        return time_of_block_s(items) if len(items) == len(block) else None

    def _expected_s(self, planned_s: float | None, runs: int) -> float | None:
        """Expected duration of runs that compile nothing [s]; None while nothing is known."""
        ended = self._later or self._firsts
        if planned_s is None:
            return runs * sum(took.wall_s for took in ended) / sum(took.runs for took in ended) if ended else None
        compared_s = [took.planned_s for took in self._later if took.planned_s is not None]
        if len(compared_s) < len(self._later) or not compared_s:
            return planned_s
        return planned_s * sum(took.wall_s for took in self._later) / sum(compared_s)

    def _compiling_s(self) -> float:
        """Extra time of a task's first run [s]: the mean of those that have ended; 0 before one has."""
        first_s = [(self._expected_s(took.planned_s, took.runs), took.wall_s) for took in self._firsts]
        longer_s = [max(0.0, wall_s - expected_s) for expected_s, wall_s in first_s if expected_s is not None]
        return sum(longer_s) / len(self._compiled) if self._compiled else 0.0


def _kernels(case: Case) -> tuple[str, str]:
    """The stack and task whose kernels a run needs."""
    return case.stack, case.task


class Reporter:
    """Prints the progress of a campaign to ``console``."""

    def __init__(
        self,
        console: Console,
        items: Iterable[PlannedCase],
        waiting: Sequence[Sequence[Case]],
        *,
        total: int | None = None,
    ) -> None:
        """``waiting``: the blocks to run, in order; ``total``: how many of their runs are shown, None for all."""
        self._console = console
        self._rest = Rest(items)
        self._waiting = list(map(list, waiting))
        self._total = sum(map(len, waiting)) if total is None else total
        self._begun = self._ended = 0  # runs
        self._block: Sequence[Case] = ()  # the latest
        self._took_s = 0.0  # the latest block
        self._started_s = time.monotonic()

    @contextmanager
    def block(self, starts: Sequence[tuple[Case, int]], *, note: str | None = None) -> Iterator[list["RunLine"]]:
        """Show runs that start together (case and round) until all have ended; a line each.

        Runs beyond ``waiting`` are added to the total.
        """
        begun_s, self._block = time.monotonic(), [case for case, _ in starts]
        for case in self._block:
            block = next((block for block in self._waiting if case in block), None)
            if block is None:
                self._total += 1
            else:
                block.remove(case)
        self._waiting = [block for block in self._waiting if block]
        lines: list[RunLine] = []
        for case, round_index in starts:
            lines.append(self._line(case, round_index, note, lines))
        with Progress(
            _StateColumn(), console=self._console, transient=True, disable=not self._console.is_terminal
        ) as live:
            for line in lines:
                live.add_task("", line=line)  # the column draws the whole line, ten times a second
            yield lines
        self._took_s = time.monotonic() - begun_s

    def _line(self, case: Case, round_index: int, note: str | None, block: list["RunLine"]) -> "RunLine":
        self._begun += 1
        return RunLine(
            title=f"[{self._begun}/{self._total}] {case.case_id} run {round_index}" + (f", {note}" if note else ""),
            iterations=case.iterations,
            campaign_started_s=self._started_s,
            block_s=self._rest.of([self._block]),
            after_s=self._rest.of(self._waiting),
            block=block,
            log=None if self._console.is_terminal else self._console,
        )

    def ended(self, runs: Sequence[tuple[RunRecord, str]]) -> None:
        """Print the lines that stay after the runs of a block, each with its figures. Its other runs wait again."""
        took = [(record.case, record.wall_time_s) for record, _ in runs if record.wall_time_s is not None]
        if took:
            wall_s = self._took_s if len(self._block) > 1 else took[0][1]
            self._rest.add([case for case, _ in took], wall_s)
        ended = [record.case for record, _ in runs]
        crowded = [[case] for case in self._block if case not in ended]
        self._waiting[:0] = crowded
        self._begun -= len(crowded)
        for record, figures in runs:
            self._print(record, figures)

    def _print(self, record: RunRecord, figures: str) -> None:
        self._ended += 1
        rest_s = self._rest.of(self._waiting)
        mark = {"completed": "[green]completed[/]", "skipped": "[yellow]skipped[/]"}.get(
            record.outcome, f"[red]{record.outcome}[/]"
        )
        wall = "" if record.wall_time_s is None else f" in {clock(record.wall_time_s)}"
        left = "" if rest_s is None or not self._waiting else f", about {clock(rest_s)} left"
        self._console.print(
            f"[{self._ended}/{self._total}] {record.case.case_id} run {record.round}: {mark}{wall}{figures}"
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
    block_s: float | None  # how long this run's block takes
    after_s: float | None  # the campaign's time left after it
    block: Sequence["RunLine"]  # all lines of the block
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
        """Time left of the campaign [s]; of its block as long as its slowest run, without a pace as planned."""
        if self.block_s is None or self.after_s is None:
            return None
        planned_s = self.block_s - (now_s - self._started_s)
        runs_s = [line.own_left_s(now_s) for line in self.block or [self]]  # the first line is shown before it is there
        return self.after_s + max(0.0, *(planned_s if left_s is None else left_s for left_s in runs_s))

    def own_left_s(self, now_s: float) -> float | None:
        """Time left of this run [s], by its own pace; None before it has one."""
        if self._done >= self.iterations:
            return 0.0
        if self._first is None or self._heard_s - self._first[1] < PACE_S:
            return None
        done, first_s = self._first
        pace_s = (self._heard_s - first_s) / (self._done - done)
        return max(0.0, pace_s * (self.iterations - self._done) - (now_s - self._heard_s))

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
