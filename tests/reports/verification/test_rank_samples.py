"""What the verifier asks of the samples of one rank: parts within wholes, marks, the library's clock, time between."""

from pathlib import Path
from typing import Any

import pytest

from reports.verification.samples.rank_samples import check_between
from tests.fixtures.results.damaged_results import (
    CASE,
    COMMITTED,
    FOUR_TRAININGS,
    PAIRS,
    RENDERING,
    TWO_GPUS,
    Damage,
    column,
    damaged_case,
    rounds,
    sample,
    set_item,
)

ITERATION_S = 0.5


def found(gaps_s: list[float]) -> list[str]:
    """What is found in iterations of ``ITERATION_S`` with these gaps after each but the last."""
    starts_s = [0.0]
    for gap_s in gaps_s:
        starts_s.append(starts_s[-1] + ITERATION_S + gap_s)
    findings = check_between("case.json", "round 0, rank 0", starts_s, [ITERATION_S] * len(starts_s))
    return [str(finding) for finding in findings]


def test_what_a_library_sets_up_after_the_first_iteration_may_take_long() -> None:
    assert found([0.4, 0.01, 0.01]) == []


@pytest.mark.parametrize("gaps_s", [[0.01, 0.4, 0.01], [0.0, -0.2, 0.0]])
def test_time_that_is_missing_or_too_much_later_is_found(gaps_s: list[float]) -> None:
    (finding,) = found(gaps_s)
    assert "the share of its time between iterations" in finding


def test_two_iterations_leave_no_time_to_compare() -> None:
    assert found([0.4]) == []


# h200-x2-shadow: two ranks, pictures, rsl_rl; round 0 is looked at, and iteration 2 is its first that is marked.
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            lambda d: sample(d, "learning_time_s", 3, 0.8),
            "rank 1: collection_time_s and learning_time_s of iteration 3",
        ),
        (lambda d: sample(d, "collection_time_s", 3, 1.2), "rank 1: collection_time_s of iteration 3"),
        (
            lambda d: sample(d, "environment_step_time_s", 2, 0.4),
            "rank 1: simulate_time_s and render_time_s of iteration 2",
        ),
        (
            lambda d: sample(d, "inference_time_s", 2, 5.0),
            "rank 1: environment_step_time_s and inference_time_s of iteration 2",
        ),
        (lambda d: sample(d, "all_reduce_time_s", 2, 99.0), "rank 1: all_reduce_time_s of iteration 2"),
        (lambda d: sample(d, "all_reduce_calls", 2, 1.1), "rank 1: all_reduce_calls of iteration 2"),
        (lambda d: sample(d, "all_reduce_calls", 2, 2.0), "rank 1: all_reduce_calls[2]"),
        (lambda d: sample(d, "all_reduce_bytes", 2, 1.1), "rank 1: all_reduce_bytes[2]"),
        (lambda d: set_item(column(d, "all_reduce_bytes"), 2, None), "rank 1: all_reduce_bytes of iteration 2"),
        (lambda d: sample(d, "core_probe_time_s", 2, -1.0), "rank 1: core_probe_time_s of iteration 2"),
        (
            lambda d: rounds(d)[0]["ranks"][1]["samples"].update(core_wait_time_s=[-1.0] * len(column(d, "marked"))),
            "rank 1: core_wait_time_s of iteration 2",
        ),
        (lambda d: set_item(column(d, "marked"), 2, 0.9), "rank 1: marked of iteration 2"),
        (lambda d: set_item(column(d, "marked"), 2, 0.0), "all_reduce_bytes of iteration 2"),
        (lambda d: set_item(column(d, "marked"), 3, 1.0), "rank 1: marked[3]"),
        (lambda d: sample(d, "rsl_rl.total_fps", 3, 0.9), "rank 1: the iteration by rsl_rl.total_fps of iteration 3"),
        (
            lambda d: sample(d, "rsl_rl.collection_time_s", 3, 0.9),
            "rank 1: the time by rsl_rl.collection_time_s of iteration 3",
        ),
        (lambda d: set_item(column(d, "success_rate"), 3, 1.1), "rank 1: success_rate of iteration 3"),
        (
            lambda d: set_item(column(d, "episode_length_mean", rank=0), 9, 9999.0),
            "rank 0: episode_length_mean of iteration 9",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_samples_of_a_rank_are_held_to_each_other(tmp_path: Path, change: Damage, what: str) -> None:
    assert any(what in finding.what for finding in damaged_case(TWO_GPUS, change, tmp_path))


def test_pictures_are_of_whole_steps(tmp_path: Path) -> None:
    found = damaged_case(RENDERING, lambda d: set_item(column(d, "control.pictures"), 3, 29491.0), tmp_path)
    assert [one.what for one in found] == ["round 0, rank 1: control.pictures of iteration 3"]


@pytest.mark.parametrize(
    ("name", "factor", "what"),
    [
        ("rl_games.total_fps", 1.01, "the iteration by rl_games.total_fps of iteration 3"),
        ("rl_games.update_time_s", 0.9, "the time by rl_games.update_time_s of iteration 3"),
        ("rl_games.step_inference_fps", 0.9, "the time by rl_games.step_inference_fps of iteration 3"),
        ("rl_games.step_fps", 0.5, "the time by rl_games.step_fps of iteration 3"),
        ("rl_games.step_fps", 1.5, "the time by rl_games.step_fps of iteration 3"),
    ],
)
def test_the_own_times_of_rl_games_are_held_to_ours(tmp_path: Path, name: str, factor: float, what: str) -> None:
    found = damaged_case(PAIRS / CASE, lambda d: sample(d, name, 3, factor), tmp_path)
    assert any(f"rank 1: {what}" in finding.what for finding in found)


@pytest.mark.parametrize(("beyond_s", "is_found"), [(0.006, False), (0.012, True)])
def test_trainings_that_share_a_gpu_may_work_between_two_clocks(
    tmp_path: Path, beyond_s: float, *, is_found: bool
) -> None:
    """Each of four has 2 ms beside the 5 % that a library's clock may differ."""

    def change(document: Any) -> None:
        ours_s = column(document, "learning_time_s")[5]
        set_item(column(document, "rsl_rl.learning_time_s"), 5, 1.05 * ours_s + beyond_s)

    found = damaged_case(FOUR_TRAININGS, change, tmp_path)
    assert any("rank 1: the time by rsl_rl.learning_time_s of iteration 5" in one.what for one in found) is is_found


@pytest.mark.parametrize(
    ("name", "factor", "is_found"),
    [
        ("h200-shared-ant", 0.5, True),
        ("h200-shared-ant", 1.6, False),
        ("h200-shared-ant-mps", 0.5, True),
        ("h200-shared-ant-mps", 1.6, True),
    ],
)
def test_the_host_may_end_a_step_long_before_the_gpu_only_where_trainings_take_turns(
    tmp_path: Path, name: str, factor: float, *, is_found: bool
) -> None:
    """The GPU may be another training's until then. The host's step is always part of its steps and inference."""
    four = COMMITTED / f"2026.12/{name}/cases/ant-shared/rl_games-kitless-n4096-1x1-trainings-4.json"
    found = damaged_case(four, lambda d: sample(d, "rl_games.step_fps", 6, factor), tmp_path)
    assert any("rank 1: the time by rl_games.step_fps of iteration 6" in one.what for one in found) is is_found
