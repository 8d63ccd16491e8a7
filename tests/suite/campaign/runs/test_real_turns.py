"""Real ranks on the CPU in turns: as fast as alone, and all ranks of a round in the same turns."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from reports.topics.trust.turns_page import turns_check
from suite.__main__ import main
from suite.campaign.state import Campaign
from suite.install.worker import Worker
from suite.launch.native.run import run as run_native
from suite.launch.runtime import Runtime
from suite.matrix.resources import Resources
from suite.records.folders import ALONE
from suite.records.store import load_results
from suite.schema.record import Environment, PlannedCase
from suite.schema.turns import FIRST_ITERATIONS
from suite.statistics.stopping_rule import Rule
from suite.statistics.turns_check import measured_both_ways
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.real_runs import cartpole, cases_of, matrix_of
from tests.fixtures.runs.simulated_campaign import records, run_all
from tests.fixtures.runs.simulated_host import SimulatedHost

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


def test_all_ranks_of_a_round_have_the_same_turns(worker: Worker, environment: Environment, tmp_path: Path) -> None:
    matrix = matrix_of(
        cartpole("rsl_rl", topologies=("1x2",), iterations=ITERATIONS),
        cartpole("rsl_rl", name="beside", iterations=ITERATIONS),
    )
    cases = cases_of(matrix, tmp_path)
    campaign = Campaign(
        options=options_with(matrix="smoke"),
        console=Console(file=io.StringIO(), width=200),
        machine=replace(environment, num_cpus=8, memory_gb=64.0),  # two cores would not take three ranks in a block
        device="cpu",
        resources=Resources(nnodes=1, gpus_per_node=0, cpus_per_node=8),
        planned=tuple(
            PlannedCase(case=case, rounds=1, infeasible=None, estimated_gpu_minutes=None, estimated_wall_s=None)
            for case in cases
        ),
        rule=Rule(rounds=1),
        runtime=real_runtime(worker),
    )
    run_all(campaign, tmp_path / "out")
    found = {record.case.topology: record for record in records(tmp_path / "out")}
    assert {record.outcome for record in found.values()} == {"completed"}
    assert found["1x2"].turns is not None
    first, second = (rank.samples["turn"] for rank in found["1x2"].ranks)
    assert first == second
    assert first[:FIRST_ITERATIONS] == (None,) * FIRST_ITERATIONS
    assert first[-1] == found["1x2"].turns.turns > 1


def real_runtime(worker: Worker) -> Runtime:
    """The runtime of the native launcher with the tests' worker."""
    return replace(SimulatedHost().runtime(), worker=worker, launch=run_native, launch_in_turns=run_native)
