"""The bisection of releases: its rule on releases of known times, and as a campaign in which uv installs wheels."""

import io
import json
import math
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from rich.console import Console

from suite.__main__ import main
from suite.campaign.bisect import (
    Answer,
    Step,
    find_change,
    next_releases,
    of_bisect,
    require_one_case,
)
from suite.campaign.planning.plan import make_plan
from suite.campaign.runs import rounds
from suite.campaign.runs.rounds import Run
from suite.campaign.state import Campaign
from suite.errors import CampaignError, RunsFailed, StoreError, UsageError
from suite.install import worker_packages
from suite.install.worker import Worker
from suite.install.worker_packages import install_versions
from suite.launch.contract import Asked, Runtime
from suite.launch.native import run
from suite.matrix.resources import Resources
from suite.options.options import Releases
from suite.records.store import write_record
from suite.schema.record import Environment, RunRecord
from suite.statistics.intervals import Estimate
from suite.statistics.series_model import RunTime, SeriesModel
from tests.fixtures.results.generated_results import make_record
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.real_runs import cartpole, matrix_of
from tests.fixtures.runs.simulated_campaign import no_replay, said
from tests.fixtures.stand_ins.synthetic_wheels import make_environment, write_wheel

ROUNDS = 6
SPREAD = 0.03  # standard deviation of a process's logarithm
SEARCHES = 200
RELEASES = tuple(f"1.{minor}.0" for minor in range(9))

type Measure = Callable[[Mapping[str, float], Sequence[str]], Step]


def exact(times_s: Mapping[str, float], releases: Sequence[str]) -> Step:
    """A step whose ratios are those of the true times, known to 1 %."""

    def ratio(older: str, newer: str) -> Estimate:
        value = times_s[older] / times_s[newer]
        return Estimate(value=value, interval=(value - 0.01, value + 0.01))

    return Step.of({release: [times_s[release]] for release in releases}, ratio)


def drawn(seed: int) -> Measure:
    """Steps of processes whose times are drawn around the true ones."""
    noise = random.Random(seed)  # noqa: S311

    def measure(times_s: Mapping[str, float], releases: Sequence[str]) -> Step:
        drawn_s = {
            release: [times_s[release] * math.exp(noise.gauss(0, SPREAD)) for _ in range(ROUNDS)]
            for release in releases
        }
        runs = [
            RunTime(configuration=release, block=block, log_time=math.log(time_s), log_probe=None)
            for release, of_release in drawn_s.items()
            for block, time_s in enumerate(of_release)
        ]
        return Step.of(drawn_s, SeriesModel(runs).ratio)

    return measure


def searched(
    times_s: Mapping[str, float], broken: Collection[str] = (), measure: Measure = exact
) -> tuple[Answer, list[tuple[str, ...]]]:
    """The answer for releases with these true times, and what was measured."""
    steps: list[Step] = []
    skipped: set[str] = set()
    while not isinstance(releases := next_releases(list(times_s), steps, skipped), Answer):
        if failing := {*releases} & {*broken}:
            skipped |= failing
        else:
            steps.append(measure(times_s, releases))
    return releases, [tuple(step.times_s) for step in steps]


@pytest.mark.parametrize("at", range(1, len(RELEASES)))
def test_the_pair_is_found_wherever_it_is(at: int) -> None:
    found, measured = searched({one: 1.0 if place < at else 1.2 for place, one in enumerate(RELEASES)})
    assert found.verdict == "found"
    assert found.change is not None
    assert (found.change.older, found.change.newer) == (RELEASES[at - 1], RELEASES[at])
    assert len(measured) <= 1 + math.ceil(math.log2(len(RELEASES) - 1))
    assert measured[:2] == [("1.0.0", "1.8.0"), ("1.0.0", "1.4.0", "1.8.0")]


@pytest.mark.parametrize("newest_s", [1.0, 1.005, 0.8])
def test_without_a_slower_end_nothing_more_is_measured(newest_s: float) -> None:
    found, measured = searched({**dict.fromkeys(RELEASES, 1.3), "1.0.0": 1.0, "1.8.0": newest_s})
    assert (found.verdict, measured) == ("not slower", [("1.0.0", "1.8.0")])


def test_what_cannot_be_run_is_passed_over_and_named_where_it_matters() -> None:
    times_s = {one: 1.0 if place < 5 else 1.2 for place, one in enumerate(RELEASES)}
    found, measured = searched(times_s, broken={"1.0.0", "1.4.0", "1.5.0", "1.8.0"})
    assert measured == [("1.1.0", "1.7.0"), ("1.1.0", "1.3.0", "1.7.0"), ("1.3.0", "1.6.0", "1.7.0")]
    assert found.change is not None
    assert (found.verdict, found.change.older, found.change.newer) == ("found", "1.3.0", "1.6.0")
    assert found.skipped == ("1.4.0", "1.5.0")


def test_fewer_than_two_that_run_have_no_answer() -> None:
    found, measured = searched(dict.fromkeys(RELEASES, 1.0), broken=RELEASES[1:])
    assert (found.verdict, found.change, measured) == ("too few", None, [])


def test_of_two_slower_halves_the_larger_change_is_followed() -> None:
    times_s = {"1": 1.0, "2": 1.05, "3": 1.05, "4": 1.3, "5": 1.3}
    found, _ = searched(times_s)
    assert found.change is not None
    assert (found.change.older, found.change.newer) == ("3", "4")


def test_a_change_in_two_small_parts_ends_with_the_range_that_is_sure() -> None:
    found, measured = searched({"1": 1.0, "2": 1.008, "3": 1.016})
    assert measured == [("1", "3"), ("1", "2", "3")]
    assert found.change is not None
    assert (found.verdict, found.change.older, found.change.newer, found.middle) == ("unsure", "1", "3", "2")


def test_a_large_difference_is_found_and_rarely_at_another_pair() -> None:
    times_s = {one: 1.0 if place < 6 else 1.25 for place, one in enumerate(RELEASES)}
    answers = [searched(times_s, measure=drawn(seed))[0] for seed in range(SEARCHES)]
    named = [(one.change.older, one.change.newer) for one in answers if one.verdict == "found" and one.change]
    assert len(named) >= 0.95 * SEARCHES
    assert sum(pair != ("1.5.0", "1.6.0") for pair in named) <= 0.05 * SEARCHES


MATRIX = matrix_of(cartpole("rsl_rl", name="tiny", num_envs=16, iterations=8))
CASE = "tiny/rsl_rl-kitless-cpu-n16-1x1"
CRASHING = "1.3.0"
TIMES_S = {"1.0.0": 0.50, "1.1.0": 0.50, "1.4.0": 0.60, "1.5.0": 0.60}


def unasked() -> NoReturn:
    raise AssertionError("the search itself does not run env_check")


@dataclass(kw_only=True)
class Searches:
    """Searches in one folder, with a worker of tiny wheels whose copies uv installs, and runs that are made up."""

    root: Path
    worker: Worker
    started: list[str]  # runs, warm-ups too
    times_s: dict[str, float]  # per iteration; a release without one crashes

    def provision(self, asked: Asked) -> Runtime:
        stack = self.worker.python.parent.parent
        own = {
            worker: replace(self.worker, python=install_versions(stack, worker.packages, on_message=print))
            for worker in asked.own_workers
        }
        return Runtime(worker=self.worker, own_workers=own, launch=run, check=unasked, python_path=None)

    def train(self, _: Campaign, asked: Run, _line: object) -> RunRecord:
        self.started.append(f"{asked.case.case_id.removeprefix(CASE)} {asked.round}")
        (package,) = asked.case.with_packages
        time_s = self.times_s.get(package.removeprefix("newton=="))
        if time_s is None:
            record = make_record(asked.case, index=asked.round, outcome="crashed", reason="made up")
        else:
            record = make_record(asked.case, index=asked.round, iteration_time_s=time_s * (1 + 0.002 * asked.round))
        asked.run_dir.mkdir(parents=True)
        write_record(record, asked.record_path)
        return record

    def search(self, bisect: str, out: str = "out", **options: object) -> Campaign:
        campaign = planned(self.root, bisect, out=self.root / out, **options)
        asked = Asked(options=campaign.options, stack="kitless", device="cpu", say=print, out=campaign.out)
        return find_change(replace(campaign, runtime=self.provision(asked)))


@pytest.fixture(scope="module")
def searches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searches]:
    """A worker with newton 1.0.0, and an index with newer ones, of which 1.2.0 asks for another solver."""
    root = tmp_path_factory.mktemp("bisect")
    wheels = root / "wheels"
    isaaclab = write_wheel(wheels, "isaaclab", "3.0.0", requires=["newton==1.0.0"])
    for version in ("1.1.0", "1.2.0", CRASHING, "1.4.0", "1.5.0", "2.0.0"):
        write_wheel(wheels, "newton", version, requires=["solver==2.0" if version == "1.2.0" else "solver"])
    pinned = [write_wheel(wheels, "newton", "1.0.0"), write_wheel(wheels, "solver", "1.0"), isaaclab]
    python = make_environment(root / "worker-1", pinned)
    (python.parent.parent / "complete.json").write_text("{}")
    (root / "kernels").mkdir()
    worker = Worker(
        python=python, pins_sha256="a" * 64, asset_root=root, asset_sha256="b" * 64, cache_dir=root / "kernels"
    )
    made = Searches(root=root, worker=worker, started=[], times_s=dict(TIMES_S))
    with pytest.MonkeyPatch.context() as patch, no_replay():
        patch.setenv("UV_FIND_LINKS", str(wheels))
        patch.setenv("UV_OFFLINE", "1")
        patch.setenv("UV_CACHE_DIR", str(root / "uv-cache"))
        patch.setattr(worker_packages, "IMPORTED", ("isaaclab",))
        patch.setattr("suite.campaign.steps.registry.provision", made.provision)
        patch.setattr(rounds, "_train", made.train)
        yield made


def planned(root: Path, bisect: str, **options: object) -> Campaign:
    matrix = root / "tiny.toml"
    matrix.write_text(MATRIX, encoding="utf-8")
    asked = options_with(
        matrix=str(matrix), bisect=Releases.read(bisect), turns=False, host_label="desk", **options
    )  # fmt: skip
    machine = Environment(host_label="desk", cpu_model=None, num_cpus=2, memory_gb=25.0, os=None, kernel=None)
    here = Resources(nnodes=1, gpus_per_node=0, cpus_per_node=2)
    console = Console(file=io.StringIO(), width=200)
    begun = Campaign(options=of_bisect(asked), console=console, machine=machine, device="cpu", resources=here)
    return require_one_case(make_plan(begun))


def stored(campaign: Campaign) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = json.loads((campaign.out / "bisect.json").read_text())
    return answer


@pytest.fixture(scope="module")
def finished(searches: Searches) -> tuple[Campaign, Mapping[str, Any], list[str]]:
    """A search among all releases, its stored answer, and the runs that it started."""
    searches.started.clear()
    campaign = searches.search("newton", repeats=4)
    return campaign, stored(campaign), list(searches.started)


type Finished = tuple[Campaign, Mapping[str, Any], list[str]]


def test_the_slower_release_is_found(finished: Finished) -> None:
    campaign, answer, _ = finished
    assert answer["releases"] == ["1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0"]  # of the worker's major version
    measured = [[*step["times_s"]] for step in answer["steps"]]
    assert measured == [["1.0.0", "1.5.0"], ["1.0.0", "1.4.0", "1.5.0"], ["1.0.0", "1.1.0", "1.4.0"]]
    assert [[len(times_s) for times_s in step["times_s"].values()] for step in answer["steps"]] == [
        [4] * 2,
        *[[4] * 3] * 2,
    ]
    change = answer["answer"]["change"]
    assert (answer["answer"]["verdict"], change["older"], change["newer"], change["speed"]) == (
        "found", "1.1.0", "1.4.0", "slower",
    )  # fmt: skip
    assert change["ratio"]["value"] == pytest.approx(0.5 / 0.6)
    assert change["ratio"]["interval"][0] < 0.5 / 0.6 < change["ratio"]["interval"][1]
    for part in (CASE, "1.1.0 and 1.4.0", "0.833", "needs solver==2.0", "1.3.0: crashed"):
        assert part in said(campaign)


def test_releases_that_cannot_be_run_are_passed_over_with_their_fault(finished: Finished) -> None:
    _, answer, started = finished
    assert answer["skipped"]["1.3.0"] == "crashed: its warm-up: made up"
    assert "newton 1.2.0 needs solver==2.0 and finds 1.0" in answer["skipped"]["1.2.0"]
    assert [run for run in started if "-newton-1-3-0" in run] == [
        "-newton-1-3-0-warm-up 0"
    ]  # before anything is measured


def test_the_same_command_again_runs_nothing_and_more_runs_are_added(finished: Finished, searches: Searches) -> None:
    _, answer, _ = finished
    searches.started.clear()
    assert stored(searches.search("newton", repeats=4)) == answer
    # Made-up warm-ups leave no kernels, so they are made again.
    assert [run for run in searches.started if "warm-up" not in run] == []
    searches.search("newton==1.0.0,1.5.0", repeats=5)
    assert sorted(run for run in searches.started if "warm-up" not in run) == ["-newton-1-0-0 4", "-newton-1-5-0 4"]
    with pytest.raises(CampaignError, match="bisect: there 'newton', now 'solver'"):
        searches.search("solver==1.0,2.0")


def test_fewer_than_two_that_run_are_an_error_with_each_fault(searches: Searches) -> None:
    searches.started.clear()
    with pytest.raises(RunsFailed, match=r"(?s)Fewer than two .* 1\.2\.0: newton==1\.2\.0 cannot .*1\.3\.0: crashed"):
        searches.search("newton==1.1.0..1.3.0", "few")
    assert searches.started == ["-newton-1-1-0-warm-up 0", "-newton-1-3-0-warm-up 0"]


def test_what_could_not_be_run_is_tried_again_only_when_asked(
    searches: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def skipped(**options: object) -> list[str]:
        return [*stored(searches.search("newton==1.1.0..1.4.0", "again", repeats=3, **options))["skipped"]]

    assert skipped() == ["1.2.0", CRASHING]
    monkeypatch.setitem(searches.times_s, CRASHING, 0.5)  # as if the disk had been full
    searches.started.clear()
    assert skipped() == ["1.2.0", CRASHING]
    assert not [run for run in searches.started if "1-3-0" in run]
    assert skipped(retry_failed=True) == []  # 1.3.0 runs now, and lies beside the pair, so 1.2.0 is not needed
    (searches.root / "again" / "bisect.json").write_text("[]")
    with pytest.raises(StoreError, match=r"bisect\.json is not readable: .*Move it away"):
        skipped()


def test_a_package_that_the_worker_lacks_is_refused(searches: Searches) -> None:
    with pytest.raises(UsageError, match=r"does not have this package\. .*Did you mean 'newton'\?"):
        searches.search("newtons", "lacks")
    assert not (searches.root / "lacks").exists()


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


def test_several_cases_and_those_that_cannot_run_are_refused(tmp_path: Path) -> None:
    campaign = planned(tmp_path, "newton")
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
    answer = json.loads((out / "bisect.json").read_text())
    (step,) = answer["steps"]
    assert {release: len(times_s) for release, times_s in step["times_s"].items()} == {"1.17.0": 3, "1.18.0": 3}
    assert answer["answer"]["verdict"] in ("not slower", "found")  # a busy machine may look slower
    assert answer["skipped"] == {}
    assert "with warp-lang 1.18.0 than" in capsys.readouterr().out or answer["answer"]["verdict"] == "found"
