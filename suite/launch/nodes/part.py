"""One node's part of a round, as its supervisor sees it: lines to and from ``suite.launch.nodes.agent`` there."""

import json
import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

from suite.launch.nodes.agent import BEAT_S, SILENCE_S
from suite.launch.processes import KILL_PATIENCE_S, POLL_S

READY_TIMEOUT_S: Final = 60.0  # for the first answer of a node: Python may come from a slow file system
_SLACK_S: Final = 5.0  # for the network and a busy node


class Part(ABC):
    """One node's part. ``exit_code``, torchrun's, is None at first; ``lost`` and ``refused`` say why it stays None.

    ``address`` is the one under which other nodes reach it; None if only sshd there knows it.
    """

    def __init__(self, host: str, *, address: str | None = None) -> None:
        self.host = host
        self.address = address
        self.exit_code: int | None = None
        self.ready: Mapping[str, Any] | None = None  # its address, interface and a free port
        self.refused: str | None = None  # why it cannot take part
        self.lost: str | None = None
        self.by_itself = False  # whether it ended without being asked to
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # None: the connection has ended
        self._last_said = ""  # that was not a message of the agent
        self._heard_s = self._told_s = time.monotonic()

    @property
    @abstractmethod
    def advice(self) -> str:
        """What must be true for the node to answer."""

    @abstractmethod
    def _send(self, line: str) -> None:
        """Send a line to the agent; that it is gone is seen when it is heard."""

    @abstractmethod
    def _last_words(self) -> str:
        """What the connection said before it ended."""

    @abstractmethod
    def _close(self) -> None:
        """Close the connection, whatever its state."""

    def tell(self, **message: Any) -> None:
        """Send a message to the agent; ``hear`` notices an agent that is gone."""
        self._send(json.dumps(message) + "\n")

    def hear(self) -> None:
        """Read what the node has sent, and tell it that we are here."""
        while self.is_going_on and not self._lines.empty():
            line, self._heard_s = self._lines.get(), time.monotonic()
            if line is None:
                self.lost = f"the connection to {self.host} ended: {self._last_words()}"
            else:
                self._take(self._message(line))
        now_s = time.monotonic()
        if not self.is_going_on:
            return
        patience_s = READY_TIMEOUT_S if self.ready is None else SILENCE_S
        if now_s - self._heard_s > patience_s:
            self.lost = f"{self.host} has not answered for {patience_s:g} s"
        elif now_s - self._told_s > BEAT_S:
            self._told_s = now_s
            self.tell(command="alive")

    @property
    def is_going_on(self) -> bool:
        return self.exit_code is None and self.lost is None and self.refused is None

    def finish(self, grace_s: float) -> None:
        """Wait until the part has ended. A node that does not say so is given up; it ends its part by itself."""
        deadline_s = time.monotonic() + grace_s + KILL_PATIENCE_S + _SLACK_S
        try:
            while self.is_going_on and time.monotonic() < deadline_s:
                self.hear()
                time.sleep(POLL_S)
        finally:
            self._close()

    def _take(self, message: Mapping[str, Any]) -> None:
        if message.get("event") == "ready":
            self.ready = message
        elif message.get("event") == "ended":
            self.exit_code, self.by_itself = int(message["exit_code"]), bool(message["by_itself"])
        elif message.get("event") == "refused":
            self.refused = f"{self.host} {message['reason']}"

    def _message(self, line: str) -> dict[str, Any]:
        """The message of the agent; empty for any other line, as a login script prints."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if isinstance(message, dict):
            return message
        self._last_said = line.strip()
        return {}
