"""The search for capacity: its rule on GPUs known in closed form, and as a campaign with a GPU that a test makes up."""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from suite.__main__ import main
from suite.campaign import steps
from suite.campaign.capacity import RESOLUTION, Capacity, Trial, find_capacity, next_size, of_capacity
from suite.campaign.planning.plan import make_plan
from suite.campaign.runs import rounds
from suite.campaign.runs.rounds import Run
from suite.campaign.state import Campaign
from suite.errors import RunsFailed, StoreError, UsageError
from suite.install.worker import Worker
from suite.matrix.resources import Resources
from suite.records.store import load_results, write_record
from suite.schema.record import Gpu, Outcome, RunRecord
from tests.fixtures.results.generated_results import GPU_HOST, make_record
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.simulated_campaign import no_replay, said

Fps = Callable[[int], float]


def search(
    fps: Fps, *, memory: int | None = None, fails_at: int = 0, start: int, granularity: int = 1, most: int | None = None
) -> tuple[Capacity, list[int]]:
    """The answer for a GPU with this throughput and room, and what was tried."""
    trials: list[Trial] = []
    while not isinstance(size := next_size(trials, start=start, granularity=granularity, most=most), Capacity):
        assert size not in {trial.num_envs for trial in trials}, "tried twice"
        assert len(trials) < 40
        outcome: Outcome = "oom" if memory is not None and size > memory else "completed"
        outcome = "crashed" if size == fails_at else outcome
        trials.append(Trial(num_envs=size, outcome=outcome, fps=fps(size) if outcome == "completed" else None))
    return size, [trial.num_envs for trial in trials]


@settings(derandomize=True, database=None, deadline=None)
@given(memory=st.integers(1024, 10**6), granularity=st.sampled_from([1, 16, 64]))
def test_memory_is_found_to_within_the_resolution(memory: int, granularity: int) -> None:
    answer, tried = search(float, memory=memory, start=1024, granularity=granularity)
    assert answer.bound == "memory"
    assert answer.num_envs is not None
    assert answer.beyond is not None
    assert answer.num_envs <= memory < answer.beyond
    assert answer.beyond - answer.num_envs <= max(granularity, RESOLUTION * answer.num_envs)
    assert answer.fps == answer.num_envs
    assert all(num_envs % granularity == 0 for num_envs in tried)


def test_what_is_tried_is_doubled_and_then_halved() -> None:
    answer, tried = search(float, memory=5000, start=1024)
    assert tried == [1024, 2048, 4096, 8192, 6144, 5120, 4608]
    assert (answer.num_envs, answer.beyond) == (4608, 5120)


def test_throughput_that_saturates_ends_the_search_where_it_is_good_enough() -> None:
    """f(n) = n / (n + h): a doubling gains less than 5 % from n = 9 h on, and 0.95 of f(32 h) needs 12 h."""

    def fps(num_envs: int) -> float:
        return 1e6 * num_envs / (num_envs + 1000)

    answer, tried = search(fps, start=1000)
    assert answer.bound == "throughput"
    assert tried[:6] == [1000, 2000, 4000, 8000, 16000, 32000]
    target = 0.95 * fps(32000)
    exact = 1000 * target / (1e6 - target)
    assert answer.num_envs is not None
    assert answer.beyond is not None
    assert answer.beyond < exact <= answer.num_envs <= exact * (1 + RESOLUTION)


def test_throughput_that_falls_keeps_the_peak() -> None:
    peaked = {64: 1.0, 128: 2.0, 256: 3.0, 512: 1.0}
    answer, tried = search(lambda num_envs: peaked.get(num_envs, 2.0), start=64)
    assert (answer.num_envs, answer.fps, answer.beyond) == (256, 3.0, 240)
    assert tried == [64, 128, 256, 512, 192, 224, 240]


@pytest.mark.parametrize(("most", "tried"), [(300, [64, 128, 256]), (100, [64])])
def test_the_search_stops_where_it_was_told_to(most: int, tried: list[int]) -> None:
    answer, sizes = search(float, start=64, most=most)
    assert (answer.bound, answer.num_envs, answer.beyond, sizes) == ("asked", tried[-1], None, tried)


@pytest.mark.parametrize("fails_at", [64, 128, 256])
def test_another_failure_ends_the_search_and_is_not_taken_for_memory(fails_at: int) -> None:
    answer, tried = search(float, memory=300, fails_at=fails_at, start=64)
    assert (answer.bound, answer.beyond, tried[-1]) == ("failure", fails_at, fails_at)
    assert answer.num_envs == (None if fails_at == 64 else fails_at // 2)


def test_too_little_memory_for_the_first_number_has_no_answer() -> None:
    answer, tried = search(float, memory=10, start=64)
    assert (answer.num_envs, answer.fps, answer.bound, answer.beyond, tried) == (None, None, "memory", 64, [64])


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
ROOM = 600  # environments


def planned(root: Path, **options: object) -> Campaign:
    matrix = root / "tiny.toml"
    matrix.write_text(MATRIX, encoding="utf-8")
    asked = options_with(matrix=str(matrix), out=root / "out", capacity="tiny", with_report=False, **options)
    return make_plan(
        Campaign(
            options=of_capacity(asked),
            console=Console(file=io.StringIO(), width=200),
            machine=replace(GPU_HOST, gpus=(Gpu(index=0, name="x", memory_gb=None, compute_capability=None),)),
            device="cuda",
            resources=Resources(nnodes=1, gpus_per_node=1, cpus_per_node=4),
        )
    )


@dataclass(kw_only=True)
class MadeUp:
    """Stands in for a launch: every environment adds to the throughput, up to ``ROOM`` of them."""

    beyond: Outcome = "oom"
    started: list[str]

    def train(self, _: Campaign, run: Run, _line: object) -> RunRecord:
        self.started.append(f"{run.case.rl_library} {run.case.num_envs} {run.round}")
        outcome: Outcome = "completed" if run.case.num_envs <= ROOM else self.beyond
        record = make_record(run.case, index=run.round, iteration_time_s=0.5, outcome=outcome, reason="made up")
        run.run_dir.mkdir(parents=True)
        write_record(record, run.record_path)
        return record


@pytest.fixture(scope="module")
def made_up() -> Iterator[MadeUp]:
    gpu = MadeUp(started=[])
    with pytest.MonkeyPatch.context() as patch, no_replay():
        patch.setattr(rounds, "_train", gpu.train)
        yield gpu


@pytest.fixture(scope="module")
def searched(made_up: MadeUp, tmp_path_factory: pytest.TempPathFactory) -> tuple[Campaign, list[str]]:
    """A finished search of both libraries with two rounds a point, and the rounds that were started."""
    campaign = find_capacity(planned(tmp_path_factory.mktemp("search"), repeats=2))
    return campaign, list(made_up.started)


def stored(campaign: Campaign) -> dict[str, Any]:
    answers = json.loads((campaign.out / "capacity.json").read_text())["found"]
    return {answer["first_case_id"]: answer["capacity"] for answer in answers}


RSL, GAMES = (f"tiny/{library}-kitless-n512-1x1" for library in ("rsl_rl", "rl_games"))


def test_each_library_has_an_answer_and_running_out_of_memory_is_no_failure(
    searched: tuple[Campaign, list[str]],
) -> None:
    campaign, started = searched
    steps.judge(campaign)
    answers = stored(campaign)
    assert {first: (answer["num_envs"], answer["beyond"], answer["bound"]) for first, answer in answers.items()} == {
        RSL: (576, 640, "memory"),
        GAMES: (512, 1024, "memory"),  # whole minibatches
    }
    assert {result.case.world_size for result in campaign.results} == {1}
    assert "capacity: 576 environments on one rank, bound by memory" in said(campaign)
    assert started[:4] == ["rsl_rl 512 0", "rsl_rl 512 1", "rsl_rl 1024 0", "rsl_rl 768 0"]  # one of what does not fit


def test_again_nothing_runs_and_answers_of_other_libraries_stay(
    searched: tuple[Campaign, list[str]], made_up: MadeUp
) -> None:
    campaign, _ = searched
    before = stored(campaign)
    made_up.started.clear()
    again = find_capacity(planned(campaign.out.parent, repeats=2, rl_libraries=("rsl_rl",)))
    assert made_up.started == []
    assert stored(again) == before
    assert [result.case.rl_library for result in again.results] == ["rsl_rl"] * len(again.results)


def test_a_damaged_answer_of_an_earlier_command_is_named(made_up: MadeUp, tmp_path: Path) -> None:
    campaign = planned(tmp_path, rl_libraries=("rsl_rl",))
    campaign.out.mkdir()
    (campaign.out / "capacity.json").write_text("[]")
    with pytest.raises(StoreError, match=r"capacity\.json is not readable: document: Input should be .*Move it away"):
        find_capacity(campaign)
    assert made_up.beyond == "oom"


def test_a_crash_ends_the_search_and_the_command_with_an_error(
    made_up: MadeUp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_up, "beyond", "crashed")
    campaign = find_capacity(planned(tmp_path, rl_libraries=("rsl_rl",)))
    assert (stored(campaign)[RSL]["bound"], stored(campaign)[RSL]["num_envs"]) == ("failure", 512)
    with pytest.raises(RunsFailed, match="crashed: made up"):
        steps.judge(campaign)


def test_what_a_search_cannot_use_is_refused_before_anything_runs(made_up: MadeUp, tmp_path: Path) -> None:
    made_up.started.clear()
    with pytest.raises(UsageError, match="--capacity tiny does not use --gpus, --upstream"):
        of_capacity(options_with(matrix="smoke", capacity="tiny", gpus=(2,), upstream=True))
    with pytest.raises(UsageError, match="--most-envs is 511, allowed is 512 or more"):
        find_capacity(planned(tmp_path, most_envs=511))
    campaign = planned(tmp_path)
    refused = tuple(replace(item, infeasible="needs 1 GPU, available: 0") for item in campaign.planned)
    with pytest.raises(UsageError, match="can run here: needs 1 GPU, available: 0"):
        find_capacity(replace(campaign, planned=refused))
    assert made_up.started == []


@pytest.mark.slow
@pytest.mark.worker
def test_a_real_search_on_the_cpu(worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert worker.python.exists()
    matrix, out = tmp_path / "tiny.toml", tmp_path / "out"
    matrix.write_text(REAL.replace("512", "16"), encoding="utf-8")
    argv = ["bench", "--matrix", str(matrix), "--capacity", "tiny", "--most-envs", "32", "--device", "cpu"]
    assert main([*argv, "--out", str(out), "--no-report"]) == 0
    (answer,) = json.loads((out / "capacity.json").read_text())["found"]
    assert [trial["num_envs"] for trial in answer["trials"]] == [16, 32]
    assert all(trial["outcome"] == "completed" and trial["fps"] > 0 for trial in answer["trials"])
    assert answer["capacity"]["bound"] in ("asked", "throughput")  # a busy machine may end it early
    assert [result.case.num_envs for result in load_results(out)] == [16, 32]
    assert "environments on one rank, bound by" in capsys.readouterr().out
