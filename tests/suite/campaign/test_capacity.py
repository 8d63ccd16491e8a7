"""The search for capacity: its rule on GPUs known in closed form, and as a campaign with a GPU that a test makes up."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suite.__main__ import main
from suite.campaign import steps
from suite.campaign.capacity import RESOLUTION, Capacity, Trial, find_capacity, next_size, of_capacity
from suite.campaign.planning.plan import make_plan
from suite.campaign.state import Campaign
from suite.errors import RunsFailed, StoreError, UsageError
from suite.install.worker import Worker
from suite.matrix.resources import Resources
from suite.records.store import load_results
from suite.schema.record import Outcome
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.real_runs import cartpole, matrix_of
from tests.fixtures.runs.simulated_campaign import campaign_of, no_replay, printed
from tests.fixtures.runs.simulated_host import SimulatedHost


def search(
    fps: Callable[[int], float] = float, *, memory: int | None = None, fails_at: int = 0, start: int = 64,
    granularity: int = 1, most: int | None = None,
) -> tuple[Capacity, list[int]]:  # fmt: skip
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
    answer, tried = search(memory=memory, start=1024, granularity=granularity)
    assert answer.bound == "memory"
    assert answer.num_envs is not None
    assert answer.beyond is not None
    assert answer.num_envs <= memory < answer.beyond
    assert answer.beyond - answer.num_envs <= max(granularity, RESOLUTION * answer.num_envs)
    assert answer.fps == answer.num_envs
    assert all(num_envs % granularity == 0 for num_envs in tried)


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


PEAKED = {64: 1.0, 128: 2.0, 256: 3.0, 512: 1.0}


@pytest.mark.parametrize(
    ("gpu", "answer", "tried"),
    [
        ({"memory": 5000, "start": 1024}, (4608, "memory", 5120), [1024, 2048, 4096, 8192, 6144, 5120, 4608]),
        ({"memory": 10}, (None, "memory", 64), [64]),
        ({"fps": lambda size: PEAKED.get(size, 2.0)}, (256, "throughput", 240), [64, 128, 256, 512, 192, 224, 240]),
        ({"most": 300}, (256, "asked", None), [64, 128, 256]),
        ({"most": 100}, (64, "asked", None), [64]),
        ({"memory": 300, "fails_at": 64}, (None, "failure", 64), [64]),
        ({"memory": 300, "fails_at": 128}, (64, "failure", 128), [64, 128]),
        ({"memory": 300, "fails_at": 256}, (128, "failure", 256), [64, 128, 256]),
        ({"memory": 300, "fails_at": 384}, (256, "failure", 384), [64, 128, 256, 512, 384]),
    ],
)
def test_numbers_are_doubled_and_then_halved_until_the_bound_is_known(
    gpu: dict[str, Any], answer: tuple[int | None, str, int | None], tried: list[int]
) -> None:
    capacity, sizes = search(**gpu)
    assert ((capacity.num_envs, capacity.bound, capacity.beyond), sizes) == (answer, tried)
    assert (capacity.fps is None) == (capacity.num_envs is None)


TINY = cartpole("rsl_rl", "rl_games", name="tiny", topologies=("1x1", "1x2"), iterations=8, num_envs=512)
MATRIX = matrix_of(TINY + "num_envs_more = [1024]\n")
REAL = matrix_of(cartpole("rsl_rl", name="tiny", iterations=8, num_envs=16))
ROOM = 600  # environments


def host(*, beyond: str = "oom") -> SimulatedHost:
    """A host on which every environment adds to the throughput, up to ``ROOM`` of them."""
    return SimulatedHost(
        wall_s=0.0,
        fits=lambda launch: launch.case.num_envs <= ROOM or beyond != "oom",
        fails=lambda launch: launch.case.num_envs > ROOM and beyond == "crashed",
    )


def planned(root: Path, host: SimulatedHost, **options: object) -> Campaign:
    matrix = root / "tiny.toml"
    matrix.write_text(MATRIX, encoding="utf-8")
    asked = options_with(matrix=str(matrix), out=root / "out", capacity="tiny", with_report=False, **options)
    here = Resources(nnodes=1, gpus_per_node=1, cpus_per_node=4)
    return make_plan(replace(campaign_of(host), options=of_capacity(asked), resources=here))


@pytest.fixture(autouse=True)
def without_replay() -> Iterator[None]:
    with no_replay():
        yield


def stored(campaign: Campaign) -> dict[str, Any]:
    answers = json.loads((campaign.out / "capacity.json").read_text())["found"]
    return {answer["first_case_id"]: answer["capacity"] for answer in answers}


RSL, GAMES = (f"tiny/{library}-kitless-n512-1x1" for library in ("rsl_rl", "rl_games"))


def test_each_library_has_an_answer_that_the_same_command_keeps(tmp_path: Path) -> None:
    gpu = host()
    campaign = find_capacity(planned(tmp_path, gpu, repeats=2))
    steps.judge(campaign)  # running out of memory is no failure
    answers = stored(campaign)
    assert {first: (answer["num_envs"], answer["beyond"], answer["bound"]) for first, answer in answers.items()} == {
        RSL: (576, 640, "memory"),
        GAMES: (512, 1024, "memory"),  # whole minibatches
    }
    assert {result.case.world_size for result in campaign.results} == {1}
    assert "capacity: 576 environments in one process, bound by memory" in printed(campaign)
    started = [(launch.case.rl_library, launch.case.num_envs, launch.round) for launch in gpu.started]
    assert started[:4] == [("rsl_rl", 512, 0), ("rsl_rl", 512, 1), ("rsl_rl", 1024, 0), ("rsl_rl", 768, 0)]
    gpu.started.clear()
    again = find_capacity(planned(tmp_path, gpu, repeats=2, rl_libraries=("rsl_rl",)))
    assert (gpu.started, stored(again)) == ([], answers)
    assert {result.case.rl_library for result in again.results} == {"rsl_rl"}
    (again.out / "capacity.json").write_text("[]")
    with pytest.raises(StoreError, match=r"capacity\.json is not readable: document: Input should be .*Move it away"):
        find_capacity(planned(tmp_path, gpu, repeats=2))


def test_a_crash_ends_the_search_and_the_command_with_an_error(tmp_path: Path) -> None:
    campaign = find_capacity(planned(tmp_path, host(beyond="crashed"), rl_libraries=("rsl_rl",)))
    assert (stored(campaign)[RSL]["bound"], stored(campaign)[RSL]["num_envs"]) == ("failure", 512)
    with pytest.raises(RunsFailed, match="crashed: "):
        steps.judge(campaign)


def test_what_a_search_cannot_use_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--capacity tiny does not use --gpus, --upstream"):
        of_capacity(options_with(matrix="smoke", capacity="tiny", gpus=(2,), upstream=True))
    gpu = host()
    with pytest.raises(UsageError, match="--most-envs is 511, allowed is 512 or more"):
        find_capacity(planned(tmp_path, gpu, most_envs=511))
    campaign = planned(tmp_path, gpu)
    refused = tuple(replace(item, infeasible="needs 1 GPU, available: 0") for item in campaign.planned)
    with pytest.raises(UsageError, match="can run here: needs 1 GPU, available: 0"):
        find_capacity(replace(campaign, planned=refused))
    assert gpu.started == []


@pytest.mark.slow
@pytest.mark.worker
def test_a_real_search_on_the_cpu(worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert worker.python.exists()
    matrix, out = tmp_path / "tiny.toml", tmp_path / "out"
    matrix.write_text(REAL, encoding="utf-8")
    argv = ["bench", "--matrix", str(matrix), "--capacity", "tiny", "--most-envs", "32", "--device", "cpu"]
    assert main([*argv, "--out", str(out), "--no-report"]) == 0
    (answer,) = json.loads((out / "capacity.json").read_text())["found"]
    assert [trial["num_envs"] for trial in answer["trials"]] == [16, 32]
    assert all(trial["outcome"] == "completed" and trial["fps"] > 0 for trial in answer["trials"])
    assert answer["capacity"]["bound"] in ("asked", "throughput")  # a busy machine may end it early
    assert [result.case.num_envs for result in load_results(out)] == [16, 32]
    assert "environments in one process, bound by" in capsys.readouterr().out
