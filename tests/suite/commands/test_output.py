"""An output that nobody takes, and Ctrl-C: one exit code and one sentence, wherever it strikes."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from reports import __main__ as sessions
from reports.site.cells import run_together
from suite.errors import Interrupted, OutputError, ReportError, ResourcesError
from suite.files.paths import ROOT
from suite.options.command_line import Parser
from tests.fixtures.runs.bench_runs import listen_to_ctrl_c
from tests.fixtures.runs.command_parsers import SESSIONS

VERIFY, HELP = "reports verify reports/results/2026.12/h200-physx", "suite plan --help"


@pytest.mark.parametrize(
    ("command", "is_full", "is_buffered"),
    [(VERIFY, True, True), (VERIFY, False, False), (HELP, True, False), (HELP, False, True)],
)
def test_an_output_that_fails_is_a_sentence(command: str, is_full: bool, is_buffered: bool) -> None:
    """The disk is full, or nobody reads."""
    reader, stdout = (os.open("/dev/null", os.O_RDONLY), os.open("/dev/full", os.O_WRONLY)) if is_full else os.pipe()
    os.close(reader)
    environ = {**os.environ, "PYTHONUNBUFFERED": "" if is_buffered else "1"}
    argv = [sys.executable, "-m", *command.split()]
    done = subprocess.run(argv, cwd=ROOT, env=environ, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    os.close(stdout)
    assert done.returncode == OutputError.exit_code
    (sentence,) = done.stderr.splitlines()
    assert ("No space left on device" if is_full else "Broken pipe") in sentence


@pytest.mark.parametrize(
    ("command", "redirections", "exit_code"),
    [
        (VERIFY, ">&-", 0),
        (HELP, ">&- 2>&- <&-", 0),
        (VERIFY, "2>/dev/full >/dev/full", OutputError.exit_code),
        (HELP, "2>/dev/full >/dev/full", OutputError.exit_code),
    ],
)
def test_closed_and_full_streams_change_no_exit_code(command: str, redirections: str, exit_code: int) -> None:
    shell = f"exec {sys.executable} -m {command} {redirections}"
    done = subprocess.run(["sh", "-c", shell], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (exit_code, "", "")


def test_too_few_open_files_are_a_sentence_with_its_own_exit_code() -> None:
    shell = f"ulimit -n 5; exec {sys.executable} -m suite plan --matrix smoke"
    done = subprocess.run(["sh", "-c", shell], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == ResourcesError.exit_code
    assert "ulimit -n" in done.stderr


SENTENCE = "Interrupted. The results are as they were; run the same command again.\n"
# Pages of two versions. A cell of one has the process which runs it interrupted, and both would go on for ever.
CELLS = """
import sys
from pathlib import Path
from reports.site.book import _notebook
from reports.site.cells import run_cells, run_together
from reports.sets.version import Version
from suite.options.command_line import exit_code_of

def run(cell, name):
    folder = Path(sys.argv[1], name)
    folder.mkdir()
    page = _notebook("page", f"---\\ntitle: x\\ndescription: x\\n---\\n\\n```{{code-cell}}\\n{cell}\\n```\\n")
    return run_cells({"page": page}, Version(name="", folder=folder, sets=()), folder)

sleep = "import os, signal, time; time.sleep(1e6)"
runs = [run(sleep, "a"), run(sleep.replace("time.", "os.kill(os.getppid(), signal.SIGINT); time."), "b")]
sys.exit(exit_code_of(lambda: run_together(runs) or 0))
"""


def interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("session", SESSIONS)
def test_a_command_that_is_interrupted(
    session: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Parser, "read", interrupt)
    assert SESSIONS[session]([]) == Interrupted.exit_code
    assert capsys.readouterr().err == SENTENCE


def test_a_cell_that_is_interrupted_is_no_dead_kernel(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CELLS, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=listen_to_ctrl_c,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (Interrupted.exit_code, SENTENCE)


@pytest.mark.usefixtures("ctrl_c")
def test_versions_that_are_interrupted_clean_up_undisturbed() -> None:
    """One ends at once. The other still ends its kernel, which it would leave behind if it were cancelled again."""
    cleaned_up = []

    async def slow() -> None:
        try:
            await asyncio.sleep(1e6)
        finally:
            await asyncio.sleep(0.2)
            cleaned_up.append("slow")

    async def quick() -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(1e6)

    with pytest.raises(KeyboardInterrupt):
        run_together([slow(), quick()])
    assert cleaned_up == ["slow"]


def test_a_command_that_is_interrupted_while_its_packages_are_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sessions, "import_module", interrupt)
    assert sessions.main("report", []) == Interrupted.exit_code
    assert capsys.readouterr().err == SENTENCE


def test_the_first_error_of_a_version_ends_the_others() -> None:
    async def fail() -> None:
        raise ReportError("A cell of a page failed")

    with pytest.raises(ReportError, match="A cell of a page failed"):
        run_together([asyncio.sleep(1e6), fail()])
