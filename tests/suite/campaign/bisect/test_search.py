"""The search among releases as a campaign: uv installs tiny wheels for real; a test makes up the runs."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from rich.console import Console

from suite.__main__ import main
from suite.campaign.bisect import find_change, of_bisect, require_one_case
from suite.campaign.planning.plan import make_plan
from suite.campaign.runs import rounds
from suite.campaign.runs.rounds import Run
from suite.campaign.state import Campaign
from suite.errors import CampaignError, RunsFailed, StoreError, UsageError
from suite.install import other_versions
from suite.install.other_versions import install_versions
from suite.install.worker import Worker
from suite.launch.native.run import run
from suite.launch.runtime import Runtime
from suite.matrix.own_worker import OwnWorker
from suite.matrix.resources import Resources
from suite.options.options import Releases
from suite.records.store import load_results, write_record
from suite.schema.record import Environment, RunRecord
from tests.fixtures.results.generated_results import make_record
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.simulated_campaign import said
from tests.fixtures.stand_ins.synthetic_wheels import make_environment, write_wheel

MATRIX = """
description = "tiny"
rounds = 1
seed = 42

[[series]]
name = "tiny"
title = "tiny"
scaling = "weak"
task = "Isaac-Cartpole-Direct"
rl_libraries = ["rsl_rl"]
num_envs = 16
topologies = ["1x1"]
iterations = 8
"""
CASE = "tiny/rsl_rl-kitless-cpu-n16-1x1"
CRASHING = "1.3.0"
TIMES_S = {"1.0.0": 0.50, "1.1.0": 0.50, "1.4.0": 0.60, "1.5.0": 0.60}


def unasked() -> NoReturn:
    raise AssertionError("the search itself does not run env_check")


@pytest.fixture
def small_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """A worker with newton 1.0.0, and an index with newer ones, of which 1.2.0 asks for another solver."""
    wheels = tmp_path / "wheels"
    isaaclab = write_wheel(wheels, "isaaclab", "3.0.0", requires=["newton==1.0.0"])
    for version in ("1.1.0", "1.2.0", CRASHING, "1.4.0", "1.5.0", "2.0.0"):
        write_wheel(wheels, "newton", version, requires=["solver==2.0" if version == "1.2.0" else "solver"])
    pinned = [write_wheel(wheels, "newton", "1.0.0"), write_wheel(wheels, "solver", "1.0"), isaaclab]
    python = make_environment(tmp_path / "worker-1", pinned)
    (python.parent.parent / "complete.json").write_text("{}")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setattr(other_versions, "IMPORTED", ("isaaclab",))
    (tmp_path / "kernels").mkdir()
    return Worker(
        python=python, pins_sha256="a" * 64, asset_root=tmp_path, asset_sha256="b" * 64, cache_dir=tmp_path / "kernels"
    )


@pytest.fixture
def ran(small_worker: Worker, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Provide that worker with its copies, and make up every run; returns the runs that were started."""
    started: list[str] = []

    def provision(_: object, *, own_workers: list[OwnWorker], **others: object) -> Runtime:
        del others
        own = {
            each: replace(
                small_worker,
                python=install_versions(small_worker.python.parent.parent, each.packages, on_message=print),
            )
            for each in own_workers
        }
        return Runtime(worker=small_worker, own_workers=own, launch=run, check=unasked, python_path=None)

    def train(_: Campaign, asked: Run, line: object) -> RunRecord:
        del line
        started.append(f"{asked.case.case_id.removeprefix(CASE)} {asked.round}")
        (package,) = asked.case.with_packages
        time_s = TIMES_S.get(package.removeprefix("newton=="))
        if time_s is None:
            record = make_record(asked.case, index=asked.round, outcome="crashed", reason="made up")
        else:
            record = make_record(asked.case, index=asked.round, iteration_time_s=time_s * (1 + 0.002 * asked.round))
        asked.run_dir.mkdir(parents=True)
        write_record(record, asked.record_path)
        return record

    monkeypatch.setattr("suite.campaign.steps.registry.provision", provision)
    monkeypatch.setattr(rounds, "_train", train)
    return started


def planned(tmp_path: Path, environment: Environment, bisect: str, **options: object) -> Campaign:
    matrix = tmp_path / "tiny.toml"
    matrix.write_text(MATRIX, encoding="utf-8")
    asked = options_with(
        matrix=str(matrix), out=tmp_path / "out", bisect=Releases.read(bisect), turns=False, host_label="desk",
        **options,
    )  # fmt: skip
    console = Console(file=io.StringIO(), width=200)
    here = Resources(nnodes=1, gpus_per_node=0, cpus_per_node=2)
    begun = Campaign(options=of_bisect(asked), console=console, machine=environment, device="cpu", resources=here)
    return require_one_case(make_plan(begun))


def searched(tmp_path: Path, environment: Environment, worker: Worker, bisect: str, **options: object) -> Campaign:
    campaign = planned(tmp_path, environment, bisect, **options)
    runtime = Runtime(worker=worker, launch=run, check=unasked, python_path=None)
    return find_change(replace(campaign, runtime=runtime))


def stored(campaign: Campaign) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((campaign.out / "bisect.json").read_text())
    return found


def test_the_slower_release_is_found_past_those_that_cannot_be_run(
    tmp_path: Path, environment: Environment, small_worker: Worker, ran: list[str]
) -> None:
    campaign = searched(tmp_path, environment, small_worker, "newton", repeats=4)
    found = stored(campaign)
    assert found["releases"] == ["1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"]  # of the worker's major version
    measured = [[*step["times_s"]] for step in found["steps"]]
    assert measured == [["1.0.0", "1.5.0"], ["1.0.0", "1.4.0", "1.5.0"], ["1.0.0", "1.1.0", "1.4.0"]]
    assert found["answer"]["verdict"] == "found"
    change = found["answer"]["change"]
    assert (change["older"], change["newer"], change["speed"]) == ("1.1.0", "1.4.0", "slower")
    assert change["ratio"]["value"] == pytest.approx(0.5 / 0.6)
    assert change["ratio"]["interval"][0] < 0.5 / 0.6 < change["ratio"]["interval"][1]
    assert found["skipped"]["1.3.0"] == "crashed: its warm-up: made up"
    assert "newton 1.2.0 needs solver==2.0 and finds 1.0" in found["skipped"]["1.2.0"]
    ends = load_results(campaign.out / "steps" / "1.0.0..1.5.0")
    assert [(result.case.with_packages, len(result.rounds)) for result in ends] == [
        (("newton==1.0.0",), 4),
        (("newton==1.5.0",), 4),
    ]
    for part in (CASE, "1.1.0 and 1.4.0", "0.833", "needs solver==2.0", "1.3.0: crashed"):
        assert part in said(campaign)
    assert ran.count("-newton-1-3-0-warm-up 0") == 1  # it shows the fault before anything is measured
    assert not [one for one in ran if one.startswith("-newton-1-3-0 ")]


def test_the_same_command_again_runs_nothing_and_more_runs_are_added(
    tmp_path: Path, environment: Environment, small_worker: Worker, ran: list[str]
) -> None:
    first = stored(searched(tmp_path, environment, small_worker, "newton==1.1.0,1.4.0", repeats=3))
    ran[:] = [one for one in ran if "warm-up" not in one]
    assert len(ran) == 2 * 3
    ran.clear()
    assert stored(searched(tmp_path, environment, small_worker, "newton==1.1.0,1.4.0", repeats=3)) == first
    measured = [one for one in ran if "warm-up" not in one]  # made-up warm-ups leave no kernels, so they are made again
    assert measured == []
    searched(tmp_path, environment, small_worker, "newton==1.1.0,1.4.0", repeats=4)
    assert sorted(one for one in ran if "warm-up" not in one) == ["-newton-1-1-0 3", "-newton-1-4-0 3"]
    with pytest.raises(CampaignError, match="bisect: there 'newton', now 'solver'"):
        searched(tmp_path, environment, small_worker, "solver==1.0,2.0")


def test_fewer_than_two_that_run_are_an_error_with_each_fault(
    tmp_path: Path, environment: Environment, small_worker: Worker, ran: list[str]
) -> None:
    with pytest.raises(RunsFailed, match=r"(?s)Fewer than two .* 1\.2\.0: newton==1\.2\.0 cannot .*1\.3\.0: crashed"):
        searched(tmp_path, environment, small_worker, "newton==1.1.0..1.3.0")
    assert ran == ["-newton-1-1-0-warm-up 0", "-newton-1-3-0-warm-up 0"]


def test_what_could_not_be_run_is_tried_again_only_when_asked(
    tmp_path: Path, environment: Environment, small_worker: Worker, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def skipped(**options: object) -> list[str]:
        found = stored(searched(tmp_path, environment, small_worker, "newton==1.1.0..1.4.0", repeats=3, **options))
        return [*found["skipped"]]

    assert skipped() == ["1.2.0", CRASHING]
    monkeypatch.setitem(TIMES_S, CRASHING, 0.5)  # as if the disk had been full
    ran.clear()
    assert skipped() == ["1.2.0", CRASHING]
    assert not [one for one in ran if "1-3-0" in one]
    assert skipped(retry_failed=True) == []  # 1.3.0 runs now, and lies beside the pair, so 1.2.0 is not needed
    (tmp_path / "out" / "bisect.json").write_text("[]")
    with pytest.raises(StoreError, match=r"bisect\.json is not readable: .*Move it away"):
        skipped()


def test_a_package_that_the_worker_lacks_is_refused(
    tmp_path: Path, environment: Environment, small_worker: Worker
) -> None:
    with pytest.raises(UsageError, match=r"does not have this package\. .*Did you mean 'newton'\?"):
        searched(tmp_path, environment, small_worker, "newtons")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"upstream": True, "a_a": True}, "--a-a, --upstream"),
        ({"repeats": 2}, "--repeats is 2"),
        ({"with_packages": ("newton==1.6.0",)}, "--with names newton"),
        ({"launcher": "ssh"}, "--launcher ssh"),
    ],
)
def test_options_that_a_search_cannot_use_are_refused(options: dict[str, object], fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        of_bisect(options_with(bisect=Releases(package="newton"), **options))


def test_several_cases_and_those_that_cannot_run_are_refused(tmp_path: Path, environment: Environment) -> None:
    campaign = planned(tmp_path, environment, "newton")
    with pytest.raises(UsageError, match=rf"--case:\n  {CASE}\n"):
        require_one_case(replace(campaign, planned=campaign.planned * 2))
    (item,) = campaign.planned
    with pytest.raises(UsageError, match=f"{CASE} cannot run here: needs a GPU"):
        require_one_case(replace(campaign, planned=(replace(item, infeasible="needs a GPU"),)))


@pytest.mark.parametrize("text", ["", "newton==", "newton==1.6", "newton==1,1", "newton==2..1", "newton==1..", "a>=1"])
def test_anything_else_is_refused_with_what_is_allowed(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--bisect", text]) == 11
    assert "--bisect" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.worker
def test_a_real_search_on_the_cpu(worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert worker.python.exists()
    matrix, out = tmp_path / "tiny.toml", tmp_path / "out"
    matrix.write_text(MATRIX, encoding="utf-8")
    argv = ["bench", "--matrix", str(matrix), "--device", "cpu", "--bisect", "warp-lang==1.17.0..1.18.0"]
    assert main([*argv, "--repeats", "3", "--out", str(out)]) == 0
    found = json.loads((out / "bisect.json").read_text())
    (step,) = found["steps"]
    assert {release: len(times_s) for release, times_s in step["times_s"].items()} == {"1.17.0": 3, "1.18.0": 3}
    assert found["answer"]["verdict"] in ("not slower", "found")  # a busy machine may look slower
    assert found["skipped"] == {}
    assert "with warp-lang 1.18.0 than" in capsys.readouterr().out or found["answer"]["verdict"] == "found"
