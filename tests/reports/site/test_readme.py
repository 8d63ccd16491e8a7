"""README.md says what results in git say, is short, and the pages it leads to are those of the book."""

import re
from dataclasses import replace

import polars as pl
import pytest

from reports.figures.tables import runs_of
from reports.pages import hardware
from reports.sets.findings import read_findings
from reports.sets.version import Version
from reports.site import guide, readme
from reports.site.readme import BEGIN, BEGIN_WHERE, END, findings
from suite.campaign.runs import upstream
from suite.errors import ReportError
from suite.files.paths import ROOT
from tests.fixtures.results.committed_results import committed_version, newest_version

README = (ROOT / "README.md").read_text(encoding="utf-8")
SAID = " ".join(README.split())


def versions() -> list[Version]:
    return [newest_version(), committed_version()]


def test_the_readme_shows_the_findings_in_git_and_what_ran_where() -> None:
    assert README.partition(BEGIN)[2].partition(END)[0].strip() == findings(versions())
    assert README.partition(BEGIN_WHERE)[2].partition(END)[0].strip() == hardware.readme(versions()[0])


def test_a_finding_shows_figures_with_intervals_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    own = tuple(finding for finding in read_findings(newest_version().folder) if finding.readme)
    wrong = own[0].model_copy(update={"readme": ("h100-envs/nothing",)})
    monkeypatch.setattr(readme, "read_findings", lambda _: (*own, wrong))
    with pytest.raises(ReportError, match=f"{wrong.id} shows h100-envs/nothing"):
        findings(versions()[:1])


def test_the_readme_is_short_and_links_every_page_of_the_guide() -> None:
    assert len(README.splitlines()) <= 120
    linked = {(ROOT / target).resolve() for target in re.findall(r"\]\(([^)#:]+)\)", README)}
    assert {path for path in linked if not path.exists()} == set()
    assert set(guide.PAGES.values()) <= linked


def test_no_finding_is_of_a_set_without_fingerprints() -> None:
    sets = set(re.findall(r"\(reports/results/([\w.]+/[\w-]+)\)", README))
    assert len(sets) == 8
    without = {
        f"{version.name}/{own.name}"
        for version in versions()
        for own in version.sets
        if not all(run.workload for run in own.campaign.completed)
    }
    assert not sets & without
    assert sum(name.startswith("2026.11/") for name in without) == 4
    assert "the four early campaigns without one" in SAID


def clock_differences() -> tuple[list[float], list[float]]:
    """Return by how much our iteration time and the library's differ: with a GPU alone, and with others."""
    alone: list[float] = []
    sharing: list[float] = []
    without = set()
    results = [result for version in versions() for own in version.sets for result in own.campaign.with_twins]
    for record in (record for result in results if result.case.workload == "train" for record in result.completed):
        for rank in record.ranks:
            others = tuple(other for other in record.ranks if other is not rank)
            ours_s, library_s = upstream.medians_of_rank_0(replace(record, ranks=(rank, *others)))
            if library_s is None:
                without.add(record.case.rl_library)
                continue
            (sharing if record.case.trainings_per_gpu > 1 or record.case.only_learning else alone).append(
                ours_s / library_s - 1
            )
    assert without == {"sb3", "skrl", "skrl_jax", "torchrl"}
    return alone, sharing


def test_what_the_readme_says_of_our_clock_holds_in_every_stored_run() -> None:
    alone, sharing = clock_differences()
    assert len(alone) > 1300
    assert len(sharing) > 600
    most = 100 * max(map(abs, sharing))
    assert (
        "by at most 0.9 % in every stored training of rl_games and rsl_rl with a GPU of its own, and by at most 0.5 %"
        f" in all but two. Where several trainings share a GPU, it is at most {most:.1f} %."
    ) in SAID
    larger = sorted(difference for difference in map(abs, alone) if difference > 0.005)
    assert larger == pytest.approx([0.0061, 0.0094], abs=0.0001)


def test_what_the_readme_says_of_hosts_holds() -> None:
    """The same training as shipped on one GPU; what others may have used too counts among the quickest only."""
    version = committed_version()
    sharing = {own.name: own.shared_machine for own in version.sets if not own.contributor}
    table = runs_of(version).every.filter(
        pl.col("iteration_s").is_not_null(), pl.col("workload") == "train", pl.col("gpus") == 1,
        pl.col("device") == "cuda", ~pl.col("is_tuned"), ~pl.col("is_repeat"),
    ).with_columns(pl.col("set").replace_strict(sharing, default="yes").alias("sharing"))  # fmt: skip
    keys = ["task", "library", "physics", "gpu_model", "environments", "steps", "minibatch_size", "optimiser_steps"]
    own = table.filter(pl.col("sharing") != "yes").group_by(*keys, "machine", "sharing")
    times = own.agg(pl.col("iteration_s").log().mean().exp())
    slowest = times.filter(pl.col("sharing") == "no").group_by(keys).agg(pl.col("iteration_s").max().alias("slowest"))
    ratios = times.group_by(keys).agg(pl.col("iteration_s").min()).join(slowest, on=keys)
    (most,) = ratios.select((pl.col("slowest") / pl.col("iteration_s")).max()).row(0)
    assert f"by a factor of up to {most:.1f} on one GPU" in SAID
