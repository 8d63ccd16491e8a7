"""Standard output that nobody takes: a full disk, a reader that has ended, one that was closed."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from suite.errors import OutputError, ResourcesError
from suite.files.paths import ROOT

COMMANDS = ("reports verify reports/results/2026.12/h200-physx", "suite plan --help")


def full() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def read_by_nobody() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("is_buffered", [True, False])
@pytest.mark.parametrize(("output", "why"), [(full, "No space left on device"), (read_by_nobody, "Broken pipe")])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_fails_is_a_sentence(
    command: str, output: Callable[[], int], why: str, is_buffered: bool
) -> None:
    stdout = output()
    environ = {**os.environ, "PYTHONUNBUFFERED": "" if is_buffered else "1"}
    argv = [sys.executable, "-m", *command.split()]
    done = subprocess.run(argv, cwd=ROOT, env=environ, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    os.close(stdout)
    assert done.returncode == OutputError.exit_code
    (sentence,) = done.stderr.splitlines()
    assert why in sentence


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("redirections", "exit_code"), [(">&-", 0), (">&- 2>&- <&-", 0), ("2>/dev/full >/dev/full", OutputError.exit_code)]
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
