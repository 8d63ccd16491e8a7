"""Two tiny cases side by side for real, each on one core, interrupted and gone on with.

That neighbours do not disturb is given: two cores of one machine always do. How that is tested is in test_packed.
"""

import itertools
import signal
from datetime import datetime

import pytest

from suite.campaign.packing import interference
from suite.campaign.packing.interference import Interference
from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.records.store import read_case
from suite.schema.record import RunRecord
from tests.bench_runs import START_TIMEOUT_S, Bench
from tests.real_runs import cartpole, events, marked_processes, matrix_of

pytestmark = [pytest.mark.worker, pytest.mark.slow]

MATRIX = matrix_of(cartpole("rsl_rl", name="one"), cartpole("rsl_rl", name="two"), rounds=2)
ONE, TWO = (f"{name}/rsl_rl-kitless-cpu-n64-1x1" for name in ("one", "two"))
OPTIONS = ("--pack", "--no-a-a")


@pytest.fixture(scope="module")
def bench(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    assert worker.python.exists()
    assert ROOT.exists()
    folder = tmp_path_factory.mktemp("packed")
    bench = Bench(matrix=folder / "two.toml", out=folder / "out")
    bench.matrix.write_text(MATRIX, encoding="utf-8")
    bench.out.mkdir()
    interference.write(Interference(packed=True, reason="this test says so"), bench.out / "packing.json")
    return bench


@pytest.fixture(scope="module")
def said_when_interrupted(bench: Bench) -> str:
    """Ctrl-C while two rounds start up, which are the first two that run side by side."""

    def both_start() -> bool:
        return all(
            any(found["event"] == "phase" for found in events(bench.run_dir(*started), 0))
            for started in ((ONE, 1), (TWO, 0))
        )

    exit_code = bench.stop(
        signal.SIGINT, both_start, "two rounds start up", timeout_s=2 * START_TIMEOUT_S, options=OPTIONS
    )
    assert exit_code == 130, bench.said()
    assert marked_processes(bench.out) == []
    return bench.said()


@pytest.fixture(scope="module")
def finished(bench: Bench, said_when_interrupted: str) -> list[RunRecord]:
    assert said_when_interrupted
    assert bench.run(*OPTIONS) == 0, bench.said()
    return [record for case_id in (ONE, TWO) for record in read_case(bench.case_path(case_id)).completed]


def test_ctrl_c_ends_both_lanes_and_keeps_what_is_finished(bench: Bench, said_when_interrupted: str) -> None:
    assert "Cases run side by side: this test says so." in said_when_interrupted
    assert f"{ONE} round 0: completed" in said_when_interrupted
    assert "Every finished round is kept; run the same command again" in said_when_interrupted
    assert said_when_interrupted.index(f"{ONE} round 0: completed") < said_when_interrupted.index(
        f"{TWO} round 0 on core"
    )
    assert [path.parent.name for path in sorted((bench.out / "raw").rglob("record.json"))][:1] == ["r0"]


def test_the_same_command_goes_on_side_by_side(bench: Bench, finished: list[RunRecord]) -> None:
    assert [(record.case.case_id, record.round) for record in finished] == [(ONE, 0), (ONE, 1), (TWO, 0), (TWO, 1)]
    neighbours = {(record.case.case_id, record.round): record.neighbours for record in finished}
    assert neighbours[ONE, 0] == 0  # the first of its task, whose kernels it may have to compile
    assert neighbours[ONE, 1] == neighbours[TWO, 0] == 1
    for case_id, index in ((ONE, 1), (TWO, 0)):
        assert bench.run_dir(case_id, index).with_name(f"r{index}.interrupted-1").is_dir()
    times = [(datetime.fromisoformat(str(r.started_utc)).timestamp(), r.wall_time_s or 0.0) for r in finished]
    overlaps = [
        min(a_s + a_wall_s, b_s + b_wall_s) - max(a_s, b_s)
        for (a_s, a_wall_s), (b_s, b_wall_s) in itertools.combinations(times, 2)
    ]
    assert max(overlaps) > 5


def test_each_has_one_core(finished: list[RunRecord]) -> None:
    for record in finished:
        settings = record.ranks[0].settings
        assert (settings["cpus_allowed"], settings["torch_num_threads"]) == (1, 1)


def test_other_shares_of_the_host_are_refused(bench: Bench, finished: list[RunRecord]) -> None:
    assert finished
    assert bench.run("--no-pack", "--no-a-a") == 13
    assert "cpus_per_rank: there 1, now None" in bench.said()
