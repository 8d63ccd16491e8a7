"""Waits until it is this round's turn to be measured, while the other rounds of its block wait.

Every rank asks the keeper (``suite.campaign.runs.keeper``) by itself, through a socket in the run directory, and sleeps
until it is answered: a rank that waited in a collective would keep its GPU busy. Imports no torch.
"""

import os
import socket
from typing import Self

from suite.schema.rank_protocol import FIRST_ITERATIONS, READY, TURNS_VARIABLE


class KeeperGone(Exception):
    """The process that gives turns has ended, so nobody would ever answer."""

    def __init__(self) -> None:
        super().__init__("the process that gives turns has ended; run the same command again")


class Turns:
    """The turns of one rank. Without a keeper all iterations run at once, in no turn."""

    def __init__(self, connection: socket.socket | None = None) -> None:
        self._connection = connection
        self._number = 0
        self._left = 0  # iterations of this turn

    @classmethod
    def from_environment(cls) -> Self:
        """Connect to the keeper if this round has one. The working directory is the run directory.

        Raises:
            KeeperGone: there was one, and it has ended.
        """
        path = os.environ.get(TURNS_VARIABLE)
        if not path:
            return cls()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(path)
        except OSError as error:
            raise KeeperGone from error
        return cls(connection)

    @property
    def are_kept(self) -> bool:
        return self._connection is not None

    def must_wait(self, iteration: int) -> bool:
        """Whether ``begin`` of this iteration, counted from 0, waits for a turn."""
        return self._connection is not None and iteration >= FIRST_ITERATIONS and not self._left

    def begin(self, iteration: int) -> int | None:
        """Wait until this iteration may run; return the number of its turn, from 1, or None if it is in no turn.

        Raises:
            KeeperGone: the keeper ends while this rank waits.
        """
        if self._connection is None or iteration < FIRST_ITERATIONS:
            return None
        if not self._left:
            answer = b""
            try:
                self._connection.sendall(READY)
                while not answer.endswith(b"\n"):
                    part = self._connection.recv(64)
                    if not part:
                        raise KeeperGone
                    answer += part
            except OSError as error:
                raise KeeperGone from error
            self._left = int(answer)
            self._number += 1
        self._left -= 1
        return self._number
