"""Gives turns to the rounds of a block: all start together, then one at a time runs some iterations.

A round's ranks each ask through a socket in its run directory (``suite.schema.rank_protocol``). A round is ready when
all its ranks have asked. When no round starts or runs, the next one that is ready gets a turn. A round whose turn
outlasts its iterations keeps it until its processes are gone, so that its end disturbs nobody. A thread answers the
ranks.
"""

import os
import selectors
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Final, Literal, Self

from suite.errors import CampaignError
from suite.schema.rank_protocol import FIRST_ITERATIONS, READY, TURNS_SOCKET
from suite.schema.record import Case

TURN_S: Final = 2.5
MIN_ITERATIONS: Final = 5  # of a turn; the first of them does not count
POLL_S: Final = 0.2


def iterations_of_turn(left: int, pace_s: float | None, turn_s: float) -> int:
    """How many of the ``left`` iterations a turn has; ``pace_s`` is the time of one in the turn before, if known.

    A turn takes about ``turn_s``, has at least ``MIN_ITERATIONS``, and leaves none or as many for the next one.
    """
    wanted = MIN_ITERATIONS if pace_s is None else max(MIN_ITERATIONS, round(turn_s / pace_s))
    return wanted if left - wanted >= MIN_ITERATIONS else max(1, left)


@dataclass(kw_only=True, eq=False)
class Seat:
    """One round of a block."""

    case: Case
    run_dir: Path
    state: Literal["starting", "ready", "in turn", "ended"] = "starting"
    turns: int = 0
    _left: int = 0  # iterations without a turn yet
    _given: int = 0  # iterations of the present turn
    _since_s: float = 0.0
    _pace_s: float | None = None
    _asking: list[socket.socket] = field(default_factory=list)  # ranks that wait for an answer

    def __post_init__(self) -> None:
        self._left = self.case.iterations - FIRST_ITERATIONS

    def waits(self) -> bool:
        """Whether its ranks wait for a turn, so that their silence is no hang."""
        return self.state == "ready"

    def asked(self, rank: socket.socket) -> None:
        """Note that a rank asked for a turn: it has finished its iterations. A rank that is gone may be heard late."""
        if self.state == "ended":
            return
        self._asking.append(rank)
        if len(self._asking) == self.case.num_processes:
            if self._given:
                self._pace_s = (monotonic() - self._since_s) / self._given
            self.state = "ready"

    def begin(self, turn_s: float) -> None:
        """Give its ranks a turn."""
        self._given = iterations_of_turn(self._left, self._pace_s, turn_s)
        self._left -= self._given
        self._since_s = monotonic()
        self.turns += 1
        self.state = "in turn"
        ranks, self._asking = self._asking, []
        for rank in ranks:
            with suppress(OSError):  # it has ended; its launcher notices
                rank.sendall(b"%d\n" % self._given)


class Keeper:
    """Gives turns to ``seats`` in their order, then in the opposite order, and so on."""

    def __init__(self, seats: Sequence[Seat], *, turn_s: float = TURN_S) -> None:
        self._seats, self._turn_s = list(seats), turn_s
        self._order: list[Seat] = []  # rest of the present pass
        self._forwards = False
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._wake, self._woken = socket.socketpair()
        self._closing = False
        self._thread = threading.Thread(target=self._keep, name="turns", daemon=True)

    def __enter__(self) -> Self:
        self._selector.register(self._woken, selectors.EVENT_READ, lambda: self._woken.recv(64))
        try:
            for seat in self._seats:
                self._listen(seat)
        except CampaignError:
            self._close()
            raise
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        self._notify()
        self._thread.join()
        self._close()

    def _close(self) -> None:
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        self._wake.close()
        for seat in self._seats:
            (seat.run_dir / TURNS_SOCKET).unlink(missing_ok=True)

    def ended(self, seat: Seat) -> None:
        """Note that no process of a round is left. Any thread may call this."""
        with self._lock:
            seat.state = "ended"
        self._notify()

    def _notify(self) -> None:
        self._wake.send(b"x")

    def _listen(self, seat: Seat) -> None:
        """Raises CampaignError if the file system of the results has no sockets."""
        seat.run_dir.mkdir(parents=True, exist_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _short(seat.run_dir) as folder:
                listener.bind(f"{folder}/{TURNS_SOCKET}")
        except OSError as error:
            listener.close()
            raise CampaignError(
                f"{seat.run_dir} cannot have a socket, through which runs get their turns: {error.strerror}. Run "
                "with --no-turns, or choose a folder on a local disk with --out."
            ) from error
        listener.listen()
        listener.settimeout(0)  # a rank may end between a notice and the answer
        self._selector.register(listener, selectors.EVENT_READ, lambda: self._accept(seat, listener))

    def _accept(self, seat: Seat, listener: socket.socket) -> None:
        rank, _ = listener.accept()
        rank.settimeout(0)
        self._selector.register(rank, selectors.EVENT_READ, lambda: self._hear(seat, rank))

    def _hear(self, seat: Seat, rank: socket.socket) -> None:
        try:
            message = rank.recv(len(READY))
        except OSError:
            message = b""
        if message == READY:
            seat.asked(rank)
        else:  # it has ended; its launcher notices
            self._selector.unregister(rank)
            rank.close()

    def _keep(self) -> None:
        while not self._closing:
            for key, _ in self._selector.select(POLL_S):
                heard: Callable[[], object] = key.data
                with self._lock:
                    heard()
            with self._lock:
                self._give()

    def _give(self) -> None:
        """Give the next turn, if it is free."""
        if any(seat.state in ("starting", "in turn") for seat in self._seats):
            return
        ready = [seat for seat in self._seats if seat.waits()]
        if not ready:
            return
        self._order = [seat for seat in self._order if seat.waits()]
        if not self._order:
            self._forwards = not self._forwards
            self._order = ready if self._forwards else ready[::-1]
        self._order.pop(0).begin(self._turn_s)


@contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A short name of a folder while it is open: the path of a socket has at most 107 bytes."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)
