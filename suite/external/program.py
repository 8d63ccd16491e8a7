"""Runs programs that may hang or die, talks to one line by line, and asks a Python that is not labscale's own."""

import io
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from suite.errors import WorkerEnvironmentError
from suite.external import parent_death
from suite.files.wording import last_words
from suite.schema.rank_protocol import MARK, last_answer

ASK_TIMEOUT_S: Final = 120.0
KILL_PATIENCE_S: Final = 5.0  # a process inside a hung kernel driver cannot be killed and is left behind

# "ended": by itself, with any exit code. "died": by a signal. "not_started": there is no such program, or no right.
End = Literal["ended", "died", "hung", "not_started"]


@dataclass(frozen=True, kw_only=True)
class ProgramRun:
    end: End
    exit_code: int | None
    signal: str | None  # "SIGABRT", when it died
    stdout: str
    stderr: str  # the system's reason, when it did not start
    wall_s: float


def run_program(argv: Sequence[str | Path], *, environ: Mapping[str, str], timeout_s: float) -> ProgramRun:
    """Run ``argv`` for at most ``timeout_s``, then kill it and its children. No pipe can block it."""
    start_s = time.monotonic()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                argv, env=dict(environ), stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
            )
        except OSError as error:
            reason = f"{argv[0]}: {error.strerror}"
            return ProgramRun(end="not_started", exit_code=None, signal=None, stdout="", stderr=reason, wall_s=0.0)
        exit_code: int | None = None
        try:
            with suppress(subprocess.TimeoutExpired):
                exit_code = process.wait(timeout_s)
        finally:  # Ctrl-C too
            _kill_group(process)
        for file in (output, errors):
            file.seek(0)
        is_dead = exit_code is not None and exit_code < 0
        return ProgramRun(
            end="hung" if exit_code is None else "died" if is_dead else "ended",
            exit_code=exit_code,
            signal=signal.Signals(-exit_code).name if exit_code is not None and is_dead else None,
            stdout=output.read().decode(errors="replace"),
            stderr=errors.read().decode(errors="replace"),
            wall_s=time.monotonic() - start_s,
        )


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):  # all have ended, or it hangs inside the kernel
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(KILL_PATIENCE_S)


class LineProgram:
    """A program that reads and writes lines, in a session of its own: Ctrl-C in the terminal reaches labscale alone."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        working_dir: Path | None = None,
        environ: Mapping[str, str] | None = None,
        errors_are_lines: bool = False,
    ) -> None:
        """Start it. Raises OSError if there is no such program."""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by ``end``
        try:
            self._process = subprocess.Popen(
                argv,
                cwd=working_dir,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if errors_are_lines else self._errors,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError:
            self._errors.close()
            raise
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._process.stdout or io.StringIO() as output:  # closed here: another thread would wait for the reader
            for line in output:
                self._lines.put(line)
        self._lines.put(None)

    def read(self, wait_s: float = 0.0) -> list[str | None]:
        """The lines that have come, after waiting for a first one; None is the end of its output."""
        lines: list[str | None] = []
        with suppress(queue.Empty):
            lines.append(self._lines.get(timeout=wait_s))
            while True:
                lines.append(self._lines.get_nowait())
        return lines

    def send(self, line: str) -> None:
        """Write a line, newline included. That the program has ended is seen in its output, not here."""
        with suppress(BrokenPipeError):
            print(line, end="", file=self._process.stdin, flush=True)

    def close_input(self) -> None:
        with suppress(BrokenPipeError):  # of what was still to be written
            if self._process.stdin is not None:
                self._process.stdin.close()

    def errors(self) -> str:
        """What it has written to stderr."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()

    def end(self, wait_s: float) -> tuple[int, str]:
        """Close its input, and kill it if it has not ended then; return its exit code and what it wrote to stderr."""
        with self._errors:
            try:
                self.close_input()
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(wait_s)
            finally:  # a second Ctrl-C too
                self._process.kill()
                exit_code = self._process.wait()
                self._reader.join(KILL_PATIENCE_S)
            return exit_code, self.errors()


def answer_of(python: Path, code: str, *arguments: str) -> Any:
    """Run ``code`` in a Python and return what it leaves in ``answer``, as JSON has it.

    Its wrapper, start-up files and packages may print beside the answer.

    Raises:
        WorkerEnvironmentError: this is no Python, or none that runs here; the message has what it printed.
    """
    code = f"{code}\nimport json\nprint('\\n{MARK}' + json.dumps(answer), flush=True)\n"
    try:
        done = parent_death.run([str(python), "-c", code, *arguments], timeout_s=ASK_TIMEOUT_S)
    except FileNotFoundError:
        raise missing(python) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else f"it did not end within {ASK_TIMEOUT_S:g} s"
        raise does_not_run(python, f"{why}") from error
    answer = last_answer(done.stdout)
    if done.returncode or answer is None:
        raise does_not_run(
            python,
            f"asked for its packages, it ended with exit code {done.returncode}: "
            f"{last_words(done.stderr if done.stderr.strip() else done.stdout)}",
        )
    return answer


def missing(python: Path) -> WorkerEnvironmentError:
    return WorkerEnvironmentError(f"The worker's Python {python} does not exist. Pass the path of a Python.")


def does_not_run(python: Path, why: str) -> WorkerEnvironmentError:
    return WorkerEnvironmentError(
        f"The worker's Python {python} does not run: {why}. Pass the path of a Python, whose `{python} -V`"
        " prints a version."
    )
