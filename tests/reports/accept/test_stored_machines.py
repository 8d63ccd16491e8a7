"""Machines of the results in git, each judged among the others of 2026.11."""

from functools import cache
from pathlib import Path

import polars as pl
import pytest

from reports.__main__ import main as session
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


def test_a_host_whose_runs_may_hide_a_slow_one_is_not_accepted() -> None:
    judgement = judged("h200-x4-rsl")
    (case,) = (case for case in judgement.cases if case.time.middle)
    assert (judgement.answer, case.word, case.time.word) == ("cannot say", "open", "within")
    assert "up to 21% slower" in case.reason


def test_several_trainings_are_compared_with_those_that_shared_a_gpu_alike() -> None:
    machines = published_runs([newest_version()])
    shared = machines.runs.filter(pl.col("set").is_in(["h200-shared-ant", "h200-shared-ant-mps"]))
    assert set(shared["mps"]) == {True, False}
    for row in shared.filter(IS_COMPLETED).iter_rows(named=True):
        alike = machines.comparable(row).filter(pl.col("machine") == row["machine"])
        assert set(alike["mps"]) == ({True, False} if row["trainings_per_gpu"] == 1 else {row["mps"]})


def test_two_h100s_are_compared_with_h200s_only_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, version = RESULTS / "h100-x2-first", tmp_path / "2026.11"
    version.mkdir()
    for name in (own.name, "h200-x4-full", "h200-x2-nodes", "h200-ant-envs", "h200-physx"):
        (version / name).symlink_to(RESULTS / name)
    for options, code, words in (
        ([], 2, "no other published machine ran it"),
        (["--baseline", "h200"], 0, "none of 2 comparable configurations is slower"),
        (["--baseline", "nvidia"], UsageError.exit_code, f"Allowed are {H100}, {H200}, or"),
    ):
        assert session("accept", [str(own), "--published", str(tmp_path), *options]) == code
        output = capsys.readouterr()
        assert words in output.out + output.err
    assert session("accept", [str(RESULTS / "cpu-upstream"), "--published", str(tmp_path)]) == UsageError.exit_code
