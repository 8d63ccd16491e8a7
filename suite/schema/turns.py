"""Turns: rounds that start together and are measured one at a time. What their ranks and the keeper agree on.

A round gets a turn as a number of iterations, so that all its ranks stop at the same one without asking each other.
Both halves of labscale import this file, so it imports the standard library only.
"""

from dataclasses import dataclass
from typing import Final

from suite.schema.constraints import Count, Number

VARIABLE: Final = "LABSCALE_TURNS"  # of a rank's environment: the keeper's socket, relative to the run directory
SOCKET: Final = "turns.socket"
FIRST_ITERATIONS: Final = 2  # run as soon as the rank can: they compile and warm up
READY: Final = b"ready\n"  # a rank asks for a turn; the answer is a number of iterations and a newline


@dataclass(frozen=True, kw_only=True)
class TurnsTaken:
    """How a round was measured together with other rounds."""

    beside: tuple[str, ...]  # case ids of the other rounds of its block
    turns: Count  # that it had
    turn_s: Number  # length that was aimed at
