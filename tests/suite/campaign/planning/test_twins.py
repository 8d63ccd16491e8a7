"""Repeats of baselines in a campaign: which a command plans, and where their results go."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from suite.campaign.folder import Folder
from suite.campaign.planning.plan import make_plan
from suite.campaign.state import Campaign
from suite.matrix.resources import Resources
from suite.statistics.twins import is_twin, with_twins
from tests.fixtures.results.generated_results import GPU_HOST, make_case
from tests.fixtures.runs.asked_options import options_with


@pytest.mark.parametrize(
    ("asked", "twins"),
    [
        (
            {"series": ("ant-weak",), "rl_libraries": ("rsl_rl",), "gpus": (2, 4)},
            ["ant-weak/rsl_rl-kitless-n2048-1x2-aa"],
        ),
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


def test_a_twin_is_no_result(tmp_path: Path) -> None:
    case, twin = with_twins([make_case()])
    folder = Folder(root=tmp_path)
    assert folder.case_path(case) == tmp_path / "cases" / f"{case.case_id}.json"
    assert folder.case_path(twin) == tmp_path / "a_a" / f"{case.case_id}-aa.json"
    assert folder.run_dir(case, 0) != folder.run_dir(twin, 0)
