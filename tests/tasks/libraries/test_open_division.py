"""What the open division changes beside overrides: threads and cores of a rank, seen in a real run."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from suite.matrix.plan import render_launch
from tasks.worker import own_cpus, threads_of
from tests.conftest import CaseMaker
from tests.fixtures.runs.real_runs import NUM_CPUS, cartpole
from tests.fixtures.runs.trained_runs import TrainSeries

TUNED = cartpole(
    "rsl_rl", division="open", variant="pinned", cpu_threads=1, pin_cpus=True,
    overrides=["agent.algorithm.max_grad_norm=0.5"],
)  # fmt: skip


def test_pinned_ranks_have_neighbouring_cores_of_their_own(make_case: CaseMaker) -> None:
    two = make_case(pin_cpus=True, nproc_per_node=2)
    assert [own_cpus(two, rank, range(8)) for rank in (0, 1)] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    few = replace(two, cpu_threads=2)
    assert [own_cpus(few, rank, (3, 5, 7, 9)) for rank in (0, 1)] == [(3, 5), (7, 9)]
    assert own_cpus(replace(two, cpu_threads=6), 1, range(8)) == (6, 7, 0, 1, 2, 3)  # shared for want of cores
    assert own_cpus(replace(two, cpu_threads=16), 1, range(2)) == (0, 1)


def test_a_quota_of_cores_holds_for_torch_too(make_case: CaseMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that may use 2 of the node's 64 cores sees all of them: torch had 32 threads, and the other pools 1."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    case = make_case(nproc_per_node=2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads_of(case) == 32
    launch = render_launch(
        case, round_index=0, worker_python=Path("python"), project_root=Path("/p"), run_dir=Path("/r"),
        asset_root=Path("/a"), cache_dir=Path("/c"), cpus=2,
    )  # fmt: skip
    monkeypatch.setenv("OMP_NUM_THREADS", launch.env["OMP_NUM_THREADS"])
    assert threads_of(case) == 1
    assert threads_of(make_case(nproc_per_node=2, cpu_threads=3)) == 3


@pytest.mark.slow
@pytest.mark.worker
def test_a_tuned_case_runs_as_it_says_and_is_another_workload(train_series: TrainSeries) -> None:
    closed, tuned = (train_series(series).record for series in (cartpole("rsl_rl"), TUNED))
    settings = [record.ranks[0].settings for record in (closed, tuned)]
    assert [(values["torch_num_threads"], values["cpus_allowed"]) for values in settings] == [(NUM_CPUS,) * 2, (1, 1)]
    assert closed.workload != tuned.workload
    assert closed.case.case_id + "-pinned" == tuned.case.case_id
