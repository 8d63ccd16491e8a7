"""The search for capacity as a campaign: with a GPU that a test makes up, and for real on the CPU at tiny sizes."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from suite.__main__ import main
from suite.campaign import steps
from suite.campaign.capacity import find_capacity, of_capacity
from suite.campaign.planning.plan import make_plan
from suite.campaign.runs import rounds
from suite.campaign.runs.rounds import Run
from suite.campaign.state import Campaign
from suite.errors import RunsFailed, StoreError, UsageError
from suite.install.worker import Worker
from suite.matrix.resources import Resources
from suite.records.store import load_results, write_record
from suite.schema.record import Environment, Gpu, Outcome, RunRecord
from tests.fixtures.results.generated_results import make_record
from tests.fixtures.runs.asked_options import options_with

MATRIX = """
description = "tiny"
rounds = 3
seed = 42

[[series]]
name = "tiny"
title = "tiny"
scaling = "weak"
task = "Isaac-Cartpole-Direct"
rl_libraries = ["rsl_rl", "rl_games"]
num_envs = 512
num_envs_more = [1024]
topologies = ["1x1", "1x2"]
iterations = 8
"""
REAL = MATRIX.replace('["rsl_rl", "rl_games"]', '["rsl_rl"]').replace("num_envs_more = [1024]\n", "")
GPU = Gpu(index=0, name="Made-up GPU", memory_gb=None, compute_capability=None)


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(MATRIX, encoding="utf-8")
    return path


def planned(matrix: Path, environment: Environment, **options: object) -> Campaign:
    asked = options_with(matrix=str(matrix), out=matrix.parent / "out", capacity="tiny", with_report=False, **options)
    machine = replace(environment, gpus=(GPU,))
    console = Console(file=io.StringIO(), width=200)
    one_gpu = Resources(nnodes=1, gpus_per_node=1, cpus_per_node=4)
    return make_plan(
        Campaign(options=of_capacity(asked), console=console, machine=machine, device="cuda", resources=one_gpu)
    )


def made_up_gpu(room_for: int, ran: list[str], *, else_: Outcome = "oom") -> Callable[..., RunRecord]:
    """Stands in for a launch: every environment adds to the throughput, up to ``room_for`` of them."""

    def make(_: Campaign, run: Run, line: object) -> RunRecord:
        del line
        case = run.case
        ran.append(f"{case.case_id} {run.round}")
        outcome: Outcome = "completed" if case.num_envs <= room_for else else_
        record = make_record(case, index=run.round, iteration_time_s=0.5, outcome=outcome, reason="made up")
        run.run_dir.mkdir(parents=True)
        write_record(record, run.record_path)
        return record

    return make


@pytest.fixture(autouse=True)
def _silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.campaign.display.progress.Reporter.ended", lambda *_: None)


def test_running_out_of_memory_is_a_point_and_no_failure(
    matrix: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(rounds, "_train", made_up_gpu(3000, ran))
    campaign = find_capacity(planned(matrix, environment, rl_libraries=("rl_games",)))
    steps.judge(campaign)
    (found,) = json.loads((campaign.out / "capacity.json").read_text())["found"]
    answer = found["capacity"]
    assert (answer["num_envs"], answer["beyond"], answer["bound"]) == (2560, 3072, "memory")  # whole minibatches
    outcomes = {result.case.num_envs: result.rounds[0].outcome for result in load_results(campaign.out)}
    assert outcomes == {
        512: "completed",
        1024: "completed",
        2048: "completed",
        4096: "oom",
        3072: "oom",
        2560: "completed",
    }
    assert {result.case.world_size for result in campaign.results} == {1}
    output = campaign.console.file
    assert isinstance(output, io.StringIO)
    assert "capacity: 2,560 environments on one rank, bound by memory" in output.getvalue()
    # The same command again runs nothing and comes to the same.
    count = len(ran)
    again = find_capacity(planned(matrix, environment, rl_libraries=("rl_games",)))
    assert len(ran) == count
    assert [result.case.case_id for result in again.results] == [result.case.case_id for result in campaign.results]


def test_each_library_has_an_answer_and_each_point_its_rounds(
    matrix: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(rounds, "_train", made_up_gpu(600, ran))
    campaign = find_capacity(planned(matrix, environment, repeats=2))
    found = json.loads((campaign.out / "capacity.json").read_text())["found"]
    assert [item["first_case_id"] for item in found] == [
        "tiny/rsl_rl-kitless-n512-1x1",
        "tiny/rl_games-kitless-n512-1x1",
    ]
    assert [item["capacity"]["num_envs"] for item in found] == [576, 512]
    assert ran[:3] == [  # two rounds of what fits, one of what does not
        "tiny/rsl_rl-kitless-n512-1x1 0",
        "tiny/rsl_rl-kitless-n512-1x1 1",
        "tiny/rsl_rl-kitless-n1024-1x1 0",
    ]
    assert "tiny/rsl_rl-kitless-n1024-1x1 1" not in ran


def test_an_answer_stays_when_another_library_is_searched_alone(
    matrix: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "_train", made_up_gpu(600, []))
    for library in ("rsl_rl", "rl_games", "rsl_rl"):
        campaign = find_capacity(planned(matrix, environment, rl_libraries=(library,)))
    path = campaign.out / "capacity.json"
    found = json.loads(path.read_text())["found"]
    assert {item["first_case_id"]: item["capacity"]["num_envs"] for item in found} == {
        "tiny/rsl_rl-kitless-n512-1x1": 576,
        "tiny/rl_games-kitless-n512-1x1": 512,
    }
    path.write_text("[]")
    with pytest.raises(StoreError, match=r"capacity\.json is not readable: document: Input should be .*Move it away"):
        find_capacity(planned(matrix, environment, rl_libraries=("rsl_rl",)))


def test_a_limit_below_the_first_number_is_refused_before_anything_runs(
    matrix: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(rounds, "_train", made_up_gpu(600, ran))
    with pytest.raises(UsageError, match="--most-envs is 511, allowed is 512 or more"):
        find_capacity(planned(matrix, environment, most_envs=511))
    assert ran == []


def test_a_crash_ends_the_search_and_the_command_with_an_error(
    matrix: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "_train", made_up_gpu(600, [], else_="crashed"))
    campaign = find_capacity(planned(matrix, environment, rl_libraries=("rsl_rl",)))
    (found,) = json.loads((campaign.out / "capacity.json").read_text())["found"]
    assert (found["capacity"]["bound"], found["capacity"]["num_envs"]) == ("failure", 512)
    with pytest.raises(RunsFailed, match="crashed: made up"):
        steps.judge(campaign)


def test_options_of_other_campaigns_are_refused(matrix: Path, environment: Environment) -> None:
    with pytest.raises(UsageError, match="--capacity tiny does not use --gpus, --upstream"):
        of_capacity(options_with(matrix="smoke", capacity="tiny", gpus=(2,), upstream=True))
    campaign = planned(matrix, replace(environment, gpus=()))
    refused = tuple(replace(item, infeasible="needs 1 GPU, available: 0") for item in campaign.planned)
    with pytest.raises(UsageError, match="can run here: needs 1 GPU, available: 0"):
        find_capacity(replace(campaign, planned=refused))


@pytest.mark.slow
@pytest.mark.worker
def test_a_real_search_on_the_cpu(worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert worker.python.exists()
    matrix, out = tmp_path / "tiny.toml", tmp_path / "out"
    matrix.write_text(REAL.replace("512", "16"), encoding="utf-8")
    argv = ["bench", "--matrix", str(matrix), "--capacity", "tiny", "--most-envs", "32", "--device", "cpu"]
    assert main([*argv, "--out", str(out), "--no-report"]) == 0
    (found,) = json.loads((out / "capacity.json").read_text())["found"]
    assert [trial["num_envs"] for trial in found["trials"]] == [16, 32]
    assert all(trial["outcome"] == "completed" and trial["fps"] > 0 for trial in found["trials"])
    assert found["capacity"]["bound"] in ("asked", "throughput")  # a busy machine may end it early
    assert [result.case.num_envs for result in load_results(out)] == [16, 32]
    assert "environments on one rank, bound by" in capsys.readouterr().out
