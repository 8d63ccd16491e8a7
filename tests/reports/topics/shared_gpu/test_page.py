"""Several trainings on one GPU beside one, of GENERATED results."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.analysis.rows import training_fps
from reports.sets.version import Version, read_version
from reports.site.pages import page_sources
from reports.topics.shared_gpu import page
from reports.topics.shared_gpu.model import all_at_work, groups
from suite.schema.record import CaseResult
from suite.statistics.reduce import round_time_s, trainings_fps
from tests.fixtures.results.generated_results import (
    GPU_HOST,
    failed_result,
    make_case,
    make_rank,
    make_record,
    write_results,
)

ONE = make_case("cartpole-shared", device="cuda", scaling="weak", num_envs_global=100)
TWO = replace(
    ONE,
    case_id="cartpole-shared/rsl_rl-kitless-n200-1x1-trainings-2",
    division="open",
    trainings_per_gpu=2,
    num_envs_global=200,
)
FRAMES = ONE.frames_per_iteration


def result(*runs: Sequence[float], mps: bool | None = False) -> CaseResult:
    """``runs``: the seconds per iteration of each training of each run."""
    case = {1: ONE, 2: TWO}[len(runs[0])]
    records = []
    for index, times_s in enumerate(runs):
        ranks = [make_rank(case, rank=rank, iteration_time_s=time_s) for rank, time_s in enumerate(times_s)]
        ranks = [replace(rank, settings={**rank.settings, "mps": mps}) for rank in ranks]
        record = make_record(ONE, index=index)
        records.append(replace(record, case=case, ranks=tuple(ranks), environment=GPU_HOST))
    return CaseResult(case=case, rounds=tuple(records))


def alone(*, mps: bool | None = False) -> CaseResult:
    return result([0.5], [0.5], [0.5], mps=mps)


def version_of(results: Sequence[CaseResult], folder: Path) -> Version:
    return read_version(write_results(results, folder), name="generated")


def test_the_total_is_the_sum_over_trainings_of_their_own_pace() -> None:
    shared = result([0.8, 1.0], [0.8, 1.0], [0.8, 1.0])
    (record, *_) = shared.rounds
    assert trainings_fps(record) == pytest.approx((FRAMES / 0.8, FRAMES / 1.0))
    assert 2 * FRAMES / round_time_s(record) == pytest.approx(FRAMES / 0.8 + FRAMES / 1.0)
    (group,) = groups([shared, alone()])
    one, two = group.numbers
    assert (one.trainings, two.trainings) == (1, 2)
    assert two.total_fps is not None
    assert two.total_fps.value == pytest.approx(FRAMES / 0.8 + FRAMES / 1.0)
    assert two.each_fps == pytest.approx((FRAMES / 1.0, FRAMES / 0.8))
    assert two.over_one is not None
    assert two.each_over_alone is not None
    assert two.over_one.value == pytest.approx(0.5 / 0.8 + 0.5 / 1.0)
    assert two.each_over_alone.value == pytest.approx((0.5 / 0.8 + 0.5 / 1.0) / 2)
    assert two.over_one.interval is not None


def test_the_page_opens_with_what_they_make_together(tmp_path: Path) -> None:
    version = version_of([alone(), result([0.8, 0.8], [0.8, 0.8], [0.8, 0.8], mps=True)], tmp_path)
    assert "shared-gpu" in page_sources(version)
    said = page.answer(version).text
    assert "2 trainings together process 1.25 times the frames of one" in said
    assert "62.5 %" in said
    *_, one, two = (line.split("\t") for line in page.sets(version).text.splitlines())
    assert (one[1], one[3], one[7]) == ("1", "1", "no")
    assert two[1:] == [
        "2", "4,000 (4,000 to 4,000)", "1.25 (1.25 to 1.25)", "2,000", "62.5 % (62.5 % to 62.5 %)", "n/a", "yes",
        "3",
    ]  # fmt: skip


def test_what_failed_has_no_figure_and_is_listed(tmp_path: Path) -> None:
    version = version_of([alone(), failed_result(TWO, outcome="oom", reason="no memory for two")], tmp_path)
    assert page.answer(version).text == "No case completed both with one training and with several on the GPU."
    said = page.sets(version).text
    assert "\t2\tn/a\tn/a\tn/a\tn/a\tn/a\tn/a\t0" in said
    assert f"{TWO.case_id}, run 0: oom. no memory for two" in said


def test_the_share_in_which_all_are_at_work_is_that_of_the_fastest_in_each_turn() -> None:
    (record,) = result([0.8, 1.0]).rounds
    assert all_at_work(record) is None
    turns = (None, None, *([1.0] * 5), *([2.0] * 5))
    in_turns = [replace(rank, samples={**rank.samples, "turn": turns}) for rank in record.ranks]
    assert all_at_work(replace(record, ranks=tuple(in_turns))) == pytest.approx(0.8)


def test_mps_is_known_only_if_all_runs_say_the_same() -> None:
    mixed = CaseResult(case=ONE, rounds=(alone().rounds[0], alone(mps=True).rounds[1]))
    (group,) = groups([mixed, result([0.8, 0.8], mps=None)])
    assert [each.mps for each in group.numbers] == [None, None]


def test_without_one_training_beside_it_nothing_is_shown(tmp_path: Path) -> None:
    shared = result([0.8, 0.8])
    other = replace(ONE, num_steps_per_env=32)
    assert groups([shared, replace(alone(), case=other)]) == ()
    assert "shared-gpu" not in page_sources(version_of([shared], tmp_path))


def test_a_gpus_frames_are_never_those_of_several_trainings() -> None:
    assert training_fps(alone()) == pytest.approx(FRAMES / 0.5)
    assert training_fps(result([0.8, 0.8])) is None
