"""Real ranks on the CPU in turns: as fast as alone."""

from pathlib import Path
from statistics import geometric_mean

import pytest

from suite.__main__ import main
from suite.install.worker import Worker
from suite.records.folders import ALONE
from suite.records.store import load_results
from suite.statistics.reduce import completed_times_s
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
    results, copies = load_results(out), load_results(out / ALONE)
    assert [bool(record.turns) for result in results for record in result.completed] == [True] * 2 * ROUNDS
    assert [record.turns for copy in copies for record in copy.completed] == [None] * 2 * ROUNDS
    both = [
        geometric_mean([time_s for result in own for time_s in completed_times_s(result.completed)])
        for own in (results, copies)
    ]
    # Two rounds that ran at the same time would share these cores, and take about twice as long.
    assert both[0] / both[1] < 1.5
