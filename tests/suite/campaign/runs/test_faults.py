"""Faults of real ranks: each becomes its typed outcome, keeps what was measured, and leaves no process behind."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from suite.errors import StoreError
from suite.install.worker import Worker
from suite.records import store
from suite.schema.record import Case, Environment, Launch, RunRecord
from tests.fixtures.runs.real_runs import cartpole, cases_of, events, launch_of, matrix_of, pid_of, train

pytestmark = pytest.mark.worker

ENDLESS: Final = 100_000  # iterations; each run is ended by its fault
MATRIX: Final = matrix_of(
    # Should a fault not come about, the timeout ends it.
    cartpole("rsl_rl", topologies=("1x1", "1x2"), iterations=ENDLESS, timeout_s=300),
    cartpole("rl_games", minibatch_size=1024, timeout_s=300),
)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """One rank, two ranks, and one of rl_games."""
    return cases_of(MATRIX, tmp_path_factory.mktemp("matrix"))


def reducing(launch: Launch) -> Launch:
    """The same ranks without Isaac Lab: what these faults need is a collective and a rank's file."""
    return replace(
        launch,
        argv=tuple("tests.tasks.probes.reducing_rank" if part == "tasks.worker" else part for part in launch.argv),
    )


def after_two(run_dir: Path, rank: int, signal_number: signal.Signals) -> Callable[[int], None]:
    """Send a rank a signal, once, when rank 0 has finished two iterations."""
    sent: list[int] = []

    def on_progress(done: int) -> None:
        if done >= 2 and not sent:
            sent.append(pid_of(run_dir, rank))
            os.kill(sent[0], signal_number)

    return on_progress


def kept(record: RunRecord) -> list[int]:
    """Iterations of each rank; every one of them whole."""
    for rank in record.ranks:
        assert all(time_s is not None and time_s > 0 for time_s in rank.samples["iteration_time_s"])
    return [rank.num_iterations for rank in record.ranks]


def test_a_killed_rank_is_named_with_its_signal(
    worker: Worker, environment: Environment, cases: list[Case], tmp_path: Path
) -> None:
    run_dir = tmp_path / "r0"
    launch = reducing(launch_of(worker, cases[1], run_dir))
    killed = train(launch, environment, on_progress=after_two(run_dir, 1, signal.SIGKILL))
    assert killed.outcome == "crashed"
    assert (killed.reason or "").startswith("rank 1: killed by signal 9")
    assert killed.exit_code == 1
    assert min(kept(killed)) >= 1
    assert kept(killed)[0] >= 2
    assert [rank.parameters_sha256 for rank in killed.ranks] == [None, None]


# Starts "$@" and writes for rank 0 until that trains: however slow the machine is, a slow start is no hang.
WRITES_UNTIL_IT_TRAINS: Final = """
log=$0/rank-0.jsonl
until grep -qs '"iteration"' "$log"; do
    echo '{"event": "phase", "name": "imports_torch", "duration_s": 0.2}' >> "$log"
    sleep 0.2
done &
exec "$@"
"""


def test_a_stopped_rank_is_a_hang(worker: Worker, environment: Environment, cases: list[Case], tmp_path: Path) -> None:
    launch = reducing(launch_of(worker, replace(cases[1], hang_timeout_s=6.0), tmp_path / "r0"))
    launch = replace(
        launch,
        argv=("sh", "-c", WRITES_UNTIL_IT_TRAINS, launch.run_dir, *launch.argv),
        grace_s=2.0,  # a stopped process heeds no SIGTERM
    )
    record = train(launch, environment, on_progress=after_two(tmp_path / "r0", 1, signal.SIGSTOP))
    assert record.outcome == "hung", record.reason
    assert record.reason is not None
    assert record.reason.startswith("no process wrote anything for 6 s; rank 0: ")
    assert f"of {ENDLESS} iterations" in record.reason
    assert min(kept(record)) >= 1
    assert kept(record)[0] >= 2
    assert [rank.error for rank in record.ranks] == [None, None]  # the launcher's verdict came before any rank's own
    (stderr,) = (tmp_path / "r0" / "logs").glob("*/attempt_0/0/stderr.log")
    stacks = stderr.read_text(encoding="utf-8")
    assert "most recent call first" in stacks
    assert "distributed_c10d.py" in stacks, "rank 0 does not say where it waits"


def test_a_rank_that_raises_speaks_for_itself(
    worker: Worker, environment: Environment, cases: list[Case], tmp_path: Path
) -> None:
    """An algorithm that the library does not have."""
    rl_games = cases[2]
    overrides = (*rl_games.overrides, "agent.params.algo.name=nothing")
    record = train(launch_of(worker, replace(rl_games, overrides=overrides), tmp_path / "r0"), environment)
    assert record.outcome == "crashed"
    assert record.reason == "rank 0: ValueError: nothing"  # in rl_games' word, not torchrun's
    (raised,) = record.ranks
    assert raised.error == "ValueError: nothing"
    assert (raised.num_iterations, "environment_creation" in raised.phases_s) == (0, True)
    (error,) = (event for event in events(tmp_path / "r0", raised.rank) if event["event"] == "error")
    assert "rl_games" in error["traceback"]
    assert error["out_of_memory"] is False


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 MB that can be filled without harm to others."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "labscale-test", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill_up(path: Path) -> None:
    with path.open("ab", buffering=0) as ballast:
        while True:
            ballast.write(b"\0" * 4096)


def test_a_full_disk_is_said_to_be_full(
    worker: Worker, environment: Environment, cases: list[Case], small_disk: Path
) -> None:
    earlier = small_disk / "earlier" / "record.json"
    earlier.parent.mkdir()
    earlier.write_text('{"kept": true}')
    run_dir = small_disk / "r0"

    def fill(done: int) -> None:
        if done >= 2:
            with pytest.raises(OSError, match="No space left on device"):
                fill_up(small_disk / "ballast")

    record = train(reducing(launch_of(worker, cases[0], run_dir)), environment, on_progress=fill)
    assert record.outcome == "crashed", record.reason
    # Whether a rank's last words still fit is luck; the record's absence always has its cause told.
    assert record.ranks[0].error in {None, "OSError: [Errno 28] No space left on device"}
    assert kept(record)[0] >= 2
    with pytest.raises(StoreError, match="No space left on device"):
        store.write_record(record, run_dir / "record.json")
    assert not (run_dir / "record.json").exists()
    assert list(run_dir.glob(".record*")) == []
    assert earlier.read_text() == '{"kept": true}'
