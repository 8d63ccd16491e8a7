"""Profiled rounds. The nsys of these tests is a fake, and says so: no machine of the tests has Nsight Systems."""

import json
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suite.__main__ import main
from suite.campaign.folder import Folder
from suite.campaign.runs.profiling import find_nsys, profile_cases
from suite.errors import UsageError
from suite.install.worker import Worker
from suite.records.store import load_results, read_record
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.reduce import completed_times_s
from suite.statistics.round_flags import flags
from tests.fixtures.results.generated_results import make_case as generated_case
from tests.fixtures.results.generated_results import make_record
from tests.fixtures.runs.asked_options import changed, options_with
from tests.fixtures.runs.simulated_campaign import NARROW, PAIR, campaign_of
from tests.fixtures.runs.simulated_host import SimulatedHost
from tests.fixtures.runs.worker_probes import probe

FAKE_NSYS = f"""#!{sys.executable}
import pathlib, subprocess, sys
print("this is a fake nsys: it runs the program and measures nothing", flush=True)
assert sys.argv[1] == "profile", sys.argv
options = [word for word in sys.argv[2:] if word.startswith("--")]
program = [word for word in sys.argv[2:]][sys.argv[2:].index(next(w for w in sys.argv[2:] if not w.startswith("--"))):]
code = subprocess.run(program).returncode
(output,) = (word.partition("=")[2] for word in options if word.startswith("--output="))
pathlib.Path(output + ".nsys-rep").write_text("fake report of " + " ".join(options))
sys.exit(code)
"""
MATRIX = """
description = "one case on two ranks"
rounds = 1
seed = 42

[[series]]
name = "only"
title = "Cartpole"
scaling = "weak"
task = "Isaac-Cartpole-Direct"
rl_libraries = ["rsl_rl"]
num_envs = 16
topologies = ["1x2"]
iterations = 3
"""


@pytest.fixture
def fake_nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "bin" / "nsys"
    path.parent.mkdir()
    path.write_text(FAKE_NSYS, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    return path


def test_without_nsys_nothing_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_nsys(options_with(matrix="smoke")) is None
    assert main(["bench", "--profile", "0", "--device", "cpu", "--out", str(tmp_path / "out")]) == 11
    assert not (tmp_path / "out").exists()
    said = capsys.readouterr().err
    for part in ("needs nsys", "not on PATH", "nsight-systems-cli", "leave --profile out"):
        assert part in said


def test_the_nsys_of_this_machine_is_not_in_a_container(fake_nsys: Path) -> None:
    assert find_nsys(options_with(matrix="smoke", profile=(0,))) == str(fake_nsys)
    with pytest.raises(UsageError, match="--launcher container cannot reach"):
        find_nsys(options_with(matrix="smoke", profile=(0,), launcher="container"))


def test_no_statistic_counts_a_profiled_round() -> None:
    case = generated_case()
    plain, slow = make_record(case, index=0), make_record(case, index=1, iteration_time_s=9.0)
    profiled = replace(slow, profiled_ranks=(0,))
    assert completed_times_s([plain, profiled]) == [0.5]
    assert CaseResult(case=case, rounds=(plain, profiled)).completed == (plain,)
    assert flags([plain, profiled]) == flags([plain])
    assert completed_times_s([plain, slow]) == [0.5, 9.0]  # the control


def profiled(root: Path, host: SimulatedHost, ranks: tuple[int, ...], *, retry_failed: bool = False) -> list[RunRecord]:
    campaign = campaign_of(host, [PAIR, NARROW[0]])
    options = changed(campaign.options, profile=ranks, retry_failed=retry_failed)
    return profile_cases(replace(campaign, options=options), Folder(root=root), "nsys")


def test_other_ranks_are_profiled_anew(tmp_path: Path) -> None:
    host = SimulatedHost()
    for ranks, runs in (((0,), 2), ((0,), 2), ((0, 1), 3), ((0, 1), 3), ((1,), 4)):
        records = profiled(tmp_path, host, ranks)
        assert records[0].profiled_ranks == ranks
        assert len(host.ran) == runs  # the case of one rank has its own once and for all
    kept = sorted(path.parent.name for path in (tmp_path / "profiles").rglob("record.json"))
    assert [name.rpartition(".")[2] for name in kept if ".earlier" in name] == ["earlier-1", "earlier-2"]


@pytest.mark.worker
def test_ranges_name_the_phases_and_nest(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe(worker, "timing")["ranges"] == []  # nothing is said unless the rank is profiled
    monkeypatch.setenv("LABSCALE_BELOW_NSYS", "1")
    one = ["+collection", "+environment_step", "-", "+environment_step", "-", "-", "+learning", "+all_reduce", "-", "-"]
    assert probe(worker, "timing")["ranges"] == ["+iteration 0", *one, "-", "+iteration 1", *one, "-"]


@pytest.mark.slow
@pytest.mark.worker
def test_a_real_round_with_one_rank_below_the_fake(worker: Worker, fake_nsys: Path, tmp_path: Path) -> None:
    assert worker.python.exists()
    assert fake_nsys.exists()
    matrix, out = tmp_path / "one.toml", tmp_path / "out"
    matrix.write_text(MATRIX, encoding="utf-8")
    argv = ["bench", "--matrix", str(matrix), "--device", "cpu", "--out", str(out), "--no-report", "--profile", "1"]
    assert main(argv) == 0
    (result,) = load_results(out)
    assert [(record.round, record.profiled_ranks) for record in result.rounds] == [(0, ())]
    run_dir = out / "profiles" / result.case.case_id
    record = read_record(run_dir / "record.json")
    assert (record.outcome, record.profiled_ranks, len(record.ranks)) == ("completed", (1,), 2)
    assert sorted(path.name for path in run_dir.glob("*.nsys-rep")) == ["profile-rank-1.nsys-rep"]
    assert "--trace=cuda,nvtx" in (run_dir / "profile-rank-1.nsys-rep").read_text()
    logs = {path.parent.name: path.read_text() for path in run_dir.glob("logs/**/stdout.log")}
    assert ("this is a fake nsys" in logs["1"], "this is a fake nsys" in logs["0"]) == (True, False)
    before = (run_dir / "record.json").stat().st_mtime_ns
    assert main(argv) == 0  # it is there: nothing runs
    assert (run_dir / "record.json").stat().st_mtime_ns == before
    assert json.loads((out / "campaign.json").read_text())["rounds"] == 1, "the profiled one is none of them"
