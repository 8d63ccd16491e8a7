"""Killed by SIGKILL: nox, and labscale while assets are built. Stand-ins do the work; the signals are real."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from suite.errors import Interrupted
from suite.files.paths import ROOT
from suite.install import worker
from tests.fixtures.runs.bench_runs import listen_to_ctrl_c
from tests.fixtures.runs.real_runs import is_running, wait_until

# Our own noxfile starts a command line whose campaign is a sleep.
NOXFILE = f"""
import importlib.util, nox
spec = importlib.util.spec_from_file_location("ours", "{ROOT}/noxfile.py")
ours = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ours)
@nox.session(venv_backend="none")
def stand_in(session):
    ours.run_module(session, "stand_in")
"""
STAND_IN = """
import pathlib, sys, time
import dataclasses
from suite import __main__
here = pathlib.Path(__file__).parent
def campaign(*_):
    here.joinpath("runs").touch()
    try:
        time.sleep(600)
    finally:
        time.sleep(0.7)  # nox's own patience is 0.5 s
        here.joinpath("ends").touch()
__main__.COMMANDS["bench"] = dataclasses.replace(__main__.COMMANDS["bench"], run=campaign)
code = __main__.main(["bench"])
here.joinpath("code.tmp").write_text(str(code))
here.joinpath("code.tmp").rename(here / "code")
sys.exit(code)
"""
ASKS = """
import ctypes, os, signal, sys
from suite.external.parent_death import NOX_PID, end_with_nox
def asked_for():
    number = ctypes.c_int()
    ctypes.CDLL(None).prctl(2, ctypes.byref(number))  # PR_GET_PDEATHSIG
    return number.value
signal.signal(signal.SIGTERM, lambda *_: print("ends"))
for nox_pid in (None, "nox", "9" * 30, str(os.getppid()), sys.argv[1]):
    if nox_pid:
        os.environ[NOX_PID] = nox_pid
    end_with_nox()
    print(asked_for(), NOX_PID in os.environ)
"""
BUILDS = """
import sys, pathlib
from suite.install import worker
sleeps = "import os, pathlib, sys, time; pathlib.Path(sys.argv[1]).mkdir(); "
sleeps += "pathlib.Path('building').write_text(str(os.getpid())); time.sleep(600)"
worker.BUILD_ASSETS = ("-c", sleeps)
worker.build_assets(pathlib.Path("cache/assets"), python=pathlib.Path(sys.executable), on_message=print)
"""
RANK = """
import os, pathlib, sys, time, types
from tasks import worker
worker.read_configuration = lambda _: types.SimpleNamespace(pin_cpus=False, trainings_per_gpu=1)
worker.run_rank = lambda *_: (pathlib.Path("trains").write_text(str(os.getpid())), time.sleep(600))
worker.main(["worker", sys.argv[1]])
"""
TORCHRUN = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
COMPLETES = "import pathlib, sys; root = pathlib.Path(sys.argv[1]); root.mkdir(); (root / 'manifest.json').touch()"


@pytest.fixture
def nox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A real nox, leader of its process group as in a terminal, whose campaign runs."""
    (tmp_path / "noxfile.py").write_text(NOXFILE)
    (tmp_path / "stand_in.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path}")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    runs = tmp_path / "runs"
    with subprocess.Popen(
        [sys.executable, "-m", "nox", "-f", str(tmp_path / "noxfile.py"), "-s", "stand_in"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=listen_to_ctrl_c,  # noqa: PLW1509  (one system call)
    ) as process:
        try:
            wait_until(lambda: process.poll() is not None or runs.exists(), timeout_s=60, what="the campaign runs")
            assert runs.exists()
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_a_campaign_ends_in_order_when_nox_is_killed(nox: subprocess.Popen[bytes], tmp_path: Path) -> None:
    nox.kill()
    wait_until((tmp_path / "code").exists, timeout_s=60, what="the campaign ends")
    assert (tmp_path / "ends").exists()
    assert (tmp_path / "code").read_text() == "130"


def test_ctrl_c_in_the_terminal_waits_until_the_campaign_has_ended(
    nox: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    os.killpg(nox.pid, signal.SIGINT)
    assert nox.wait() == Interrupted.exit_code
    assert (tmp_path / "ends").exists()


def test_only_nox_asks_for_it_and_one_that_is_gone_already_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = subprocess.run([sys.executable, "-c", ASKS, str(gone.pid)], capture_output=True, text=True, check=True)
    term = int(signal.SIGTERM)
    assert done.stdout.splitlines() == [*["0 False"] * 3, f"{term} False", "ends", f"{term} False"]


def test_a_killed_build_of_assets_leaves_no_process_and_its_folder_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", BUILDS], cwd=tmp_path, env=environ, stdout=subprocess.DEVNULL
    ) as killed:
        pid_file = tmp_path / "building"
        wait_until(lambda: pid_file.exists() and pid_file.read_text(), timeout_s=60, what="the build runs")
        killed.kill()
    wait_until(lambda: not is_running(int(pid_file.read_text())), timeout_s=60, what="the build ends")
    monkeypatch.setattr(worker, "BUILD_ASSETS", ("-c", COMPLETES))
    worker.build_assets(cache / "assets", python=Path(sys.executable), on_message=lambda _: None)
    assert [path for path in cache.iterdir() if path.is_dir()] == [cache / "assets"]


def test_a_rank_ends_with_torchrun_even_when_nobody_is_left_to_end_it(tmp_path: Path) -> None:
    ranks = {"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0", "WORLD_SIZE": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", TORCHRUN, RANK, str(tmp_path)], env=os.environ | ranks) as torchrun:
        pid_file = tmp_path / "trains"
        wait_until(lambda: pid_file.exists() and pid_file.read_text(), timeout_s=60, what="the rank trains")
        torchrun.kill()
    wait_until(lambda: not is_running(int(pid_file.read_text())), timeout_s=30, what="the rank ends")
