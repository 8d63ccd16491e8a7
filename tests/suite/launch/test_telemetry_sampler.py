"""The sampler for real: beside real processes, over real deaths. Only NVML, which needs a GPU, is taken away."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pynvml
import pytest

import suite.launch.telemetry_sampler
from suite.launch.native.run import run
from suite.launch.nodes.rank_processes import RankProcesses
from suite.launch.telemetry_sampler import Sampler, sample_until, sampling
from suite.launch.watch import prepare
from suite.records.collect import collect
from suite.records.telemetry_file import SAMPLER_LOG, TELEMETRY_FILE, RankReading, TelemetryContent, read_telemetry
from suite.schema.record import Case, Environment, Launch, RunRecord
from tests.conftest import CaseMaker

PATIENCE_S = 20.0  # of a test on a busy machine

# A rank that keeps one core busy, as tasks.worker writes it.
RANK = """
import json, os, sys, time
stream = open(f"{sys.argv[1]}/rank-0.jsonl", "w", buffering=1)
def emit(event, **fields):
    print(json.dumps({"event": event, **fields}), file=stream)
emit("start", rank=0, local_rank=0, world_size=1, pid=os.getpid())
sampled = f"{sys.argv[1]}/telemetry.jsonl"
for _ in range(400):  # as a real rank takes longer to start than the sampler, however busy the machine is
    if os.path.exists(sampled) and os.path.getsize(sampled):
        break
    time.sleep(0.05)
zero_s = time.perf_counter()
emit("clock", zero_monotonic_s=zero_s)
for iteration in range(3):
    start_s = time.perf_counter()
    while time.perf_counter() < start_s + 1.0:
        pass
    samples = {"start_s": start_s - zero_s, "iteration_time_s": time.perf_counter() - start_s}
    emit("iteration", iteration=iteration, samples=samples)
emit("end")
"""


@pytest.fixture
def one_rank(make_case: CaseMaker) -> Case:
    return make_case(nproc_per_node=1, num_envs_global=32)


@pytest.fixture
def run_dir(tmp_path: Path, one_rank: Case) -> Path:
    prepare(tmp_path / "r0", one_rank)
    return tmp_path / "r0"


def samplers(run_dir: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if {"suite.launch.telemetry_sampler", str(run_dir)} <= set(process.info["cmdline"] or ())
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def wait_until(condition: Callable[[], Any]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def written(run_dir: Path) -> TelemetryContent:
    return read_telemetry(run_dir / TELEMETRY_FILE) or TelemetryContent()


def trained(one_rank: Case, tmp_path: Path, environment: Environment) -> RunRecord:
    """The record of a round of ``RANK``."""
    folder = tmp_path / "real"
    launch = Launch(case=one_rank, round=0, argv=(sys.executable, "-c", RANK, str(folder)), env={}, run_dir=str(folder))
    result = run(launch)
    return collect(folder, one_rank, 0, result, environment)


def test_a_real_round_has_telemetry_and_the_sampler_says_what_it_costs(
    one_rank: Case, tmp_path: Path, environment: Environment
) -> None:
    record = trained(one_rank, tmp_path, environment)
    assert (record.outcome, record.reason, record.telemetry_note) == ("completed", None, None)
    seen = record.telemetry
    assert seen is not None
    assert (seen.gpus, seen.energy_j, seen.frames_per_joule, seen.notes) == ((), None, None, ())
    assert seen.window_s == pytest.approx(2.0, abs=0.5)  # the last two of three iterations
    assert 1 <= seen.num_samples <= seen.window_s * 5 + 2
    (rank,) = seen.ranks
    assert rank.cpu_percent is not None
    assert rank.memory_gb is not None
    assert rank.threads is not None
    assert 0 < rank.cpu_percent.mean < 130  # one core, or as much of it as others leave
    assert 0.005 < rank.memory_gb.mean < 0.2
    assert (rank.threads.min, rank.threads.max) == (1, 1)
    assert seen.host_cpu_percent is not None
    assert 0 < seen.host_cpu_percent.max <= 100
    assert seen.host_stolen_percent is not None
    assert 0 <= seen.host_stolen_percent.mean < seen.host_cpu_percent.mean
    assert seen.host_memory_used_gb is not None
    assert seen.host_memory_used_gb.min > 0.1
    assert seen.sampler_cpu_share is not None
    assert seen.sampler_cpu_share > 0
    assert seen.sample_time_mean_s is not None
    assert seen.sample_time_max_s is not None
    assert 0 < seen.sample_time_mean_s <= seen.sample_time_max_s
    assert samplers(tmp_path / "real") == []


def test_a_real_round_keeps_the_core_of_its_main_thread_once_a_second(
    one_rank: Case, tmp_path: Path, environment: Environment
) -> None:
    (readings,) = trained(one_rank, tmp_path, environment).readings
    times_s = [time_s for time_s in readings.columns["time_s"] if isinstance(time_s, int | float)]
    assert 3 <= len(times_s) <= 5  # in and around three seconds
    assert all(0.9 < later - earlier < 2.0 for earlier, later in itertools.pairwise(times_s))
    cores = set(readings.columns["rank0.core"]) - {None}  # it may not have begun, or have ended
    assert cores
    assert cores <= os.sched_getaffinity(0)
    assert not any(name.startswith("gpu") for name in readings.columns)


def is_a_python(pid: int) -> bool:
    """Whether the process has become what taskset starts."""
    return "-c" in psutil.Process(pid).cmdline()[:2]


def test_a_rank_is_read_on_the_core_that_it_may_use(run_dir: Path) -> None:
    program = "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start(); time.sleep(600)"
    for core in sorted(os.sched_getaffinity(0)):
        argv = ["taskset", "--cpu-list", str(core), sys.executable, "-c", program, str(run_dir)]
        with subprocess.Popen(argv) as process:
            wait_until(partial(is_a_python, process.pid))
            line = json.dumps({"event": "start", "rank": 0, "local_rank": 0, "pid": process.pid}) + "\n"
            (run_dir / "rank-0.jsonl").write_text(line)
            ranks = RankProcesses(run_dir, 1)
            ranks.read()
            (reading,) = ranks.read()
            main_thread = Path(f"/proc/{process.pid}/task/{process.pid}/stat").read_text().rpartition(")")[2].split()
            assert reading.core == core == int(main_thread[39 - 3])  # fields count from 1, and two were cut off
            process.kill()


@pytest.mark.parametrize(
    ("damage", "note"),
    [
        (lambda path: path.unlink(), "the sampler wrote no telemetry.jsonl; logs/telemetry.log may say why"),
        (lambda path: path.write_bytes(b"\x00\n"), "telemetry.jsonl: telemetry.jsonl line 1 is not an event"),
        (lambda path: path.write_bytes(b""), "telemetry.jsonl: none of 0 samples lies in the window"),
    ],
)
def test_without_usable_telemetry_a_round_is_still_complete(
    damage: Callable[[Path], object], note: str, one_rank: Case, run_dir: Path, environment: Environment
) -> None:
    iteration = {"start_s": 0.0, "iteration_time_s": 1.0}
    events: list[dict[str, Any]] = [
        {"event": "start", "rank": 0, "local_rank": 0},
        {"event": "clock", "zero_monotonic_s": 0.0},
        *({"event": "iteration", "iteration": number, "samples": iteration} for number in range(3)),
        {"event": "end"},
    ]
    (run_dir / "rank-0.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    (run_dir / TELEMETRY_FILE).touch()
    damage(run_dir / TELEMETRY_FILE)
    result = suite.launch.LaunchResult(
        exit_code=0, ended_by=None, started_utc="2026-11-21T10:00:00+00:00", wall_time_s=1.0
    )
    record = collect(run_dir, one_rank, 0, result, environment)
    assert (record.outcome, record.telemetry) == ("completed", None)
    assert record.telemetry_note is not None
    assert record.telemetry_note.startswith(note)


def test_a_run_goes_on_when_its_sampler_cannot_start(
    one_rank: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rank = sys.executable
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    launch = Launch(case=one_rank, round=0, argv=(rank, "-c", "pass"), env={}, run_dir=str(tmp_path / "r1"))
    assert run(launch).exit_code == 0
    assert "the sampler cannot be started" in (tmp_path / "r1" / SAMPLER_LOG).read_text()


def test_the_sampler_sees_the_gpus_of_its_run_only(one_rank: Case, tmp_path: Path) -> None:
    launch = Launch(
        case=one_rank,
        round=0,
        argv=(sys.executable, "-c", "import time; time.sleep(600)"),
        env={"CUDA_VISIBLE_DEVICES": "2"},
        run_dir=str(tmp_path / "r1"),
    )
    stop, seen = threading.Event(), []
    runner = threading.Thread(target=run, args=(launch,), kwargs={"stop": stop})
    runner.start()
    try:
        wait_until(lambda: (tmp_path / "r1").exists() and samplers(tmp_path / "r1"))
        seen = [process.environ().get("CUDA_VISIBLE_DEVICES") for process in samplers(tmp_path / "r1")]
    finally:
        stop.set()
        runner.join()
    assert seen == ["2"]


def test_a_run_goes_on_when_its_sampler_dies(one_rank: Case, run_dir: Path) -> None:
    with sampling(run_dir, one_rank):
        wait_until(lambda: written(run_dir).samples)
        samplers(run_dir)[0].kill()
    assert samplers(run_dir) == []
    assert written(run_dir).samples


def test_a_full_disk_ends_the_sampler_alone(one_rank: Case, run_dir: Path) -> None:
    (run_dir / TELEMETRY_FILE).symlink_to("/dev/full")
    with sampling(run_dir, one_rank):
        wait_until(lambda: "No space left on device" in (run_dir / SAMPLER_LOG).read_text())
    assert samplers(run_dir) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_the_sampler_ends_with_its_block(error: type[BaseException], one_rank: Case, run_dir: Path) -> None:
    def interrupted() -> None:
        with sampling(run_dir, one_rank):
            wait_until(lambda: written(run_dir).samples)
            assert len(samplers(run_dir)) == 1
            raise error

    with pytest.raises(error):
        interrupted()
    assert samplers(run_dir) == []
    assert (run_dir / SAMPLER_LOG).read_text() == ""


def test_a_sampler_that_hangs_is_killed(one_rank: Case, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite.launch.telemetry_sampler, "PATIENCE_S", 0.5)
    with sampling(run_dir, one_rank):
        wait_until(lambda: written(run_dir).samples)
        samplers(run_dir)[0].suspend()
    assert samplers(run_dir) == []


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM])
def test_the_sampler_ends_when_its_launcher_is_killed(death: signal.Signals, run_dir: Path) -> None:
    program = (
        "import json, sys, time; from pathlib import Path; from suite.launch.telemetry_sampler import sampling\n"
        "from suite.schema.rank_protocol import read_configuration\n"
        "run_dir = Path(sys.argv[1])\n"
        "with sampling(run_dir, read_configuration(run_dir)): time.sleep(600)\n"
    )
    root = Path(suite.launch.telemetry_sampler.__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", program, str(run_dir)], cwd=root) as launcher:
        wait_until(lambda: written(run_dir).samples)
        assert len(samplers(run_dir)) == 1
        launcher.send_signal(death)
        launcher.wait()
    wait_until(lambda: samplers(run_dir) == [])


def test_without_nvml_there_are_no_gpus_and_one_note(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", absent)
    path = run_dir / TELEMETRY_FILE
    left = [False, False, True]

    def is_over(wait_s: float) -> bool:
        time.sleep(wait_s)  # or the kernel's counters stand still between two looks
        return left.pop(0)

    with path.open("ab", buffering=0) as stream:
        sample_until(is_over, Sampler(run_dir, num_gpus=4, num_ranks=0), stream, rate_hz=50.0)
    content = written(run_dir)
    assert [sample.gpus for sample in content.samples] == [()] * 4  # three looks, and the last
    assert content.notes == ["GPUs: NVML Shared Library Not Found"]
    assert content.rate_hz == 50.0
    assert content.samples[0].host.cpu_percent is None  # nothing to count from, which is not 0
    assert content.samples[1].host.cpu_percent is not None


def test_samples_keep_their_rate_and_late_ones_are_left_out(run_dir: Path) -> None:
    """The test's own clock advances only while the sampler waits."""
    now_s, waits_s = 1000.0, list[float]()

    def is_over(wait_s: float) -> bool:
        nonlocal now_s
        waits_s.append(wait_s)
        now_s += 0.35 if len(waits_s) == 2 else wait_s  # the machine stands still for more than three intervals
        return len(waits_s) == 6

    with (run_dir / TELEMETRY_FILE).open("ab", buffering=0) as stream:
        sampler = Sampler(run_dir, num_gpus=0, num_ranks=0)
        sample_until(is_over, sampler, stream, rate_hz=10.0, clock_s=lambda: now_s)
    assert len(written(run_dir).samples) == 7
    assert waits_s == pytest.approx([0.1, 0.1, 0.0, 0.1, 0.1, 0.1])  # back in step at once, without a burst


def test_a_rank_is_seen_from_its_start_to_its_end(run_dir: Path) -> None:
    ranks = RankProcesses(run_dir, 2)
    absent = (RankReading(rank=0), RankReading(rank=1))
    assert ranks.read() == absent
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", str(run_dir)]) as process:
        wait_until(lambda: psutil.Process(process.pid).cmdline())  # it has a name only some time after it has started
        line = json.dumps({"event": "start", "rank": 1, "local_rank": 1, "pid": process.pid})
        (run_dir / "rank-1.jsonl").write_text(line)
        assert ranks.read() == absent  # half a line
        (run_dir / "rank-1.jsonl").write_text(line + "\n")
        assert ranks.read() == absent  # from here on its CPU time is counted
        time.sleep(0.05)
        reading = ranks.read()[1]
        assert reading.cpu_percent is not None
        assert reading.threads == 1
        process.kill()
    assert ranks.read() == absent


@pytest.mark.parametrize("pid", [pytest.param(os.getpid(), id="of these tests"), 1, 2**22 + 1, None])
def test_a_process_id_of_a_containers_own_is_nobodys_here(pid: int | None, run_dir: Path) -> None:
    """Inside a container a rank has another number, which here may belong to anyone or no one."""
    line = json.dumps({"event": "start", "rank": 0, "local_rank": 0, "pid": pid})
    (run_dir / "rank-0.jsonl").write_text(line + "\n")
    ranks = RankProcesses(run_dir, 1)
    assert ranks.read() == ranks.read() == (RankReading(rank=0),)
