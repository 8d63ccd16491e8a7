"""The bisection of releases: its rule on releases of known times, and as a campaign of a simulated host."""

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from suite.__main__ import main
from suite.campaign import bisect
from suite.campaign.bisect import Answer, Change, Step, find_change, next_releases, of_bisect, require_one_case
from suite.campaign.planning.plan import make_plan
from suite.campaign.state import Campaign
from suite.errors import CampaignError, RunsFailed, StoreError, UsageError, WorkerEnvironmentError
from suite.install.worker import Worker
from suite.launch.contract import Asked, Runtime
from suite.options.options import Releases
from suite.schema.record import Launch
from suite.statistics.intervals import Estimate
from tests.fixtures.results.generated_results import CPU_HOST
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.real_runs import cartpole, matrix_of
from tests.fixtures.runs.simulated_campaign import campaign_of, no_replay, printed
from tests.fixtures.runs.simulated_host import SimulatedHost

RELEASES = tuple(f"1.{minor}.0" for minor in range(9))


def exact(times_s: Mapping[str, float], releases: Sequence[str]) -> Step:
    """A step whose ratios are those of the true times, known to 1 %."""
    changes = []
    for older, newer in pairwise(releases):
        value = times_s[older] / times_s[newer]
        ratio = Estimate(value=value, interval=(value - 0.01, value + 0.01))
        changes.append(Change(older=older, newer=newer, ratio=ratio))
    return Step(times_s={release: [times_s[release]] for release in releases}, changes=tuple(changes))


def searched(times_s: Mapping[str, float], broken: Collection[str] = ()) -> tuple[Answer, list[tuple[str, ...]]]:
    """The answer for releases with these true times, and what was measured."""
    steps: list[Step] = []
    skipped: set[str] = set()
    while not isinstance(releases := next_releases(list(times_s), steps, skipped), Answer):
        if failing := {*releases} & {*broken}:
            skipped |= failing
        else:
            steps.append(exact(times_s, releases))
    return releases, [tuple(step.times_s) for step in steps]


def pair_of(answer: Answer) -> tuple[str, str, str]:
    """The verdict, and the two releases of its change."""
    assert answer.change is not None
    return answer.verdict, answer.change.older, answer.change.newer


@pytest.mark.parametrize("at", range(1, len(RELEASES)))
def test_the_pair_is_found_wherever_it_is(at: int) -> None:
    answer, measured = searched({name: 1.0 if place < at else 1.2 for place, name in enumerate(RELEASES)})
    assert pair_of(answer) == ("found", RELEASES[at - 1], RELEASES[at])
    assert len(measured) <= 1 + math.ceil(math.log2(len(RELEASES) - 1))
    assert measured[:2] == [("1.0.0", "1.8.0"), ("1.0.0", "1.4.0", "1.8.0")]


@pytest.mark.parametrize("newest_s", [1.0, 1.005, 0.8])
def test_without_a_slower_end_nothing_more_is_measured(newest_s: float) -> None:
    answer, measured = searched({**dict.fromkeys(RELEASES, 1.3), "1.0.0": 1.0, "1.8.0": newest_s})
    assert (answer.verdict, measured) == ("not slower", [("1.0.0", "1.8.0")])


def test_what_cannot_be_run_is_passed_over_and_named_where_it_matters() -> None:
    times_s = {name: 1.0 if place < 5 else 1.2 for place, name in enumerate(RELEASES)}
    answer, measured = searched(times_s, broken={"1.0.0", "1.4.0", "1.5.0", "1.8.0"})
    assert measured == [("1.1.0", "1.7.0"), ("1.1.0", "1.3.0", "1.7.0"), ("1.3.0", "1.6.0", "1.7.0")]
    assert (pair_of(answer), answer.skipped) == (("found", "1.3.0", "1.6.0"), ("1.4.0", "1.5.0"))
    assert searched(times_s, broken=RELEASES[1:]) == (Answer(verdict="too few", change=None), [])


def test_the_larger_of_two_changes_is_followed_and_two_small_ones_leave_a_range() -> None:
    answer, _ = searched({"1": 1.0, "2": 1.05, "3": 1.05, "4": 1.3, "5": 1.3})
    assert pair_of(answer) == ("found", "3", "4")
    answer, measured = searched({"1": 1.0, "2": 1.008, "3": 1.016})
    assert measured == [("1", "3"), ("1", "2", "3")]
    assert (pair_of(answer), answer.middle) == (("unsure", "1", "3"), "2")


MATRIX = matrix_of(cartpole("rsl_rl", name="tiny", num_envs=16, iterations=8))
CASE = "tiny/rsl_rl-kitless-cpu-n16-1x1"
BROKEN, CRASHING = "1.2.0", "1.3.0"
TIMES_S = {"1.0.0": 0.50, "1.1.0": 0.50, "1.4.0": 0.60, "1.5.0": 0.60}  # per iteration
INDEX = ["1.0.0", "1.1.0", BROKEN, CRASHING, "1.4.0", "1.5.0", "2.0.0"]


@dataclass(kw_only=True)
class Searches:
    """Searches below a folder, on a host whose worker has newton 1.0.0, with an index of other releases."""

    root: Path
    host: SimulatedHost
    times_s: dict[str, float]  # a release without one crashes

    def provision(self, asked: Asked) -> Runtime:
        if f"newton=={BROKEN}" in (package for own in asked.own_workers for package in own.packages):
            raise WorkerEnvironmentError("newton 1.2.0 needs solver==2.0 and finds 1.0")
        worker = replace(self.host.runtime().worker, cache_dir=self.root / "kernels")
        return replace(self.host.runtime(), worker=worker)

    def release(self, launch: Launch) -> str:
        (package,) = launch.case.with_packages
        return package.removeprefix("newton==")

    def time_s(self, launch: Launch) -> float:
        return self.times_s[self.release(launch)] * (1 + 0.002 * launch.round)

    def search(self, bisect: str, out: str = "out", **options: object) -> Campaign:
        campaign = planned(self.root, bisect, out=self.root / out, **options)
        self.host.started.clear()
        return find_change(replace(campaign, runtime=self.host.runtime()))

    @property
    def started(self) -> list[str]:
        """Runs of the last search, warm-ups too."""
        return [f"{launch.case.case_id.removeprefix(CASE)} {launch.round}" for launch in self.host.started]

    @property
    def counted(self) -> list[str]:
        return [run for run in self.started if "warm-up" not in run]


@pytest.fixture(scope="module")
def searches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searches]:
    made = Searches(root=tmp_path_factory.mktemp("bisect"), host=SimulatedHost(wall_s=0.0), times_s=dict(TIMES_S))
    made.host.fails = lambda launch: made.release(launch) not in made.times_s
    made.host.iteration_time_s = made.time_s
    with pytest.MonkeyPatch.context() as patch, no_replay():
        patch.setattr(bisect, "installed_in", lambda _: ("3.12", {"newton": ("1.0.0", []), "solver": ("1.0", [])}))
        patch.setattr("suite.install.pins.releases", lambda _, within, __: [name for name in INDEX if name in within])
        patch.setattr("suite.campaign.steps.registry.runtime_of", made.provision)
        yield made


def planned(root: Path, package: str, **options: object) -> Campaign:
    matrix = root / "tiny.toml"
    matrix.write_text(MATRIX, encoding="utf-8")
    asked = options_with(
        matrix=str(matrix), bisect=Releases.read(package), turns=False, host_label=CPU_HOST.host_label, **options
    )
    campaign = campaign_of(SimulatedHost(), machine=CPU_HOST, device="cpu")
    return require_one_case(make_plan(replace(campaign, options=of_bisect(asked))))


def stored(campaign: Campaign) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = json.loads((campaign.out / "bisect.json").read_text())
    return answer


def test_the_slower_release_is_found_and_the_same_command_again_runs_nothing(searches: Searches) -> None:
    campaign = searches.search("newton", repeats=4)
    document = stored(campaign)
    assert document["releases"] == INDEX[:-1]  # of the worker's major version
    assert [{name: len(times_s) for name, times_s in step["times_s"].items()} for step in document["steps"]] == [
        {"1.0.0": 4, "1.5.0": 4}, {"1.0.0": 4, "1.4.0": 4, "1.5.0": 4}, {"1.0.0": 4, "1.1.0": 4, "1.4.0": 4},
    ]  # fmt: skip
    change = document["answer"]["change"]
    assert (document["answer"]["verdict"], change["older"], change["newer"], change["speed"]) == (
        "found", "1.1.0", "1.4.0", "slower",
    )  # fmt: skip
    assert change["ratio"]["value"] == pytest.approx(0.5 / 0.6)
    assert change["ratio"]["interval"][0] < 0.5 / 0.6 < change["ratio"]["interval"][1]
    assert document["skipped"].keys() == {BROKEN, CRASHING}
    assert document["skipped"][CRASHING].startswith("crashed: its warm-up: ")
    for part in (CASE, "1.1.0 and 1.4.0", "0.833", "needs solver==2.0", "1.3.0: crashed"):
        assert part in printed(campaign)
    assert [run for run in searches.started if "-newton-1-3-0" in run] == ["-newton-1-3-0-warm-up 0"]
    assert stored(searches.search("newton", repeats=4)) == document
    assert searches.counted == []  # warm-ups left no kernels, so they are made again
    searches.search("newton==1.0.0,1.5.0", repeats=5)
    assert sorted(searches.counted) == ["-newton-1-0-0 4", "-newton-1-5-0 4"]
    with pytest.raises(CampaignError, match="bisect: there 'newton', now 'solver'"):
        searches.search("solver==1.0,2.0")


def test_fewer_than_two_that_run_are_an_error_with_each_fault(searches: Searches) -> None:
    with pytest.raises(RunsFailed, match=r"(?s)Fewer than two .* 1\.2\.0: newton 1\.2\.0 needs .*1\.3\.0: crashed"):
        searches.search("newton==1.1.0..1.3.0", "few")
    assert searches.started == ["-newton-1-1-0-warm-up 0", "-newton-1-3-0-warm-up 0"]


def test_what_could_not_be_run_is_tried_again_only_when_asked(
    searches: Searches, monkeypatch: pytest.MonkeyPatch
) -> None:
    def skipped(**options: object) -> list[str]:
        return [*stored(searches.search("newton==1.1.0..1.4.0", "again", repeats=3, **options))["skipped"]]

    assert skipped() == [BROKEN, CRASHING]
    monkeypatch.setitem(searches.times_s, CRASHING, 0.5)  # as if the disk had been full
    assert skipped() == [BROKEN, CRASHING]
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
