"""Simulation and learning at the same time beside the same work in turn, of GENERATED results."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.sets.version import read_version
from reports.site.pages import page_sources
from reports.topics.pipeline import page
from reports.topics.pipeline.page import pipelines
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import (
    GPU_HOST,
    failed_result,
    make_case,
    make_rank,
    make_record,
    write_results,
)

TURN = replace(make_case("cartpole-turn", device="cuda", scaling="weak", num_envs_global=100), rl_library="torchrl")
PIPE = replace(TURN, case_id="pipe/torchrl-kitless-n100-1x1", series="pipe", workload="async_pipeline")
FRAMES = TURN.frames_per_iteration

type Samples = dict[str, tuple[float | None, ...]]


def in_turn(*runs_s: float) -> CaseResult:
    records = [
        replace(make_record(TURN, index=index, iteration_time_s=time_s), environment=GPU_HOST)
        for index, time_s in enumerate(runs_s)
    ]
    return CaseResult(case=TURN, rounds=tuple(records))


def piped(*runs_s: float) -> CaseResult:
    """A pipeline that collects for half of the time, and learns for half of that."""
    records = []
    for index, time_s in enumerate(runs_s):
        record = make_record(TURN, index=index)
        ranks = [make_rank(PIPE, rank=rank, iteration_time_s=time_s) for rank in range(2)]
        count = ranks[0].num_iterations
        columns: Samples = {
            "pipeline.staleness_updates": (1.0,) * count,
            "pipeline.batches_since_sync": (1.0,) * count,
            "pipeline.collected_time_s": (time_s / 2,) * count,
            "pipeline.overlapped_time_s": (time_s / 4,) * count,
        }
        of_simulator: Samples = dict.fromkeys(columns, (None,) * count)
        ranks = [
            replace(rank, samples={**rank.samples, **more})
            for rank, more in zip(ranks, (columns, of_simulator), strict=True)
        ]
        records.append(replace(record, case=PIPE, ranks=tuple(ranks), environment=GPU_HOST))
    return CaseResult(case=PIPE, rounds=tuple(records))


def test_a_pipeline_is_held_against_the_same_work_in_turn() -> None:
    (found,) = pipelines([in_turn(0.6, 0.6, 0.6), piped(0.4, 0.4, 0.4)])
    estimates = (found.over_in_turn, found.fps, found.collecting_fps, found.updates_per_s)
    assert all(estimates)
    assert [one.value for one in estimates if one] == pytest.approx(
        [1.5, FRAMES / 0.4, FRAMES / 0.2, PIPE.optimiser_steps / 0.4]
    )
    assert (found.batches_between_syncs, found.staleness) == (1, 1)
    assert found.overlapped == pytest.approx(0.25)


@pytest.mark.parametrize("change", [{"num_envs": 50}, {"rl_library": "rsl_rl"}, {"nproc_per_node": 2}], ids=str)
def test_other_work_is_nothing_to_hold_it_against(change: dict[str, object]) -> None:
    other = in_turn(0.6)
    case = replace(other.case, **change)  # type: ignore[arg-type]  # of one field
    rounds = tuple(replace(record, case=case) for record in other.rounds)
    (found,) = pipelines([CaseResult(case=case, rounds=rounds), piped(0.4)])
    assert found.over_in_turn is None
    assert found.fps is not None


def test_the_page_says_what_it_brings(tmp_path: Path) -> None:
    version = read_version(write_results([in_turn(0.6, 0.6, 0.6), piped(0.4, 0.4, 0.4)], tmp_path), name="v")
    assert "pipeline" in page_sources(version)
    assert page.answer(version).text.startswith(
        "Simulating and learning at the same time processes 1.50 (1.50 to 1.50)"
    )
    assert page.answer(version).text.endswith(" times the frames of the same work in turn (Cartpole on 1 GPU).")
    row = next(line for line in page.sets(version).text.splitlines() if line.startswith(PIPE.case_id))
    assert row.split("\t")[-4:] == ["1.00", "1.00", "25.0 %", "3"]


def test_without_a_pipeline_there_is_no_page(tmp_path: Path) -> None:
    version = read_version(write_results([in_turn(0.6)], tmp_path), name="v")
    assert "pipeline" not in page_sources(version)


def test_a_pipeline_that_failed_says_why_and_has_no_figure() -> None:
    failed = failed_result(PIPE, outcome="crashed", reason="rank 1: no memory")
    (found,) = pipelines([failed])
    assert (found.fps, found.staleness, found.overlapped, found.over_in_turn) == (None, None, None, None)
