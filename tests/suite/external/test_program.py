"""The end of programs that read and write lines, as ssh and Ray's driver do."""

import os
import signal
import sys
import threading

import psutil
import pytest

from suite.external import program
from suite.external.program import LineProgram
from tests.fixtures.runs.real_runs import is_running


@pytest.mark.usefixtures("ctrl_c")
def test_second_ctrl_c_kills_a_program_that_does_not_end() -> None:
    hung = LineProgram((sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"))
    pid = int(hung.read(60.0)[0] or 0)
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        hung.end(3600.0)
    assert not is_running(pid)


def test_a_child_that_keeps_the_output_open_does_not_delay_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its parent also writes a byte that is no text."""
    monkeypatch.setattr(program, "KILL_PATIENCE_S", 0.5)
    parent = LineProgram(("sh", "-c", r"sleep 600 & printf '%s\n\377' $!; exit 3"))
    pid = int(parent.read(60.0)[0] or 0)
    try:
        assert parent.end(60.0) == (3, "")
        assert is_running(pid)
    finally:
        psutil.Process(pid).kill()
    assert parent.read(60.0)[0] == "\ufffd"
