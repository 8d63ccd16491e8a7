"""The launchers ``native`` and ``emulated`` against real processes and signals; programs stand in for torchrun."""

import functools
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from suite.errors import StoreError, UsageError, WorkerEnvironmentError
from suite.launch.contract import RunControl
from suite.launch.native import EmulatedSettings, parts_of, run, run_in_parts, visible_gpus
from suite.launch.processes import RUN_ID_VARIABLE
from suite.launch.registry import resources
from suite.matrix.plan import plan
from suite.matrix.resources import Resources
from suite.schema.rank_protocol import read_configuration
from suite.schema.record import Case, Environment, Launch, Stack
from tests.fixtures.runs.asked_options import changed, options_with
from tests.fixtures.runs.real_runs import (
    MARK,
    NUM_CPUS,
    is_running,
    marked_processes,
)  # fmt: skip
from tests.suite.launch.contract import LauncherContract, NodesContract, Place, Round
from tests.suite.matrix.test_plan import ANT, CATALOG

# What every stand-in starts with. `child` starts another Python program in a session of its own, as torchrun does.
PREAMBLE = f"""
import faulthandler, json, os, pathlib, signal, subprocess, sys, time
run_dir = pathlib.Path(os.environ["{MARK}"])
def emit(rank, **event):
    with open(run_dir / f"rank-{{rank}}.jsonl", "a") as stream:
        stream.write(json.dumps(event) + "\\n")
def child(program, **options):
    return subprocess.Popen([sys.executable, "-c", program], start_new_session=True, **options)
STUBBORN = '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
'''
"""

MakeLaunch = Callable[..., Launch]


class TestNative(LauncherContract):
    @pytest.fixture
    def place(self) -> Place:
        return Place(run=run, patience_s=1.5)


class TestEmulated(NodesContract):
    @pytest.fixture
    def place(self, monkeypatch: pytest.MonkeyPatch) -> Place:
        monkeypatch.setattr("suite.launch.native.PEER_PATIENCE_S", 0.2)
        return Place(run=functools.partial(run_in_parts, gpus=(), cpus=(0, NUM_CPUS - 1)), nnodes=2, patience_s=2.0)

    def test_a_lost_node_ends_the_other_and_is_named(self, stand_in: Round) -> None:
        """No part of this machine is lost without it; a torchrun that is killed ends the other."""
        result_within = stand_in.begin()
        (root,) = (
            process
            for process in marked_processes(stand_in.run_dir)
            if process.environ().get("LABSCALE_NODE_RANK") == "1" and str(stand_in.run_dir) in process.cmdline()
        )
        root.kill()
        result = result_within(20.0)
        assert (result.exit_code, result.ended_by) == (-signal.SIGKILL, None)


@pytest.fixture
def make_launch(tmp_path: Path, make_case: Callable[..., Case]) -> Iterator[MakeLaunch]:
    """Make a launch of a stand-in program; at the test's end no process of it may be left."""
    run_dir = tmp_path / "r0"

    def make(program: str, *, grace_s: float = 5.0, **case_changes: float) -> Launch:
        return Launch(
            case=make_case(**case_changes),
            round=0,
            argv=(sys.executable, "-c", PREAMBLE + program),
            env={MARK: str(run_dir)},
            run_dir=str(run_dir),
            grace_s=grace_s,
        )

    yield make
    assert marked_processes(run_dir) == []


def log_text(launch: Launch) -> str:
    return (Path(launch.run_dir) / "logs" / "torchrun.log").read_text()


def test_every_process_of_a_run_keeps_to_its_cores(make_launch: MakeLaunch) -> None:
    before = os.sched_getaffinity(0)
    core = min(before)
    launch = make_launch("""
child("import os; print(os.sched_getaffinity(0))").wait()
print(os.sched_getaffinity(0))
""")
    assert run(replace(launch, cpus=(core,))).exit_code == 0
    assert log_text(launch) == f"{{{core}}}\n" * 2
    assert os.sched_getaffinity(0) == before


def test_whole_lines_of_iterations_alone_are_counted(make_launch: MakeLaunch) -> None:
    launch = make_launch("""
assert json.loads((run_dir / "configuration.json").read_text())["iterations"] == 3
emit(0, event="error", message='a quoted "event": "iteration" is none')
line = json.dumps({"event": "iteration", "iteration": 0}) + "\\n"
with open(run_dir / "rank-0.jsonl", "a") as stream:
    for part in (line[:12], line[12:-1], "\\n" + line):
        stream.write(part); stream.flush(); time.sleep(0.3)
""")
    progress: list[int] = []
    run(launch, RunControl(on_progress=progress.append))
    assert progress == [2]
    assert read_configuration(Path(launch.run_dir)) == launch.case


def test_stacks_are_dumped_by_those_who_handle_the_signal_alone(make_launch: MakeLaunch) -> None:
    launch = make_launch(
        """
def last_words(*_):
    print("ended by SIGTERM", flush=True); sys.exit(0)
signal.signal(signal.SIGTERM, last_words)
child('''
import faulthandler, signal, time
faulthandler.register(signal.SIGUSR1)
def stuck_here():
    print("ready", flush=True)
    time.sleep(600)
stuck_here()
''')
while "ready" not in (run_dir / "logs" / "torchrun.log").read_text():
    emit(0, event="phase"); time.sleep(0.1)
time.sleep(600)
""",
        hang_timeout_s=1.0,
    )
    result = run(launch)
    assert "in stuck_here" in log_text(launch)
    assert "ended by SIGTERM" in log_text(launch)  # SIGUSR1 would have killed it
    assert result.exit_code == 0


def test_descendants_without_the_marker_are_ended(make_launch: MakeLaunch) -> None:
    launch = make_launch(
        "print(child(STUBBORN, env={}).pid, flush=True); emit(0, event='iteration'); time.sleep(600)", grace_s=0.5
    )
    stop = threading.Event()
    run(launch, RunControl(on_progress=lambda _: stop.set(), stop=stop))
    pid = int(next(line for line in log_text(launch).splitlines() if line != "ready"))
    assert not is_running(pid)


def test_processes_of_other_runs_are_left_alone(make_launch: MakeLaunch) -> None:
    with subprocess.Popen(["sleep", "600"], env={**os.environ, RUN_ID_VARIABLE: "another"}) as other:
        run(make_launch("time.sleep(600)", timeout_s=0.5))
        assert other.poll() is None
        other.kill()


# The signal may come while psutil opens a file of /proc, which the interpreter then closes with a warning.
@pytest.mark.filterwarnings(
    r"ignore:Exception ignored in. <_io\.\w+ name='/proc/:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.usefixtures("ctrl_c")
def test_second_ctrl_c_cuts_the_grace_short(make_launch: MakeLaunch) -> None:
    launch = make_launch(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); emit(0, event='iteration'); time.sleep(600)", grace_s=3600
    )
    second = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))

    def interrupt(_: int) -> None:
        second.start()
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(launch, RunControl(on_progress=interrupt))
    second.join()


def test_shared_memory_of_the_killed_alone_is_removed(make_launch: MakeLaunch) -> None:
    """Carbonite's names end with the process's id, and only an orderly end removes them."""
    folder = Path("/dev/shm")  # noqa: S108  the kernel's folder
    mine = folder / f"carb-labscaletest-{os.getpid()}"
    try:
        run(
            make_launch(f"""
for prefix in ("", "sem."):
    pathlib.Path(f"{folder}/{{prefix}}carb-labscaletest-{{os.getpid()}}").touch()
pathlib.Path("{mine}").touch()
os.kill(os.getpid(), 9)
""")
        )
        assert list(folder.glob("*carb-labscaletest-*")) == [mine]
    finally:
        mine.unlink()


@pytest.mark.parametrize(("end", "exit_code"), [("pass", 0), ("os.kill(os.getpid(), 9)", -signal.SIGKILL)])
def test_temporary_files_go_with_the_run_however_it_ends(make_launch: MakeLaunch, end: str, exit_code: int) -> None:
    """Warp removes its folder of precompiled headers only in an orderly end."""
    launch = make_launch(f"import tempfile; (run_dir / 'folder').write_text(tempfile.mkdtemp(prefix='wp_pch_')); {end}")
    assert run(launch).exit_code == exit_code
    folder = Path((Path(launch.run_dir) / "folder").read_text())
    assert folder.parent.parent == Path(tempfile.gettempdir())
    assert not folder.parent.exists()


def test_traces_of_an_interrupted_attempt_are_removed(make_launch: MakeLaunch) -> None:
    launch = make_launch("")
    run_dir = Path(launch.run_dir)
    (run_dir / "logs" / "none_x" / "attempt_0").mkdir(parents=True)
    (run_dir / "bundle").mkdir()
    (run_dir / "rank-0.jsonl").write_text('{"event": "iteration"}\n')
    (run_dir / "telemetry.jsonl").write_text("of an earlier attempt\n")
    progress: list[int] = []
    run(launch, RunControl(on_progress=progress.append))
    assert progress == []
    files = sorted(path.relative_to(run_dir).as_posix() for path in run_dir.rglob("*") if path.is_file())
    assert files == ["configuration.json", "logs/telemetry.log", "logs/torchrun.log", "telemetry.jsonl"]
    assert "earlier" not in (run_dir / "telemetry.jsonl").read_text()


def test_full_disk_is_reported(make_launch: MakeLaunch) -> None:
    launch = make_launch("")
    Path(launch.run_dir).mkdir()
    (Path(launch.run_dir) / "configuration.json").symlink_to("/dev/full")
    with pytest.raises(StoreError, match="No space left on device"):
        run(launch)


def test_missing_worker_python_is_reported(make_launch: MakeLaunch) -> None:
    launch = replace(make_launch(""), argv=("/nowhere/python", "-m", "torch.distributed.run"))
    with pytest.raises(WorkerEnvironmentError, match="/nowhere/python"):
        run(launch)


# Nodes that are parts of this machine


def test_each_node_has_its_own_gpus_and_cores(make_launch: MakeLaunch) -> None:
    launch = make_launch("", nnodes=2, nproc_per_node=2, device="cuda")
    parts = parts_of(launch, gpus=("4", "5", "6", "7"), cpus=(0, 2, 4, 6, 1, 3, 5))
    assert [part.env["CUDA_VISIBLE_DEVICES"] for part in parts] == ["4,5", "6,7"]
    assert [part.cpus for part in parts] == [(0, 2, 4), (6, 1, 3)]
    assert len({part.env["NCCL_HOSTID"] for part in parts}) == 2  # NCCL takes each for a host
    assert len({part.env["LABSCALE_RENDEZVOUS_PORT"] for part in parts}) == 1
    learning = parts_of(replace(launch, case=replace(launch.case, only_learning=True)), gpus=("4", "5"), cpus=(0, 1))
    assert [part.env["CUDA_VISIBLE_DEVICES"] for part in learning] == ["4", "5"]
    on_cpu = parts_of(replace(launch, case=replace(launch.case, device="cpu")), gpus=(), cpus=(0, 1))
    assert ["CUDA_VISIBLE_DEVICES" in part.env for part in on_cpu] == [False, False]


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, ("0", "1")),
        ({"CUDA_VISIBLE_DEVICES": "3, 5"}, ("3", "5")),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
    ],
)
def test_gpus_are_those_that_the_caller_may_use(environ: dict[str, str], names: tuple[str, ...]) -> None:
    assert visible_gpus(environ, 2) == names


@pytest.mark.parametrize(
    ("nodes", "ranks", "reason"), [(1, 4, None), (2, 2, None), (2, 4, "needs 8 GPUs, available: 4")]
)
def test_all_nodes_together_have_what_the_host_has(nodes: int, ranks: int, reason: str | None) -> None:
    world = nodes * ranks
    case = replace(ANT, nnodes=nodes, nproc_per_node=ranks, num_envs_global=1024 * world)
    host = Resources(nnodes=2, gpus_per_node=4, cpus_per_node=16, is_one_host=True)
    (item,) = plan([case], resources=host, available_stacks=get_args(Stack), rounds=1, catalog=CATALOG)
    assert item.infeasible == reason


def test_the_host_is_one_place_with_so_many_nodes(environment: Environment) -> None:
    options = options_with(matrix="full", launcher="emulated", launcher_settings=EmulatedSettings(emulate_nodes=2))
    machine = replace(environment, num_cpus=8)
    expected = Resources(nnodes=2, gpus_per_node=len(machine.gpus), cpus_per_node=8, is_one_host=True)
    assert resources(options, machine) == expected
    with pytest.raises(UsageError, match="--emulate-nodes is 9"):
        resources(changed(options, launcher_settings=EmulatedSettings(emulate_nodes=9)), machine)
    with pytest.raises(UsageError, match="--emulate-nodes N"):
        resources(changed(options, launcher_settings=None), machine)
