"""Other versions of packages beside the pinned ones, of GENERATED results and of those in git."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reports.pages import home as results
from reports.sets.version import Version, read_version
from reports.site.contents import page_sources
from reports.topics.history.conditions import software
from reports.topics.releases import page
from reports.topics.releases.page import releases
from suite.schema.record import Case, CaseResult
from tests.fixtures.results import version_2026_12
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, write_results

PINNED = make_case("cartpole-releases", device="cuda", scaling="weak")
QUIET = (0.4, 0.401, 0.399)


def with_release(package: str, case: Case = PINNED) -> Case:
    suffix = package.replace("==", "-").replace(".", "-")
    return replace(case, case_id=f"{case.case_id}-{suffix}", division="open", with_packages=(package,))


def ran(case: Case, *times_s: float, newton: str = "1.6.1") -> CaseResult:
    result = make_result(case, *times_s)
    settings = {"versions.newton": newton, "versions.warp-lang": "1.17.0"}
    rounds = (
        replace(one, ranks=tuple(replace(rank, settings={**rank.settings, **settings}) for rank in one.ranks))
        for one in result.rounds
    )
    return replace(result, rounds=tuple(rounds))


def measured() -> list[CaseResult]:
    """One version takes twice as long, another as long as the pinned one."""
    return [
        ran(PINNED, *QUIET),
        ran(with_release("newton==1.6.0"), *(2 * time_s for time_s in QUIET), newton="1.6.0"),
        ran(with_release("warp-lang==1.18.0"), 0.405, 0.395, 0.4),
    ]


def starts() -> list[CaseResult]:
    """Cold starts with the pinned version and with another one."""
    warm = make_case("cartpole-releases-start-up", device="cuda", scaling="weak")
    cold = replace(warm, case_id=f"{warm.case_id}-cold", kernel_cache="empty")
    return [ran(cold, *QUIET), ran(with_release("newton==1.6.0", cold), *(2 * time_s for time_s in QUIET))]


def version_of(results: Sequence[CaseResult], folder: Path) -> Version:
    return read_version(write_results(results, folder), name="generated")


def test_the_page_opens_with_how_many_versions_differ(tmp_path: Path) -> None:
    version = version_of(measured(), tmp_path)
    said = page.answer(version).text
    assert "of 2 comparisons with the pinned one, 1 is slower and 1 is within noise" in said
    assert "0.50 to 1.00 times the frames" in said
    assert "1 shows a longer start" in said
    lines = [line for line in page.sets(version).text.splitlines() if "newton 1.6.0" in line]
    start, speed = sorted((line.split("\t") for line in {*lines} if "\t" in line), key=len)
    assert start[1:4] == ["newton 1.6.0", "newton 1.6.1", "warm"]
    assert speed[1:3] == start[1:3]
    assert speed[-3].startswith("0.50 (")
    assert speed[-2:] == ["3, 3", "slower"]


def test_the_chart_shows_every_size_of_a_series(tmp_path: Path) -> None:
    larger = replace(PINNED, case_id=f"{PINNED.case_id}-larger", num_envs=2 * PINNED.num_envs)
    found = [ran(case, *QUIET) for each in (PINNED, larger) for case in (each, with_release("newton==1.6.0", each))]
    shown = page.sets(version_of(found, tmp_path)).text
    assert [f"{case.case_id}, newton 1.6.0: 1.00" in shown for case in (PINNED, larger)] == [True, True]


def test_with_few_runs_nothing_is_said_to_differ(tmp_path: Path) -> None:
    few = [ran(PINNED, 0.4), ran(with_release("newton==1.6.0"), 0.8)]
    said = page.answer(version_of(few, tmp_path)).text
    assert said.startswith("No other version is surely faster or slower: of 1 comparison with the pinned one, 1 is of")
    assert said.endswith(" Other versions make 0.50 times the frames per second.")  # one start each has no interval


def test_a_release_that_does_not_run_is_listed_with_its_reason(tmp_path: Path) -> None:
    broken = failed_result(with_release("newton==1.7.0"), outcome="crashed", reason="KeyError: 'path_particle_map'")
    version = version_of([measured()[0], broken], tmp_path)
    assert page.answer(version).text.startswith("No case completed both with another version and with the pinned one")
    assert "run 0: crashed. KeyError: 'path_particle_map'" in page.sets(version).text


def test_a_case_that_differs_in_more_is_not_compared(tmp_path: Path) -> None:
    tuned = replace(with_release("newton==1.6.0"), minibatch_size=2 * PINNED.minibatch_size)
    version = version_of([measured()[0], ran(tuned, *QUIET)], tmp_path)
    assert releases(version.sets[0].campaign) == ()


def test_of_starts_the_times_of_iterations_are_not_compared(tmp_path: Path) -> None:
    version = version_of(starts(), tmp_path)
    (release,) = releases(version.sets[0].campaign)
    assert (release.start, release.frames) == ("cold", None)
    assert release.start_longer is not None
    (row,) = [line.split("\t") for line in page.sets(version).text.splitlines() if "-newton-1-6-0" in line]
    assert row[3] == "cold"
    assert "1 shows a longer start" in page.answer(version).text


def test_the_answer_counts_longer_and_shorter_starts(tmp_path: Path) -> None:
    pinned, _ = starts()
    times = {"newton==1.6.0": 2, "newton==1.5.0": 3, "warp-lang==1.18.0": 0.5, "warp-lang==1.19.0": 1}
    others = [
        ran(with_release(package, pinned.case), *(longer * time_s for time_s in QUIET))
        for package, longer in times.items()
    ]
    said = page.answer(version_of([pinned, *others], tmp_path)).text
    assert "2 show a longer start and 1 shows a shorter start" in said


def test_a_version_without_other_releases_has_no_page(tmp_path: Path) -> None:
    assert "releases" not in page_sources(version_of([ran(PINNED, *QUIET)], tmp_path / "pinned"))
    assert "releases" in page_sources(version_of(measured(), tmp_path / "both"))


def test_a_version_that_a_case_asked_for_is_no_changed_software(tmp_path: Path) -> None:
    older = version_of([ran(PINNED, *QUIET)], tmp_path / "before")
    now = replace(version_of(measured(), tmp_path / "now"), older=(older,))
    newton = {each.name: each for each in software(older, now)}["Newton"]
    assert (newton.before, newton.now) == ("1.6.1", "1.6.1")
    assert "Newton 1.6.1 · measured" in results.opening(now).text


def test_newton_and_warp_on_an_h200() -> None:
    said = page.answer(version_2026_12.version()).text
    assert said.startswith("No other version is surely faster or slower: of 6 comparisons with the pinned one, 6 are ")
    assert said.endswith(" Of 12 comparisons of starts, none shows a difference.")
