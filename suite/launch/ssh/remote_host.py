"""One host's part of a round over ssh."""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any, Final, Self

from suite.errors import SchedulerError
from suite.external.program import lines_into, send_line
from suite.external.ssh import ssh_argv
from suite.files.paths import ROOT
from suite.files.wording import last_words
from suite.launch.nodes.part import Part

_CLOSE_PATIENCE_S: Final = 5.0
_LAST_LINES: Final = 5


class RemotePart(Part):
    """The part of a host, whose agent ssh starts."""

    def __init__(self, host: str, process: subprocess.Popen[str], errors: IO[bytes]) -> None:
        super().__init__(host)
        self._process = process
        self._errors = errors
        self._reader = lines_into(self._lines, process)

    @classmethod
    def start(cls, host: str, config: Path | None) -> Self:
        """Connect to the host.

        Raises:
            SchedulerError: there is no ssh here.
        """
        argv = ssh_argv((sys.executable, "-m", "suite.launch.nodes.agent"), host=host, working_dir=ROOT, config=config)
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
        return cls(host, process, errors)

    @property
    def advice(self) -> str:
        return (
            f"`ssh {shlex.quote(self.host)} true` must work without a password, and the checkout and its Python "
            "must be in the same folders there."
        )

    def _send(self, line: str) -> None:
        send_line(self._process, line)

    def _last_words(self) -> str:
        self._errors.seek(0)
        errors = self._errors.read().decode(errors="replace").strip()
        return last_words(errors or self._last_said, _LAST_LINES)

    def _close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(_CLOSE_PATIENCE_S)
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            _close_stream(stream)


def _close_stream(stream: IO[Any] | None) -> None:
    if stream is None:
        return
    try:
        stream.close()
    except BrokenPipeError:  # what was still to be written
        return
