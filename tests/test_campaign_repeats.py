"""A campaign whose rounds are not fixed, through the real command line: killed in a round, gone on with, decided."""

import json
import signal
from typing import Final

import pytest

from suite.provision import Worker
from suite.store import load_results, read_case, read_record
from tests.real_runs import events
from tests.test_campaign import START_TIMEOUT_S, Bench

pytestmark = pytest.mark.worker

MATRIX: Final = """
description = "one case, and the same again"
rounds = 1
precision = 0.000001
max_rounds = 2
a_a = true
seed = 42

[[series]]
name = "only"
title = "Cartpole"
scaling = "weak"
task = "Isaac-Cartpole-Direct"
rl_libraries = ["rsl_rl"]
num_envs = 64
topologies = ["1x1"]
iterations = 5
"""
CASE: Final = "only/rsl_rl-kitless-cpu-n64-1x1"
TWIN: Final = f"{CASE}-aa"


@pytest.fixture(scope="module")
def bench(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Killed while the second round of the twin trains, which stands first in its order; then run to its end."""
    assert worker.python.exists()
    folder = tmp_path_factory.mktemp("repeats")
    bench = Bench(matrix=folder / "one.toml", out=folder / "out")
    bench.matrix.write_text(MATRIX, encoding="utf-8")
    second = bench.out / "raw" / TWIN / "r1"

    def trains() -> bool:
        return any(found["event"] == "iteration" for found in events(second, 0))

    exit_code = bench.stop(signal.SIGKILL, trains, "the twin's second round trains", timeout_s=3 * START_TIMEOUT_S)
    assert exit_code == -signal.SIGKILL, bench.said()
    assert not (second / "record.json").exists()
    assert not bench.case_path(CASE).exists()
    assert "2 runs to do. " in bench.said()
    assert f"[3/3] {TWIN} round 1 starting" in bench.said()
    assert bench.run() == 0, bench.said()
    return bench


def test_what_was_finished_when_it_was_killed_is_kept(bench: Bench) -> None:
    assert "0 runs to do, 2 finished earlier and kept" in bench.said()
    assert f"[1/1] {TWIN} round 1: completed" in bench.said()
    assert f"[2/2] {CASE} round 1: completed" in bench.said()
    assert (bench.out / "raw" / TWIN / "r1.interrupted-1").is_dir()


def test_a_case_is_stored_with_the_reason_why_it_ended(bench: Bench) -> None:
    (result,) = load_results(bench.out)
    assert result.case.case_id == CASE
    assert [record.round for record in result.completed] == [0, 1]
    assert result.ended_because is not None
    assert result.ended_because.startswith("the budget of 2 rounds is spent: no interval of the median from 2 rounds")
    assert f"rounds: {result.ended_because}" in bench.said()


def test_the_twin_is_another_measurement_of_the_same(bench: Bench) -> None:
    twin = read_case(bench.out / "a_a" / f"{TWIN}.json")
    assert len(twin.completed) == 2
    hashes = {
        read_record(bench.out / "raw" / case_id / f"r{index}" / "record.json").ranks[0].parameters_sha256
        for case_id in (CASE, TWIN)
        for index in (0, 1)
    }
    assert None not in hashes
    noise = json.loads((bench.out / "noise.json").read_text(encoding="utf-8"))
    (pair,) = noise["pairs"]
    assert (pair["case_id"], pair["rounds"], pair["twin_rounds"]) == (CASE, 2, 2)
    assert noise["noise_budget"] == abs(pair["difference"])
    assert "Noise budget: " in bench.said()


def test_once_more_starts_nothing_and_another_target_is_refused(bench: Bench) -> None:
    before = bench.snapshot()
    assert bench.run() == 0
    assert "0 runs to do, 2 finished earlier and kept" in bench.said()
    after = bench.snapshot()
    assert after["noise.json"][0] == before["noise.json"][0]  # written anew, as it was
    assert after | {"noise.json": before["noise.json"]} == before
    assert bench.run("--target-precision", "0.5") == 13
    assert "precision: there 1e-06, now 0.5" in bench.said()
