"""Rounds in threads of their own, each on GPUs and cores that no other has. What to start is decided elsewhere.

A thread only waits for the processes of its round, which the kernel ends with it (``suite.launch.processes``). What
reads or decides on the campaign's folder stays in the thread that owns the lanes. On leaving the block, however that
is, no round runs any more: those that had not finished have no record and are run again by the next command.
"""

import itertools
import queue
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Final, Self

from suite.campaign.folder import Folder
from suite.campaign.packing import order as packing
from suite.campaign.progress import Reporter
from suite.campaign.rounds import Place, run_round
from suite.campaign.state import Campaign
from suite.errors import Interrupted
from suite.schema.record import PlannedCase, RunRecord

LOOK_S: Final = 1.0


@dataclass(kw_only=True, eq=False)
class InLane:
    """A round from its start to its end."""

    item: PlannedCase
    round_index: int
    slots: tuple[int, ...]
    compiles: str | None
    started_s: float = field(default_factory=time.monotonic)
    neighbours: int = 0  # the most at a time
    outcome: RunRecord | BaseException | None = None  # None while it runs
    begun: bool = False
    ended: threading.Event = field(default_factory=threading.Event)

    def expected(self) -> packing.Running:
        wall_s = self.item.estimated_wall_s
        left_s = None if wall_s is None else max(0.0, wall_s - (time.monotonic() - self.started_s))
        return packing.Running(slots=self.slots, left_s=left_s, compiles=self.compiles)


class Lanes:
    """The rounds that run now."""

    def __init__(self, campaign: Campaign, reporter: Reporter) -> None:
        self._campaign, self._reporter = campaign, reporter
        self._stop = threading.Event()
        self._ended: queue.SimpleQueue[InLane] = queue.SimpleQueue()
        self.running: list[InLane] = []

    def start(
        self,
        folder: Folder,
        item: PlannedCase,
        round_index: int,
        slots: tuple[int, ...],
        *,
        compiles: str | None = None,
        with_upstream: bool = True,
    ) -> InLane:
        """Start a round on these slots, none of which another may have; upstream's too where that was asked for."""
        taken = set(itertools.chain.from_iterable(each.slots for each in self.running))
        if not taken.isdisjoint(slots):
            raise AssertionError(f"slots {sorted(taken.intersection(slots))} are taken")
        new = InLane(item=item, round_index=round_index, slots=slots, compiles=compiles)
        self.running.append(new)
        for each in self.running:
            each.neighbours = max(each.neighbours, len(self.running) - 1)
        place = Place(
            lane=packing.lane_of(self._campaign.slots, slots), stop=self._stop, neighbours=lambda: new.neighbours
        )
        options = self._campaign.options
        campaign = replace(
            self._campaign,
            options=replace(
                options, rounds=replace(options.rounds, upstream=options.rounds.upstream and with_upstream)
            ),
        )
        threading.Thread(target=self._run, args=(campaign, folder, new, place), name=item.case.case_id).start()
        return new

    def wait(self) -> tuple[InLane, RunRecord]:
        """The next round that ends, whatever its outcome.

        Raises what ended its thread without a record, as an error of ``suite.errors``.
        """
        ended = self._next_ended()
        self.running.remove(ended)
        if isinstance(ended.outcome, RunRecord):
            return ended, ended.outcome
        if ended.outcome is None:
            raise AssertionError("a round has ended without an outcome")
        raise ended.outcome

    def _next_ended(self) -> InLane:
        while True:  # Ctrl-C is heard at every look, whichever thread the kernel gives the signal to
            with suppress(queue.Empty):
                return self._ended.get(timeout=LOOK_S)

    def end(self) -> None:
        """End what runs and wait until it is gone. A further Ctrl-C changes nothing: nothing may be left running.

        Not by ``Thread.join``: in Python 3.12 one that Ctrl-C interrupts takes the thread for ended from then on.
        """
        while True:
            with suppress(KeyboardInterrupt):
                self._stop.set()
                for each in self.running:
                    if each.begun:  # one that has not will see the stop
                        each.ended.wait()
                return

    def _run(self, campaign: Campaign, folder: Folder, new: InLane, place: Place) -> None:
        new.begun = True
        if self._stop.is_set():
            new.outcome = Interrupted("A round was about to start when everything was ended.")
        else:
            try:
                new.outcome = run_round(campaign, folder, self._reporter, new.item.case, new.round_index, place)
            except BaseException as error:  # noqa: BLE001  (raised again by ``wait``)
                new.outcome = error
        self._ended.put(new)
        new.ended.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()
        for each in self.running:  # what could not be ended has to be known
            if isinstance(each.outcome, Exception) and not isinstance(each.outcome, Interrupted):
                raise each.outcome
