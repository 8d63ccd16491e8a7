"""A matrix of many GPUs is planned and reported, from GENERATED rounds."""

import re
from pathlib import Path

import pytest

from reports.site import build as report
from suite.__main__ import main
from suite.campaign.planning.plan import rule_of
from suite.matrix.cases import expand
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix
from suite.matrix.plan import plan
from suite.matrix.resources import Resources
from suite.records.store import load_results, write_cases
from suite.schema.record import Stack
from tests.fixtures.results.generated_results import LABEL
from tests.fixtures.results.large_results import ROUNDS, cases_of, large_result, write_large_results, write_matrix
from tests.fixtures.runs.asked_options import options_with

MAX_PAGE_BYTES = 200_000  # of 1024 GPUs 158 kB, 19 kB as servers send it, two thirds of it charts, 2026-11-23
STACKS: tuple[Stack, ...] = ("kitless",)


def planned(matrix: Path) -> list[str]:
    catalog = load_catalog()
    found = load_matrix(matrix, catalog)
    rule = rule_of(options_with(matrix=str(matrix)), found)
    cases = expand(found, catalog, device="cuda", assets="offline")
    plans = plan(
        cases,
        resources=Resources(nnodes=128, gpus_per_node=8, cpus_per_node=128),
        device="cuda",
        available_stacks=STACKS,
        rounds=rule.rounds,
        catalog=catalog,
    )
    assert not [item.infeasible for item in plans if item.infeasible]
    return [item.case.case_id for item in plans]


def test_1024_gpus_are_planned(tmp_path: Path) -> None:
    names = planned(write_matrix(tmp_path, most_gpus=1024))
    assert sum(name.endswith("128x8-fixed_updates") for name in names) == 4


def test_the_command_prints_that_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--matrix", str(write_matrix(tmp_path, most_gpus=1024)), "--device", "cuda"]) == 0
    assert "128x8 ranks" in capsys.readouterr().out


def check_pages(site: Path, most_gpus: int) -> None:
    sizes = {path.name: path.stat().st_size for path in site.glob("*.html")}
    assert max(sizes.values()) < MAX_PAGE_BYTES, sizes
    page = (site / "task-ant.html").read_text(encoding="utf-8")
    assert LABEL in page
    # Axis of the speed-up, whose last tick is the last count, and one curve for each library, over nodes too.
    speedup = re.search(r'id="ant-weak-speedup".*?</svg>', page, re.DOTALL)
    assert speedup is not None
    assert f">{most_gpus}</text>" in speedup[0]
    assert "nodes" not in speedup[0]


@pytest.mark.slow
@pytest.mark.parametrize(("most_gpus", "whole_store"), [(64, False), (1024, True)])
def test_the_report_of_many_gpus_is_light(tmp_path: Path, most_gpus: int, whole_store: bool) -> None:
    results = write_large_results(tmp_path, most_gpus=most_gpus, whole_store=whole_store)
    site = report.build(results, tmp_path / "site", version="generated").parent
    check_pages(site, most_gpus)


def test_generated_rounds_are_what_the_store_takes_and_the_same_every_time(tmp_path: Path) -> None:
    case = next(case for case in cases_of(write_matrix(tmp_path, most_gpus=16)) if case.world_size == 16)
    result = large_result(case)
    assert result == large_result(case)
    write_cases({tmp_path / "cases" / "one.json": result})
    (read,) = load_results(tmp_path)
    assert len(read.completed) == ROUNDS
    assert [len(record.ranks) for record in read.rounds] == [16] * ROUNDS
