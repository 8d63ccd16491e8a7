"""A matrix of many GPUs is planned, and its report is light, from GENERATED rounds."""

import re
from pathlib import Path
from typing import get_args

import pytest

from reports.site import build as report
from suite.__main__ import main
from suite.matrix.cases import expand
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix
from suite.matrix.plan import plan
from suite.matrix.resources import Resources
from suite.schema.record import Stack
from tests.fixtures.results.generated_results import make_case, make_result, write_results

MAX_PAGE_BYTES = 200_000  # of 1024 GPUs 158 kB, 19 kB as servers send it, two thirds of it charts, 2026-11-23
MATRIX = """
description = "Generated"
rounds = 3
seed = 42
[[series]]
name = "ant-weak"
title = "Generated"
scaling = "weak"
task = "Isaac-Ant"
rl_libraries = ["rl_games", "rsl_rl"]
num_envs = 2048
topologies = ["1x1", "1x8", "2x8", "128x8"]
iterations = 40
minibatch_rule = "fixed_updates"
"""


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "large.toml"
    path.write_text(MATRIX, encoding="utf-8")
    return path


def test_1024_gpus_are_planned(matrix: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog = load_catalog()
    cases = expand(load_matrix(matrix, catalog), catalog, device="cuda", assets="offline")
    plans = plan(
        cases,
        resources=Resources(nnodes=128, gpus_per_node=8, cpus_per_node=128),
        available_stacks=get_args(Stack),
        rounds=3,
        catalog=catalog,
    )
    assert [item.infeasible for item in plans] == [None] * len(plans)
    assert max(item.case.world_size for item in plans) == 1024
    assert main(["plan", "--matrix", str(matrix), "--device", "cuda"]) == 0
    assert "128x8 ranks" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("most_gpus", [64, 1024])
def test_the_report_of_many_gpus_is_light(tmp_path: Path, most_gpus: int) -> None:
    cases = (
        make_case(
            "ant-weak", world_size=gpus, nnodes=max(1, gpus // 8), scaling="weak", num_envs_global=2048 * gpus,
            device="cuda", iterations=40,
        )
        for gpus in (2**power for power in range(most_gpus.bit_length()))
    )  # fmt: skip
    write_results([make_result(case, 0.5, 0.501, 0.502) for case in cases], tmp_path / "results")
    site = report.build(tmp_path / "results", tmp_path / "site", version="generated").parent
    assert max(path.stat().st_size for path in site.glob("*.html")) < MAX_PAGE_BYTES
    page = (site / "task-ant.html").read_text(encoding="utf-8")
    # The last tick of the axis is the last count, and the curve goes on over nodes.
    speedup = re.search(r'id="task-ant-share".*?</svg>', page, re.DOTALL)
    assert speedup is not None
    assert f">{most_gpus}</text>" in speedup[0]
    assert "nodes" not in speedup[0]
