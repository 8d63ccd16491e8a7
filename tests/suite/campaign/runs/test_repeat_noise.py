"""Twins: which cases get one, where their results go, and the noise budget."""

import io
import random
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from reports.topics.hardware.page import NOISE_RULE
from suite.campaign.folder import Folder
from suite.campaign.planning.plan import make_plan
from suite.campaign.state import Campaign
from suite.matrix.resources import Resources
from suite.schema.record import CaseResult
from suite.statistics.aa_noise import (
    TwinPair,
    is_twin,
    is_within,
    noise_budget,
    twin_pairs,
    with_twins,
)
from tests.fixtures.results.generated_results import GPU_HOST, make_case, make_result
from tests.fixtures.runs.asked_options import options_with


def twin_of(result: CaseResult, *times_s: float) -> CaseResult:
    _, twin = with_twins([result.case])
    return make_result(twin, *times_s)


def test_the_baseline_of_each_series_is_followed_by_its_twin() -> None:
    cases = [make_case("cartpole-strong", world_size=size) for size in (2, 1, 4)]
    cases += [make_case("ant-weak", scaling="weak", world_size=2)]
    ids = [case.case_id for case in with_twins(cases)]
    two, one, four, ant = (case.case_id for case in cases)
    assert ids == [two, one, f"{one}-aa", four, ant, f"{ant}-aa"]
    twin = with_twins(cases)[2]
    assert is_twin(twin)
    assert not is_twin(cases[1])
    assert (twin.series, twin.seed, twin.num_envs) == (cases[1].series, cases[1].seed, cases[1].num_envs)


@pytest.mark.parametrize(
    ("asked", "twins"),
    [
        ({"series": ("ant-weak",)}, ["ant-weak/rl_games-kitless-n1024-1x1-aa"]),
        (
            {"series": ("ant-weak",), "rl_libraries": ("rsl_rl",), "gpus": (2, 4)},
            ["ant-weak/rsl_rl-kitless-n2048-1x2-aa"],
        ),
        ({"case_globs": ("ant-weak/rl_games-kitless-n1024-1x1",)}, []),
        ({"case_globs": ("ant-weak/*-n1024-1x1*",)}, ["ant-weak/rl_games-kitless-n1024-1x1-aa"]),
        ({"series": ("ant-weak",), "a_a": False}, []),
    ],
)
def test_a_part_of_a_campaign_has_a_twin_of_its_own_baseline(asked: dict[str, Any], twins: list[str]) -> None:
    """Only patterns of case ids name the twins too."""
    campaign = make_plan(
        Campaign(
            options=options_with(matrix="full", **asked),
            console=Console(file=io.StringIO()),
            machine=GPU_HOST,
            device="cuda",
            resources=Resources(nnodes=1, gpus_per_node=4, cpus_per_node=8),
        )
    )
    assert [item.case.case_id for item in campaign.planned if is_twin(item.case)] == twins
    assert len(campaign.planned) > len(twins)


def test_a_control_has_no_twin() -> None:
    control = replace(make_case(), workload="environment_step")
    assert with_twins([control]) == [control]


def test_a_twin_is_no_result(tmp_path: Path) -> None:
    case, twin = with_twins([make_case()])
    folder = Folder(root=tmp_path)
    assert folder.case_path(case) == tmp_path / "cases" / f"{case.case_id}.json"
    assert folder.case_path(twin) == tmp_path / "a_a" / f"{case.case_id}-aa.json"
    assert folder.run_dir(case, 0) != folder.run_dir(twin, 0)


def test_the_noise_budget_is_that_of_the_noisiest_pair() -> None:
    first, second = make_result(make_case(), 1.0, 1.1, 1.2), make_result(make_case("ant-weak", scaling="weak"), 2.0)
    pairs = twin_pairs([first, twin_of(first, 1.122), second, twin_of(second, 1.9)])
    assert [pair.difference for pair in pairs] == pytest.approx([0.02, -0.05])
    assert [(len(pair.times_s), len(pair.twin_times_s)) for pair in pairs] == [(3, 1), (1, 1)]
    assert pairs[1].noise == pytest.approx(1 / 0.95 - 1)  # the slower took so much longer than the other
    assert pairs[0].noise == pytest.approx(0.122)  # had 1.0 been the twin's round, beside 1.1, 1.122 and 1.2
    assert noise_budget(pairs) == pairs[0].noise


def test_noise_is_not_the_luck_of_one_draw() -> None:
    times_s, twin_s = (0.533, 0.364, 0.378), (0.410, 0.377, 0.335)
    pair = TwinPair(case_id="a", times_s=times_s, twin_times_s=twin_s)
    assert pair.difference == pytest.approx(0.377 / 0.378 - 1)  # although rounds differ by half
    assert pair.noise == pytest.approx(0.410 / 0.364 - 1)  # the three fastest, and the others
    assert replace(pair, times_s=twin_s, twin_times_s=times_s).noise == pytest.approx(pair.noise)


@pytest.mark.parametrize(("rounds", "one_of"), [(2, 4), (3, 4), (4, 7), (5, 7)])
def test_how_often_no_difference_lies_beyond_the_noise_is_what_pages_say(rounds: int, one_of: int) -> None:
    assert "in one of four cases with two or three rounds each, and in one of seven with four or five" in NOISE_RULE
    draw = random.Random(rounds)  # noqa: S311

    def times_s() -> tuple[float, ...]:
        return tuple(draw.lognormvariate(0, 0.03) for _ in range(rounds))

    def is_beyond() -> bool:
        pair = TwinPair(case_id="a", times_s=times_s(), twin_times_s=times_s())
        return not is_within(statistics.median(times_s()) / pair.median_s - 1, pair.noise)

    assert sum(is_beyond() for _ in range(1000)) / 1000 == pytest.approx(1 / one_of, abs=0.03)
