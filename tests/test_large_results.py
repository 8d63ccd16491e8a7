"""A matrix of many GPUs is planned at once and reported soon: GENERATED rounds, timed by this process's own clock.

Bounds are of processor time, since tests run beside each other.
"""

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reports import build as report
from reports.curves import curve_label
from suite.campaign_plan import rule_of
from suite.cases import expand
from suite.catalog import load_catalog
from suite.matrix import load_matrix
from suite.options import Options
from suite.plan import plan
from suite.schema import Stack
from suite.store import load_results, write_case
from tests.generated_results import LABEL, write_results
from tests.large_results import ROUNDS, cases_of, large_result, write_matrix
from tests.machine_speed import slowness

MAX_PAGE_BYTES = 200_000  # of 1024 GPUs 158 kB, 19 kB as servers send it, two thirds of it charts, 2026-11-23
PLAN_S, REPORT_S = 1.0, 60.0  # of 1024 GPUs
SMALL_PLAN_S = 0.5
STACKS: tuple[Stack, ...] = ("kitless",)
ROOT = Path(__file__).resolve().parent.parent


def planned(matrix: Path) -> list[str]:
    catalog = load_catalog()
    found = load_matrix(matrix, catalog)
    rule = rule_of(Options(matrix=str(matrix)), found)
    cases = expand(found, catalog, device="cuda", assets="offline")
    plans = plan(
        cases,
        gpus_available=8,
        cpus_available=128,
        nnodes_available=128,
        device="cuda",
        available_stacks=STACKS,
        rounds=rule.rounds,
        catalog=catalog,
    )
    assert not [item.infeasible for item in plans if item.infeasible]
    return [item.case.case_id for item in plans]


def processor_s() -> float:
    """Of this process and of those that it waited for."""
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def test_1024_gpus_are_planned_within_a_second(tmp_path: Path) -> None:
    matrix = write_matrix(tmp_path, most_gpus=1024)
    before_s = time.process_time()
    names = planned(matrix)
    assert time.process_time() - before_s < SMALL_PLAN_S * slowness()
    assert sum(name.endswith("128x8-fixed_updates") for name in names) == 4


TIMED = """
import sys, time
from suite.__main__ import main
before_s = time.process_time()
code = main(sys.argv[1:])
print(time.process_time() - before_s, file=sys.stderr)
sys.exit(code)
"""


def test_the_command_prints_that_plan_within_a_second(tmp_path: Path) -> None:
    """From the matrix to the last line. Starting Python with its modules takes as long for a matrix of one case."""
    matrix = write_matrix(tmp_path, most_gpus=1024)
    command = [sys.executable, "-c", TIMED, "plan", "--matrix", str(matrix), "--device", "cuda"]
    spent_s = []
    for _ in range(3):  # one busy moment of the machine is no slow command
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert b"128x8 ranks" in done.stdout
        spent_s.append(float(done.stderr.splitlines()[-1]))
        if spent_s[-1] < PLAN_S * slowness():
            return
    pytest.fail(f"{spent_s} s of processor time, allowed is {PLAN_S}")


def report_of(tmp_path: Path, *, most_gpus: int, whole_store: bool) -> tuple[Path, float]:
    """The site and the seconds of its build. ``whole_store``: every case as ``bench`` stores it, not one."""
    cases = cases_of(write_matrix(tmp_path, most_gpus=most_gpus))
    folder = tmp_path / "results"
    stored = [case for case in cases if whole_store or (case.world_size == most_gpus and case.rl_library == "rsl_rl")]
    for case in cases:
        if case in stored:
            write_case(large_result(case), folder / "cases" / f"{case.case_id}.json")
        else:
            write_results([large_result(case)], folder)
    before_s = processor_s()
    site = report.build(folder, tmp_path / "site", version="generated").parent
    return site, processor_s() - before_s


def check_pages(site: Path, most_gpus: int) -> None:
    sizes = {path.name: path.stat().st_size for path in site.glob("*.html")}
    assert max(sizes.values()) < MAX_PAGE_BYTES, sizes
    page = (site / "series-ant-weak.html").read_text(encoding="utf-8")
    assert LABEL in page
    # Axis of the speed-up, whose last tick is the last count, and one curve for each library, over nodes too.
    speedup = re.search(r'id="ant-weak-speedup".*?</svg>', page, re.DOTALL)
    assert speedup is not None
    assert f">{most_gpus}</text>" in speedup[0]
    assert "nodes" not in speedup[0]


def test_the_report_of_64_gpus_is_quick_and_light(tmp_path: Path) -> None:
    site, spent_s = report_of(tmp_path, most_gpus=64, whole_store=False)
    assert spent_s < REPORT_S / 2 * slowness()
    check_pages(site, 64)
    beyond = (site / "beyond.html").read_text(encoding="utf-8")
    assert "predicted" in beyond
    assert "At most 64 GPUs were measured" in beyond


@pytest.mark.slow
def test_the_report_of_1024_gpus_takes_less_than_a_minute(tmp_path: Path) -> None:
    site, spent_s = report_of(tmp_path, most_gpus=1024, whole_store=True)
    assert spent_s < REPORT_S * slowness()
    check_pages(site, 1024)
    assert "At most 1024 GPUs were measured" in (site / "beyond.html").read_text(encoding="utf-8")


def test_generated_rounds_are_what_the_store_takes_and_the_same_every_time(tmp_path: Path) -> None:
    case = next(case for case in cases_of(write_matrix(tmp_path, most_gpus=16)) if case.world_size == 16)
    result = large_result(case)
    assert result == large_result(case)
    write_case(result, tmp_path / "cases" / "one.json")
    (read,) = load_results(tmp_path)
    assert len(read.completed) == ROUNDS
    assert [len(record.ranks) for record in read.rounds] == [16] * ROUNDS


def test_a_curve_goes_on_over_nodes(tmp_path: Path) -> None:
    cases = [case for case in cases_of(write_matrix(tmp_path, most_gpus=64)) if case.series == "ant-weak"]
    assert {curve_label(case, cases) for case in cases} == {"rl_games, fixed_updates", "rsl_rl, fixed_updates"}
