"""Machines of the results in git, each judged among the others of 2026.11."""

from functools import cache
from pathlib import Path

import polars as pl
import pytest

from reports.accept.command import main
from reports.accept.judgement import Judgement, judge
from reports.accept.published import IS_COMPLETED, Measured, measured
from reports.accept.published import published as published_runs
from reports.sets.version import read_version
from suite.errors import UsageError
from tests.fixtures.results.committed_results import RESULTS, committed_version, newest_version

H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"


@cache
def published() -> Measured:
    return published_runs([committed_version()])


def judged(name: str, model: str = H200) -> Judgement:
    version = read_version(RESULTS / name, name="")
    return judge(measured(version, version.sets), published(), model)


def test_no_case_of_the_slowest_host_of_2026_11_is_accepted() -> None:
    judgement = judged("h200-physx")  # host M
    assert judgement.answer == "slow"
    assert {case.word for case in judgement.cases} == {"slow", "open"}
    shared = {case.name: len(case.time.others) for case in judgement.cases}
    assert shared["ant-physics/rl_games-kitless-n1024-1x1"] >= 6
    core, *_ = judgement.parts
    assert (core.part.points_to, core.is_mostly_above) == ("CPU core", True)


@pytest.mark.parametrize("name", ["h200-ant-sweep", "h200-open-rsl"])
def test_hosts_in_the_middle_are_accepted(name: str) -> None:
    judgement = judged(name)
    assert judgement.answer == "accepted"
    assert judgement.with_word("within", "fast")


def test_a_host_whose_runs_may_hide_a_slow_one_is_not_accepted() -> None:
    judgement = judged("h200-x4-rsl")
    (case,) = (case for case in judgement.cases if case.time.middle)
    assert (judgement.answer, case.word, case.time.word) == ("cannot say", "open", "within")
    assert "up to 21% slower" in case.reason


def test_a_host_is_no_other_machine_whatever_set_it_is_in() -> None:
    judgement = judged("h200-ant-envs")  # host M, one run of each case
    assert not any("host M" in name for name in judgement.machines)
    assert judgement.answer == "cannot say"
    assert {case.time.word for case in judgement.cases} == {"open"}


def test_several_trainings_are_compared_with_those_that_shared_a_gpu_alike() -> None:
    machines = published_runs([newest_version()])
    shared = machines.runs.filter(pl.col("set").is_in(["h200-shared-ant", "h200-shared-ant-mps"]))
    assert set(shared["mps"]) == {True, False}
    for row in shared.filter(IS_COMPLETED).iter_rows(named=True):
        alike = machines.comparable(row).filter(pl.col("machine") == row["machine"])
        assert set(alike["mps"]) == ({True, False} if row["trainings_per_gpu"] == 1 else {row["mps"]})


def test_archived_sets_and_cpus_are_no_machines() -> None:
    assert [result_set.name for result_set in committed_version().archived] == ["h200-x4"]
    names = set(published().runs["host"])
    assert not [name for name in names if "side by side" in name or "two CPU cores" in name]
    assert set(published().runs["gpu_model"]) == {H100, H200}
    assert "H200 host J, 22 Nov 2026" in names


def test_two_h100s_are_compared_with_h200s_only_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, version = RESULTS / "h100-x2-first", tmp_path / "2026.11"
    version.mkdir()
    for name in (own.name, "h200-x4-full", "h200-x2-nodes", "h200-ant-envs", "h200-physx"):
        (version / name).symlink_to(RESULTS / name)
    for options, code, words in (
        ([], 2, "no other published machine ran it"),
        (["--baseline", "h200"], 0, "none of 2 comparable cases is slower"),
        (["--baseline", "nvidia"], UsageError.exit_code, f"Allowed are {H100}, {H200}, or"),
    ):
        assert main([str(own), "--published", str(tmp_path), *options]) == code
        output = capsys.readouterr()
        assert words in output.out + output.err
    assert main([str(RESULTS / "cpu-upstream"), "--published", str(tmp_path)]) == UsageError.exit_code
