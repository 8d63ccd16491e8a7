"""Twins: which cases get one, where their results go, and the noise budget."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from suite.a_a import is_twin, noise_budget, twin_pairs, with_twins, write_noise
from suite.campaign_plan import make_plan
from suite.campaign_state import Campaign
from suite.folder import Folder
from suite.options import Options
from suite.resources import Resources
from suite.schema import CaseResult
from tests.generated_results import GPU_HOST, failed_result, make_case, make_result


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
            options=Options(matrix="full", **asked),
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


def test_the_noise_budget_is_the_largest_difference() -> None:
    first, second = make_result(make_case(), 1.0, 1.1, 1.2), make_result(make_case("ant-weak", scaling="weak"), 2.0)
    pairs = twin_pairs([first, twin_of(first, 1.122), second, twin_of(second, 1.9)])
    assert [pair.difference for pair in pairs] == pytest.approx([0.02, -0.05])
    assert [(pair.rounds, pair.twin_rounds) for pair in pairs] == [(3, 1), (1, 1)]
    assert noise_budget(pairs) == pytest.approx(1 / 0.95 - 1)  # the slower took so much longer than the other


def test_without_a_completed_pair_there_is_no_budget() -> None:
    result = make_result(make_case(), 1.0)
    _, twin = with_twins([result.case])
    assert twin_pairs([result]) == ()
    assert twin_pairs([result, failed_result(twin, outcome="crashed", reason="x")]) == ()
    assert noise_budget(()) is None


def test_the_file_says_budget_and_pairs(tmp_path: Path) -> None:
    result = make_result(make_case(), 1.0)
    write_noise(twin_pairs([result, twin_of(result, 1.1)]), tmp_path / "noise.json")
    stored = json.loads((tmp_path / "noise.json").read_text())
    assert stored["noise_budget"] == pytest.approx(0.1)
    assert stored["pairs"][0]["case_id"] == result.case.case_id
    assert stored["pairs"][0]["difference"] == pytest.approx(0.1)
