"""The sampler for real: beside real processes, over real deaths. Only NVML, which needs a GPU, is taken away."""

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pynvml
import pytest

import suite.launch.telemetry_sampler
from suite.launch.contract import RunControl
from suite.launch.native import run
from suite.launch.nodes.node import NODE_RANK
from suite.launch.telemetry_sampler import RankProcesses, Sampler, sample_until, sampling
from suite.launch.watch import prepare
from suite.records.collect import collect
from suite.records.telemetry_file import SAMPLER_LOG, TELEMETRY_FILE, RankReading, TelemetryContent, read_telemetry
from suite.schema.record import Case, Environment, Launch
from tests.conftest import CaseMaker
from tests.fixtures.results.rank_events import RankFiles, end, head, iterations
from tests.fixtures.runs.real_runs import wait_until

PATIENCE_S = 20.0  # of a test on a busy machine

# A rank that keeps one core busy, as tasks.worker writes it.
RANK = """
import json, os, sys, time
stream = open(f"{sys.argv[2]}/rank-0.jsonl", "w", buffering=1)
def emit(event, **fields):
    print(json.dumps({"event": event, **fields}), file=stream)
emit("start", rank=0, local_rank=0, world_size=1, pid=os.getpid())
sampled = f"{sys.argv[2]}/telemetry.jsonl"
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
def launch(one_rank: Case, tmp_path: Path) -> Launch:
    argv = (sys.executable, "-c", "import time; time.sleep(600)")
    return Launch(case=one_rank, round=0, argv=argv, env={}, run_dir=str(tmp_path / "r0"))


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


def written(run_dir: Path) -> TelemetryContent:
    return read_telemetry(run_dir / TELEMETRY_FILE) or TelemetryContent()


def test_a_real_round_has_telemetry_and_the_sampler_says_what_it_costs(
    one_rank: Case, tmp_path: Path, environment: Environment
) -> None:
    argv = (sys.executable, "-c", RANK, "tasks.worker", str(tmp_path))
    result = run(Launch(case=one_rank, round=0, argv=argv, env={"RANK": "0"}, run_dir=str(tmp_path)))
    assert samplers(tmp_path) == []
    trained = collect(tmp_path, one_rank, 0, result, environment)
    assert (trained.outcome, trained.reason, trained.telemetry_note) == ("completed", None, None)
    telemetry = trained.telemetry
    assert telemetry is not None
    assert (telemetry.gpus, telemetry.energy_j, telemetry.frames_per_joule, telemetry.notes) == ((), None, None, ())
    assert telemetry.window_s == pytest.approx(2.0, abs=0.5)  # the last two of three iterations
    assert 1 <= telemetry.num_samples <= telemetry.window_s * 5 + 2
    (rank,) = telemetry.ranks
    for summary, least, most in (
        (rank.cpu_percent, 1, 130),  # one core, or as much of it as others leave
        (rank.memory_gb, 0.005, 0.2),
        (rank.threads, 1, 1),
        (telemetry.host_cpu_percent, 1, 100),
        (telemetry.host_stolen_percent, 0, 99),
        (telemetry.host_memory_used_gb, 0.1, 10_000),
    ):
        assert summary is not None
        assert least <= summary.mean <= most
    assert (telemetry.sampler_cpu_share or 0) > 0
    assert 0 < (telemetry.sample_time_mean_s or 0) <= (telemetry.sample_time_max_s or 0)
    (readings,) = trained.readings
    times_s = [time_s for time_s in readings.columns["time_s"] if isinstance(time_s, int | float)]
    assert 3 <= len(times_s) <= 5  # one a second, in and around three seconds
    assert all(0.9 < later - earlier < 2.0 for earlier, later in itertools.pairwise(times_s))
    cores = set(readings.columns["rank0.core"]) - {None}  # it may not have begun, or have ended
    assert cores <= os.sched_getaffinity(0)
    assert cores


@pytest.mark.parametrize(
    ("damage", "note"),
    [
        (lambda path: path.unlink(), "the sampler wrote no telemetry.jsonl; logs/telemetry.log may say why"),
        (lambda path: path.write_bytes(b"\x00\n"), "telemetry.jsonl: telemetry.jsonl line 1 is not an event"),
        (lambda path: path.write_bytes(b""), "telemetry.jsonl: none of 0 samples lies in the window"),
    ],
)
def test_without_usable_telemetry_a_round_is_still_complete(
    damage: Callable[[Path], object], note: str, rank_files: RankFiles
) -> None:
    for rank in (0, 1):
        clock = {"event": "clock", "zero_monotonic_s": 0.0}
        rank_files.rank(rank, [*head(rank), clock, *iterations(3, start_s=0.0), *end()])
    path = rank_files.run_dir / TELEMETRY_FILE
    path.touch()
    damage(path)
    record = rank_files.collect()
    assert (record.outcome, record.telemetry) == ("completed", None)
    assert (record.telemetry_note or "").startswith(note)


def test_a_run_goes_on_when_its_sampler_cannot_start(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = replace(launch, argv=(sys.executable, "-c", "pass"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    assert run(ends).exit_code == 0
    assert "the sampler cannot be started" in (tmp_path / "r0" / SAMPLER_LOG).read_text()


def test_the_sampler_sees_the_gpus_of_its_run_only(launch: Launch, run_dir: Path) -> None:
    stop = threading.Event()
    ours = replace(launch, env={"CUDA_VISIBLE_DEVICES": "2"})
    runner = threading.Thread(target=run, args=(ours, RunControl(stop=stop)))
    runner.start()
    try:
        wait_until(lambda: samplers(run_dir), timeout_s=PATIENCE_S, what="it is sampled")
        assert [process.environ()["CUDA_VISIBLE_DEVICES"] for process in samplers(run_dir)] == ["2"]
    finally:
        stop.set()
        runner.join()


@pytest.mark.parametrize("fault", [psutil.Process.kill, psutil.Process.suspend])
def test_a_sampler_that_dies_or_hangs_is_ended_with_the_run(
    launch: Launch, run_dir: Path, monkeypatch: pytest.MonkeyPatch, fault: Callable[[psutil.Process], None]
) -> None:
    monkeypatch.setattr(suite.launch.telemetry_sampler, "PATIENCE_S", 0.5)
    with sampling(launch):
        wait_until(lambda: written(run_dir).samples, timeout_s=PATIENCE_S, what="a sample")
        fault(samplers(run_dir)[0])
    assert samplers(run_dir) == []
    assert written(run_dir).samples


def test_a_full_disk_ends_the_sampler_alone(launch: Launch, run_dir: Path) -> None:
    (run_dir / TELEMETRY_FILE).symlink_to("/dev/full")
    with sampling(launch):
        full = "No space left on device"
        wait_until(lambda: full in (run_dir / SAMPLER_LOG).read_text(), timeout_s=PATIENCE_S, what=full)
    assert samplers(run_dir) == []


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


@pytest.fixture
def start_rank(tmp_path: Path) -> Iterator[Callable[..., psutil.Popen]]:
    """Start what looks like a rank of ``tmp_path / "r0"``; when this returns, it sleeps on the last core."""
    ranks: list[psutil.Popen] = []

    def start(rank: int, node: int | None = None) -> psutil.Popen:
        keeps_to_its_core = "import os, time; os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})"
        program = f"{keeps_to_its_core}; print(flush=True); time.sleep(600)"
        process = psutil.Popen(
            [sys.executable, "-c", program, "tasks.worker", str(tmp_path / "r0")],
            env={**os.environ, "RANK": str(rank), **({} if node is None else {NODE_RANK: str(node)})},
            stdout=subprocess.PIPE,
        )
        ranks.append(process)
        process.stdout.readline()
        return process

    yield start
    for process in ranks:
        if process.is_running():
            process.kill()
            process.communicate()


def test_a_rank_is_seen_from_its_start_to_its_end(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch, start_rank: Callable[..., psutil.Popen]
) -> None:
    monkeypatch.setattr(suite.launch.telemetry_sampler, "LOOK_EVERY_S", 0.0)
    ranks = RankProcesses(run_dir, 1)
    assert ranks.read() == ()
    process = start_rank(0)
    assert ranks.read() == (), "of the instant since it was found"
    time.sleep(0.05)
    (reading,) = ranks.read()
    assert reading.cpu_percent is not None
    assert (reading.rank, reading.threads, reading.core) == (0, 1, max(os.sched_getaffinity(0)))
    process.kill()
    process.communicate()
    assert ranks.read() == (RankReading(rank=0),)


def test_nodes_that_share_a_machine_see_their_own_ranks_only(
    run_dir: Path, start_rank: Callable[..., psutil.Popen]
) -> None:
    for rank in range(4):
        start_rank(rank, node=rank // 2)
    for node, own in ((0, [0, 1]), (1, [2, 3]), (None, [])):
        processes = RankProcesses(run_dir, 2, node=node)
        processes.read()
        time.sleep(0.05)
        assert [reading.rank for reading in processes.read()] == own
