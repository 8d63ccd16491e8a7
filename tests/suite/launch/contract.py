"""The promises of ``suite.launch.contract`` as tests. The file of each launcher has a class that inherits them."""

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psutil
import pytest

from suite.errors import StoreError
from suite.launch.contract import TO_ITS_END, Launcher, RunControl
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Launch
from tests.conftest import CaseMaker
from tests.fixtures.runs.real_runs import MARK, cartpole, marked_processes, matrix_of, wait_until

# Stands for torchrun and its rank. It starts a program that ignores SIGTERM, in a session of its own as torchrun does.
# It goes on until a test writes an exit code for its node, and writes all the time where a file says so.
PROGRAM: Final = """
import ctypes, faulthandler, json, os, signal, subprocess, sys, time
from pathlib import Path
faulthandler.register(signal.SIGUSR1)
run_dir, node = Path(sys.argv[1]), os.environ.get("LABSCALE_NODE_RANK", "0")
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
tied = lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # as tasks.torchrun ties its ranks to itself
child = subprocess.Popen(
    [sys.executable, "-c", stubborn], start_new_session=True, stdout=subprocess.PIPE,
    preexec_fn=tied if (run_dir / "tied").exists() else None,
)
child.stdout.readline()
print(f"node {node} of {os.environ.get('LABSCALE_HEAD')}", flush=True)
with (run_dir / f"rank-{node}.jsonl").open("a", buffering=1) as log:
    for iteration in range(3):
        print(json.dumps({"event": "iteration", "iteration": iteration, "samples": {}}), file=log)
    (run_dir / f"started-{node}").touch()
    while not (run_dir / f"exit-{node}").exists():
        time.sleep(0.05)
        if (run_dir / "writes_on").exists():
            print(json.dumps({"event": "phase"}), file=log)
os._exit(int((run_dir / f"exit-{node}").read_text()))
"""
# What trains on two nodes: a short control of the real worker.
MATRIX: Final = matrix_of(cartpole("rsl_rl", workload="all_reduce", topologies=["2x1"], iterations=4, num_envs=8))
CASE: Final = "cartpole/rsl_rl-kitless-cpu-n16-2x1"
START_TIMEOUT_S: Final = 60.0  # of real torchruns too
SLACK_S: Final = 15.0  # of a busy machine


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a launcher runs."""

    run: Launcher
    python: str = sys.executable
    nnodes: int = 1
    patience_s: float = 4.0  # for a stand-in to begin to write once the launcher watches
    lose_node: Callable[[], object] = lambda: None  # of two nodes, the second
    helpers: Callable[[], Sequence[psutil.Process]] = tuple  # processes of labscale's own on other hosts
    begin_again: Callable[[], object] = lambda: None  # what the next command does after one that was killed


class WhenStarted(threading.Event):
    """Set, or raises, when the stand-ins of all nodes are at work."""

    def __init__(self, started: Callable[[], bool], error: type[BaseException] | None = None) -> None:
        super().__init__()
        self._started, self._error = started, error

    def is_set(self) -> bool:
        if self._started() and self._error is not None:
            raise self._error
        return self._started()


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round of the stand-in, which ends by itself when a test says so."""

    place: Place
    launch: Launch

    @property
    def run_dir(self) -> Path:
        return Path(self.launch.run_dir)

    def has_started(self) -> bool:
        return len(list(self.run_dir.glob("started-*"))) == self.place.nnodes

    def is_sampled(self) -> bool:
        sizes = [path.stat().st_size for path in self.run_dir.glob("telemetry*.jsonl")]
        return sum(size > 0 for size in sizes) == self.place.nnodes

    def await_start(self) -> None:
        wait_until(self.has_started, timeout_s=START_TIMEOUT_S, what="every node is at work")

    def write(self, name: str, text: str = "") -> None:
        self.run_dir.mkdir(exist_ok=True)
        whole = self.run_dir / f"{name}.whole"  # whoever waits for the file reads it at once
        whole.write_text(text)
        whole.rename(self.run_dir / name)

    def end_with(self, *codes: int) -> None:
        """Have the first nodes end with these exit codes."""
        for node, code in enumerate(codes):
            self.write(f"exit-{node}", str(code))

    def run(self, control: RunControl = TO_ITS_END, **case_changes: float) -> LaunchResult:
        launch = replace(self.launch, case=replace(self.launch.case, **case_changes))  # type: ignore[arg-type]
        return self.place.run(launch, control)

    def begin(self, control: RunControl = TO_ITS_END) -> Callable[[float], LaunchResult]:
        """Start the round in a thread; return what waits for its end, for so many seconds."""
        ended: list[LaunchResult] = []
        thread = threading.Thread(target=lambda: ended.append(self.run(control)))
        thread.start()
        wait_until(lambda: self.has_started() or ended, timeout_s=START_TIMEOUT_S, what="every node is at work")

        def result(within_s: float) -> LaunchResult:
            thread.join(within_s)
            assert ended, f"not within {within_s:g} s"
            return ended[0]

        return result

    def processes(self) -> list[psutil.Process]:
        return [*marked_processes(self.run_dir), *self.place.helpers()]

    @property
    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.run_dir.rglob("torchrun.log")))


class LauncherContract:
    """Tests of every launcher. A subclass has the fixture ``place``."""

    @pytest.fixture
    def stand_in(
        self, place: Place, make_case: CaseMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Round]:
        """A round; at the test's end no process of it may be left, its sampler included."""
        folder = tmp_path / "r0"
        monkeypatch.setenv(MARK, str(folder))
        launch = Launch(
            case=make_case(nnodes=place.nnodes, nproc_per_node=1),
            round=0,
            argv=(place.python, "-c", PROGRAM, str(folder)),
            env={MARK: str(folder)},
            run_dir=str(folder),
            grace_s=0.5,
        )
        stand_in = Round(place=place, launch=launch)
        yield stand_in
        try:
            assert stand_in.processes() == []
        finally:
            for process in marked_processes(folder):
                process.kill()

    def test_its_exit_code_progress_and_log_are_passed_on(self, stand_in: Round) -> None:
        progress: list[int] = []
        result_within = stand_in.begin(RunControl(on_progress=progress.append))
        wait_until(stand_in.is_sampled, timeout_s=START_TIMEOUT_S, what="every node is sampled")
        stand_in.end_with(*[3] * stand_in.place.nnodes)
        result = result_within(START_TIMEOUT_S)
        assert (result.exit_code, result.ended_by, result.why) == (3, None, None)
        assert result.wall_time_s > 0
        assert progress[-1:] in ([3], [])  # nobody may have looked
        assert "node 0 of " in stand_in.log
        assert stand_in.processes() == []

    @pytest.mark.parametrize("ending", ["hung", "timeout", "interrupted"])
    def test_it_is_ended(self, stand_in: Round, ending: str) -> None:
        if ending == "timeout":
            stand_in.write("writes_on")
        stop = WhenStarted(stand_in.has_started) if ending == "interrupted" else None
        patience_s = stand_in.place.patience_s
        timeout_s = patience_s + 0.5 if ending == "timeout" else 300.0
        result = stand_in.run(RunControl(stop=stop), timeout_s=timeout_s, hang_timeout_s=patience_s)
        assert result.ended_by == ending
        assert ("most recent call first" in stand_in.log) == (ending != "interrupted")
        assert stand_in.processes() == []

    @pytest.mark.usefixtures("ctrl_c")
    def test_ctrl_c_leaves_nothing(self, stand_in: Round) -> None:
        with pytest.raises(KeyboardInterrupt):
            stand_in.run(RunControl(stop=WhenStarted(stand_in.has_started, KeyboardInterrupt)))
        assert stand_in.processes() == []

    @pytest.mark.filterwarnings("ignore:.*use of fork.. may lead to deadlocks:DeprecationWarning")
    def test_killed_labscale_leaves_nothing(self, stand_in: Round) -> None:
        self.kill(stand_in)
        stand_in.place.begin_again()
        wait_until(lambda: stand_in.processes() == [], timeout_s=60, what="all processes end")

    @staticmethod
    def kill(stand_in: Round) -> None:
        """Run the round in a process, and kill that one."""
        stand_in.write("tied")
        labscale = multiprocessing.get_context("fork").Process(target=stand_in.run)
        labscale.start()
        stand_in.await_start()
        labscale.kill()
        labscale.join()

    def test_a_finished_round_is_not_overwritten(self, stand_in: Round) -> None:
        for name in ("record.json", "rank-0.jsonl"):
            stand_in.write(name, "kept")
        with pytest.raises(StoreError):
            stand_in.run()
        assert (stand_in.run_dir / "rank-0.jsonl").read_text() == "kept"


class NodesContract(LauncherContract):
    """Tests of every launcher of several nodes; ``place`` has two."""

    def test_one_node_that_fails_ends_the_other(self, stand_in: Round) -> None:
        stand_in.write("exit-1", "3")
        result = stand_in.run()
        assert (result.exit_code, result.ended_by) == (3, None)
        assert stand_in.processes() == []

    def test_a_lost_node_ends_the_other_and_is_named(self, stand_in: Round) -> None:
        stand_in.write("tied")
        result_within = stand_in.begin()
        stand_in.place.lose_node()
        result = result_within(START_TIMEOUT_S)
        assert result.ended_by == "lost"
        assert (result.why or "").startswith(f"the connection to {result.nodes[1]} ended")
        wait_until(lambda: stand_in.processes() == [], timeout_s=SLACK_S, what="all processes end")
