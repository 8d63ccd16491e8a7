"""Runs one round of a case in one of several ways, and leaves its files in the run directory."""

from collections.abc import Callable
from threading import Event
from typing import Protocol

from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Launch

__all__ = ["LaunchResult", "Launcher", "TurnsLauncher"]


class Launcher(Protocol):
    """Run ``launch`` to its end and return when none of its processes is left.

    ``on_progress`` gets the number of iterations that rank 0 has finished, whenever it changes. Setting ``stop`` ends
    the run early. Raises an error of ``suite.errors`` when the run cannot be started, or cannot be ended.
    """

    def __call__(
        self, launch: Launch, *, on_progress: Callable[[int], None] | None = None, stop: Event | None = None
    ) -> LaunchResult: ...


class TurnsLauncher(Protocol):
    """A launcher whose run may wait for its turn; ``waits`` says whether it does: its silence is then no hang."""

    def __call__(
        self,
        launch: Launch,
        *,
        on_progress: Callable[[int], None] | None = None,
        stop: Event | None = None,
        waits: Callable[[], bool] | None = None,
    ) -> LaunchResult: ...
