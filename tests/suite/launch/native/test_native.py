"""The launcher against real processes and real signals; Python programs stand in for torchrun."""

import dataclasses
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from suite.errors import StoreError, WorkerEnvironmentError
from suite.launch.native.run import run
from suite.launch.processes import RUN_ID_VARIABLE
from suite.schema.rank_protocol import read_configuration
from suite.schema.record import Case, Launch
from tests.fixtures.runs.real_runs import MARK, marked_processes

# What every stand-in starts with. `child` starts another Python program in a session of its own, as torchrun does.
PREAMBLE = f"""
import faulthandler, json, os, pathlib, signal, subprocess, sys, time
run_dir = pathlib.Path(os.environ["{MARK}"])
def emit(rank, **event):
    with open(run_dir / f"rank-{{rank}}.jsonl", "a") as stream:
        stream.write(json.dumps(event) + "\\n")
def child(program, **options):
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True, **options)
    (run_dir / "child.pid").write_text(str(process.pid))
    return process
STUBBORN = '''
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(600)
'''
"""

MakeLaunch = Callable[..., Launch]


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


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def child_pid(launch: Launch) -> int:
    return int((Path(launch.run_dir) / "child.pid").read_text())


def log_text(launch: Launch) -> str:
    return (Path(launch.run_dir) / "logs" / "torchrun.log").read_text()


def test_run_reports_progress_and_keeps_the_log(make_launch: MakeLaunch) -> None:
    launch = make_launch(f"""
assert os.environ["{RUN_ID_VARIABLE}"]
case = json.loads((run_dir / "configuration.json").read_text())
emit(0, event="start"); emit(1, event="start")
for iteration in range(case["iterations"]):
    emit(1, event="iteration", iteration=iteration)
    emit(0, event="iteration", iteration=iteration)
    time.sleep(0.3)
emit(0, event="error", message='a quoted "event": "iteration" is none')
print("to stdout", flush=True); print("to stderr", file=sys.stderr)
""")
    seen: list[int] = []
    result = run(launch, on_progress=seen.append)
    assert (result.exit_code, result.ended_by) == (0, None)
    assert result.wall_time_s > 0.9
    assert seen == sorted(set(seen))
    assert seen[-1] == 3
    assert log_text(launch) == "to stdout\nto stderr\n"
    assert read_configuration(Path(launch.run_dir)) == launch.case


def test_every_process_of_a_run_keeps_to_its_cores(make_launch: MakeLaunch) -> None:
    before = os.sched_getaffinity(0)
    core = min(before)
    launch = make_launch("""
child("import os; print(os.sched_getaffinity(0))").wait()
print(os.sched_getaffinity(0))
""")
    assert run(dataclasses.replace(launch, cpus=(core,))).exit_code == 0
    assert log_text(launch) == f"{{{core}}}\n" * 2
    assert os.sched_getaffinity(0) == before


def test_half_a_line_is_not_counted_before_it_is_whole(make_launch: MakeLaunch) -> None:
    launch = make_launch("""
line = json.dumps({"event": "iteration", "iteration": 0}) + "\\n"
with open(run_dir / "rank-0.jsonl", "w") as stream:
    for part in (line[:12], line[12:-1], "\\n" + line):
        stream.write(part); stream.flush(); time.sleep(0.5)
""")
    seen: list[int] = []
    run(launch, on_progress=seen.append)
    assert seen == [2]


def test_exit_code_and_signal_are_passed_on(make_launch: MakeLaunch) -> None:
    assert run(make_launch("sys.exit(3)")).exit_code == 3
    assert run(make_launch("os.kill(os.getpid(), signal.SIGKILL)")).exit_code == -signal.SIGKILL


def test_timeout_ends_stubborn_processes_in_other_sessions(make_launch: MakeLaunch) -> None:
    launch = make_launch(
        """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child(STUBBORN)
while True:
    emit(0, event="iteration"); time.sleep(0.1)
""",
        timeout_s=1.5,
        hang_timeout_s=1.0,
        grace_s=0.5,
    )
    result = run(launch)
    assert result.ended_by == "timeout"
    assert result.exit_code == -signal.SIGKILL
    assert result.wall_time_s > 2.0
    assert not is_running(child_pid(launch))


def test_hang_is_told_from_slow_writing(make_launch: MakeLaunch) -> None:
    launch = make_launch(
        """
for _ in range(6):
    emit(1, event="phase"); time.sleep(0.5)
time.sleep(600)
""",
        hang_timeout_s=2.0,
    )
    result = run(launch)
    assert result.ended_by == "hung"
    assert result.wall_time_s > 4.5


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


def test_orphans_of_a_finished_run_are_ended(make_launch: MakeLaunch) -> None:
    launch = make_launch("process = child(STUBBORN, stdout=subprocess.PIPE); process.stdout.readline()", grace_s=0.5)
    result = run(launch)
    assert (result.exit_code, result.ended_by) == (0, None)
    assert not is_running(child_pid(launch))


def test_descendants_without_the_marker_are_ended(make_launch: MakeLaunch) -> None:
    launch = make_launch("child(STUBBORN, env={}); emit(0, event='iteration'); time.sleep(600)", grace_s=0.5)
    stop = threading.Event()
    run(launch, on_progress=lambda _: stop.set(), stop=stop)
    assert not is_running(child_pid(launch))


def test_processes_of_other_runs_are_left_alone(make_launch: MakeLaunch) -> None:
    with psutil.Popen(["sleep", "600"], env={**os.environ, RUN_ID_VARIABLE: "another"}) as other:
        run(make_launch("time.sleep(600)", timeout_s=0.5))
        survived = other.is_running() and other.status() != psutil.STATUS_ZOMBIE
        other.kill()
    assert survived


def test_stop_event_interrupts(make_launch: MakeLaunch) -> None:
    stop = threading.Event()
    launch = make_launch("emit(0, event='iteration'); child(STUBBORN); time.sleep(600)", grace_s=0.5)
    result = run(launch, on_progress=lambda _: stop.set(), stop=stop)
    assert result.ended_by == "interrupted"


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_run_and_is_raised_again(make_launch: MakeLaunch) -> None:
    launch = make_launch("child(STUBBORN); emit(0, event='iteration'); time.sleep(600)", grace_s=0.5)
    with pytest.raises(KeyboardInterrupt):
        run(launch, on_progress=lambda _: signal.raise_signal(signal.SIGINT))
    assert not is_running(child_pid(launch))


# The signal may come while psutil opens a file of /proc, which the interpreter then closes with a warning.
@pytest.mark.filterwarnings(
    r"ignore:Exception ignored in. <_io\.\w+ name='/proc/:pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.usefixtures("ctrl_c")
def test_second_ctrl_c_cuts_the_grace_short(make_launch: MakeLaunch) -> None:
    launch = make_launch(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); emit(0, event='iteration'); time.sleep(600)", grace_s=3600
    )
    second = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))

    def interrupt(_: int) -> None:
        second.start()
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(launch, on_progress=interrupt)
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


def test_temporary_files_go_with_the_run_however_it_ends(make_launch: MakeLaunch) -> None:
    """Warp removes its folder of precompiled headers only in an orderly end."""
    program = "import tempfile; (run_dir / 'folder').write_text(tempfile.mkdtemp(prefix='wp_pch_'));"
    for end in ("pass", "os.kill(os.getpid(), 9)", "time.sleep(600)"):
        launch = make_launch(program + end, timeout_s=5)
        run(launch)
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
    seen: list[int] = []
    run(launch, on_progress=seen.append)
    assert seen == []
    assert sorted(path.relative_to(run_dir).as_posix() for path in run_dir.rglob("*")) == [
        "configuration.json",
        "logs",
        "logs/telemetry.log",
        "logs/torchrun.log",
        "telemetry.jsonl",
    ]
    assert "earlier" not in (run_dir / "telemetry.jsonl").read_text()


def test_finished_round_is_not_overwritten(make_launch: MakeLaunch) -> None:
    launch = make_launch("")
    run_dir = Path(launch.run_dir)
    run_dir.mkdir()
    (run_dir / "record.json").write_text("{}")
    (run_dir / "rank-0.jsonl").write_text("kept")
    with pytest.raises(StoreError, match="finished round"):
        run(launch)
    assert (run_dir / "rank-0.jsonl").read_text() == "kept"


def test_full_disk_is_reported(make_launch: MakeLaunch) -> None:
    launch = make_launch("")
    Path(launch.run_dir).mkdir()
    (Path(launch.run_dir) / "configuration.json").symlink_to("/dev/full")
    with pytest.raises(StoreError, match="No space left on device"):
        run(launch)


def test_missing_worker_python_is_reported(make_launch: MakeLaunch) -> None:
    launch = dataclasses.replace(make_launch(""), argv=("/nowhere/python", "-m", "torch.distributed.run"))
    with pytest.raises(WorkerEnvironmentError, match="/nowhere/python"):
        run(launch)
