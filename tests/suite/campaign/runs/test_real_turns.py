"""Real ranks on the CPU in turns: as fast as alone."""

from pathlib import Path

import pytest

from reports.topics.trust.turns_page import turns_check
from suite.__main__ import main
from suite.install.worker import Worker
from suite.records.folders import ALONE
from suite.records.store import load_results
from suite.statistics.turns_check import measured_both_ways
from tests.fixtures.runs.real_runs import cartpole, matrix_of

pytestmark = [pytest.mark.slow, pytest.mark.worker]
ROUNDS = 3
ITERATIONS = 17
BOTH_LIBRARIES = cartpole("rl_games", "rsl_rl", iterations=ITERATIONS, num_steps_per_env=16, minibatch_size=512)


def test_turns_check_finds_both_libraries_as_fast_in_turns_as_alone(worker: Worker, tmp_path: Path) -> None:
    assert worker.python.exists()
    matrix, out = tmp_path / "both-ways.toml", tmp_path / "out"
    matrix.write_text(matrix_of(BOTH_LIBRARIES, rounds=ROUNDS, turns_check=True, warm_up=True), encoding="utf-8")
    argv = ["bench", "--matrix", str(matrix), "--device", "cpu", "--out", str(out), "--no-report"]
    assert main(argv) == 0
    copies = load_results(out / ALONE)
    assert [record.turns for copy in copies for record in copy.rounds] == [None] * 2 * ROUNDS
    found = turns_check(measured_both_ways([*load_results(out), *copies]))
    assert found is not None
    assert [(one.in_turns_rounds, one.alone_rounds) for one in found.cases] == [(ROUNDS, ROUNDS)] * 2
    print(found)
    # Two rounds that ran at the same time would share these cores, and take about twice as long.
    assert found.over_all.value < 1.5
    assert found.cost is not None
    assert found.cost < 1
