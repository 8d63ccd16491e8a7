"""Releases: other versions of packages over the pinned ones, and one configuration in several versions."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.pages.releases import TRAINING, again, answer, chart, history, is_shown, releases, table
from reports.sets.version import Version, read_version
from suite.schema.record import Case, CaseResult
from tests.fixtures.results.committed_results import newest_version
from tests.fixtures.results.generated_machines import with_settings
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, on_gpus, write_results

PINNED = make_case("cartpole-releases", device="cuda", scaling="weak")
QUIET = (0.4, 0.401, 0.399)


def with_release(package: str, case: Case = PINNED) -> Case:
    suffix = package.replace("==", "-").replace(".", "-")
    return replace(case, case_id=f"{case.case_id}-{suffix}", division="open", with_packages=(package,))


def ran(case: Case, *times_s: float, newton: str = "1.6.1") -> CaseResult:
    """Results on GPUs, with these versions."""
    result = on_gpus([make_result(replace(case, device="cpu"), *times_s)])
    return with_settings(result, **{"versions.newton": newton})[0]


def version_of(folder: Path, *results: CaseResult, older: Sequence[Version] = ()) -> Version:
    return read_version(write_results(list(results), folder), name=folder.name, older=older)


def slower(factor: float) -> CaseResult:
    return ran(with_release("newton==1.6.0"), *(factor * time_s for time_s in QUIET), newton="1.6.0")


@pytest.mark.parametrize(("factor", "word"), [(2.0, "slower"), (0.5, "faster")])
def test_a_release_that_differs_clearly_is_named(tmp_path: Path, factor: float, word: str) -> None:
    version = version_of(tmp_path, ran(PINNED, *QUIET), slower(factor))
    assert f"1.6.0 is {word} than Newton 1.6.1: it makes {1 / factor:.2f} (" in answer(version).text


def test_without_a_clear_difference_the_loss_that_would_have_shown_is_said(tmp_path: Path) -> None:
    version = version_of(tmp_path / "quiet", ran(PINNED, *QUIET), slower(1.001))
    (release,) = (own for own in releases(version) if own.what == TRAINING)
    assert release.loss_seen is not None
    assert f"A loss of {100 * release.loss_seen['value']:.1f} %" in answer(version).text
    assert release.loss_seen["value"] == pytest.approx(1 - release.ratio["low"] / release.ratio["value"])
    few = version_of(tmp_path / "few", ran(PINNED, 0.4), ran(with_release("newton==1.6.0"), 0.8))
    assert "too few" in answer(few).text


def test_a_release_that_does_not_run_is_listed_with_its_reason(tmp_path: Path) -> None:
    broken = failed_result(with_release("newton==1.7.0"), outcome="crashed", reason="KeyError: 'path_particle_map'")
    version = version_of(tmp_path, ran(PINNED, *QUIET), broken)
    assert "run 0: crashed. KeyError: 'path_particle_map'" in table(version).text


def test_short_runs_are_of_starts_alone(tmp_path: Path) -> None:
    cold = replace(PINNED, case_id=f"{PINNED.case_id}-cold", kernel_cache="empty")
    version = version_of(
        tmp_path, ran(PINNED, *QUIET), slower(2.0), ran(cold, *QUIET), ran(with_release("newton==1.6.0", cold), *QUIET)
    )
    assert [release.what for release in releases(version)] == ["Warm start", "Cold start"]


def test_a_version_without_other_releases_has_no_page(tmp_path: Path) -> None:
    assert not is_shown(version_of(tmp_path / "pinned", ran(PINNED, *QUIET)))
    assert is_shown(version_of(tmp_path / "both", ran(PINNED, *QUIET), slower(1.0)))


def test_the_table_and_the_chart_have_each_ratio_in_git() -> None:
    version = newest_version()
    assert len(table(version).text.splitlines()) - 1 == len(releases(version)) == 18
    assert chart(version).text.count("; ") == 5
    assert len(again(version)) == 5
    assert "no change is seen" in history(version).text


# --- over versions ---


def ant(speedup: float, times_s: Sequence[float] = QUIET) -> list[CaseResult]:
    """Ant on one GPU and on two, which make ``speedup`` times the frames."""
    return [
        ran(
            make_case("ant-weak", world_size=gpus, scaling="weak", num_envs_global=64 * gpus),
            *(time_s * (2 / speedup if gpus == 2 else 1) for time_s in times_s),
        )
        for gpus in (1, 2)
    ]


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (ant(1.5), ant(1.9), "lie apart for Ant, rsl_rl, 64 per GPU, 2 x Generated Accelerator"),
        (ant(1.9), ant(1.9), "no change is seen"),
        (ant(1.9, (0.4, 0.7, 0.3)), ant(1.5), "no change is seen"),
        (ant(1.9, QUIET[:1]), ant(1.5), "no change is seen"),
    ],
)
def test_a_share_that_changed_is_named(
    before: list[CaseResult], now: list[CaseResult], words: str, tmp_path: Path
) -> None:
    older = version_of(tmp_path / "1", *before)
    shown = history(version_of(tmp_path / "2", *now, older=[older])).text
    assert words in shown
    assert "with the same versions of 3 packages" in shown


def test_several_versions_of_a_package_are_named_and_what_was_measured_once_is_not(tmp_path: Path) -> None:
    older = version_of(tmp_path / "1", *ant(1.8))
    now = [replace(result, rounds=ran(result.case, *QUIET, newton="1.7.0").rounds) for result in ant(1.8)]
    shown = history(version_of(tmp_path / "2", *now, older=[older])).text
    assert "several versions of Newton (1.6.1 and 1.7.0)" in shown
    assert again(version_of(tmp_path / "3", ran(PINNED, *QUIET), older=[older])) == ()
