"""One host's part of a round, as its supervisor sees it: a connection to ``suite.launch.ssh.remote_agent`` there."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, Self

from suite.errors import SchedulerError
from suite.external.ssh import ssh_argv
from suite.files.paths import ROOT
from suite.launch.processes import KILL_PATIENCE_S, POLL_S
from suite.launch.ssh.remote_agent import BEAT_S, SILENCE_S

READY_TIMEOUT_S: Final = 60.0  # for the first answer of a host: Python may come from a slow file system
_SLACK_S: Final = 5.0  # for the network and a busy host
_LAST_LINES: Final = 5


class RemotePart:
    """One host's part. ``exit_code``, torchrun's, is None at first; ``lost`` and ``refused`` say why it stays None."""

    def __init__(self, host: str, process: subprocess.Popen[str], errors: IO[bytes]) -> None:
        self.host = host
        self.exit_code: int | None = None
        self.ready: Mapping[str, Any] | None = None  # its address, interface and a free port
        self.refused: str | None = None  # why it cannot take part
        self.lost: str | None = None
        self.by_itself = False  # whether it ended without being asked to
        self._process = process
        self._errors = errors
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._last_said = ""  # that was not a message of the agent
        self._heard_s = self._told_s = time.monotonic()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    def start(cls, host: str, request: Mapping[str, Any], config: Path | None) -> Self:
        """Connect to the host and hand it the request.

        Raises:
            SchedulerError: there is no ssh here.
        """
        argv = ssh_argv(
            (sys.executable, "-m", "suite.launch.ssh.remote_agent"), host=host, working_dir=ROOT, config=config
        )
        errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by finish
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C in the terminal reaches labscale alone
                env={**os.environ, "LC_ALL": "C"},
            )
        except OSError as error:
            errors.close()
            raise SchedulerError(f"ssh cannot be started: {error.strerror}. Install it (openssh-client).") from error
        part = cls(host, process, errors)
        part._tell(request)
        return part

    def tell(self, **message: Any) -> None:
        """Send a message to the agent; ``hear`` notices an agent that is gone."""
        self._tell(message)

    def hear(self) -> None:
        """Read what the host has sent, and tell it that we are here."""
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

    def _take(self, message: Mapping[str, Any]) -> None:
        if message.get("event") == "ready":
            self.ready = message
        elif message.get("event") == "ended":
            self.exit_code, self.by_itself = int(message["exit_code"]), bool(message["by_itself"])
        elif message.get("event") == "refused":
            self.refused = f"{self.host} {message['reason']}"

    def ask_to_end(self) -> None:
        self.tell(command="end")

    def finish(self, grace_s: float) -> None:
        """Wait until the part has ended. A host that does not say so is given up; it ends its part by itself."""
        deadline_s = time.monotonic() + grace_s + KILL_PATIENCE_S + _SLACK_S
        try:
            while self.is_going_on and time.monotonic() < deadline_s:
                self.hear()
                time.sleep(POLL_S)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join(_SLACK_S)
            for stream in (self._process.stdin, self._process.stdout, self._errors):
                self._close(stream)

    def _tell(self, message: Mapping[str, Any]) -> None:
        if self._process.stdin is None:
            raise AssertionError("ssh has a pipe for its input")
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # its end is in the lines

    def _read(self) -> None:
        if self._process.stdout is None:
            raise AssertionError("ssh has a pipe for its output")
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _message(self, line: str) -> dict[str, Any]:
        """The message of the agent; empty for a line that a login script printed."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if isinstance(message, dict):
            return message
        self._last_said = line.strip()
        return {}

    def _last_words(self) -> str:
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
        return " ".join(said) or self._last_said or "it said nothing"

    @staticmethod
    def _close(stream: IO[Any] | None) -> None:
        if stream is None:
            return
        try:
            stream.close()
        except BrokenPipeError:  # what was still to be written
            return
