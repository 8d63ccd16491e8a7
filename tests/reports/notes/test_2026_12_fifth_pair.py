"""What the notes of version 2026.12 say of the fifth pair of H200s is what results in git say."""

from reports.topics.releases.model import releases
from suite.schema.record import CaseResult
from tests.fixtures.results.version_2026_12 import NOTES, ends, row, runs_of, set_of, times, version

JAX, RELEASES = "h200-x2-jax-2", "h200-x2-releases"


def by_library() -> dict[str, CaseResult]:
    return {result.case.rl_library: result for result in set_of(JAX).campaign.results}


def test_releases_of_newton_and_warp() -> None:
    found = releases(set_of(RELEASES).campaign)
    assert {release.speed for release in found} == {"within the noise"}
    newton, *warps = (release.frames for release in found)
    assert newton is not None
    assert f"Newton 1.6.0 makes {newton.value:.2f} times the frames of 1.6.1 ({ends(newton)})" in NOTES
    older, newer = (times(each) for each in warps if each)
    assert f"and Warp 1.18.0 and 1.19.0 make {older} and {newer} those of 1.17.0" in NOTES
    assert [(release.packages, release.pinned_versions) for release in found] == [
        (("newton==1.6.0",), ("newton==1.6.1",)),
        (("warp-lang==1.18.0",), ("warp-lang==1.17.0",)),
        (("warp-lang==1.19.0",), ("warp-lang==1.17.0",)),
    ]
    assert "A loss below a fifth or a gain below a quarter would not be seen." in NOTES
    reached = [each.frames.interval for each in found if each.frames and each.frames.interval]
    assert 0.8 <= min(low for low, _ in reached) < 0.85
    assert 1.25 <= max(high for _, high in reached) < 1.3


def test_jax_on_two_gpus() -> None:
    found = by_library()
    records = found["skrl_jax"].rounds
    assert sorted(record.outcome for record in records) == ["completed", "invalid", "invalid"]
    assert all("different parameters" in str(record.reason) for record in records if record.outcome == "invalid")
    jax, torch = (row(version().folder, JAX, found[name].case.case_id) for name in ("skrl_jax", "skrl"))
    low, high = torch["interval_s"]
    took = f"{jax['seconds_per_iteration']:.3g} s, and with torch {torch['seconds_per_iteration']:.3f} s"
    assert f"an iteration takes {took} ({low:.3f} to {high:.3f})" in NOTES


def test_versions_on_the_fifth_pair_of_h200s() -> None:
    settings = runs_of(set_of(JAX))[0].ranks[0].settings
    assert f"skrl {settings['versions.skrl']}, JAX {settings['versions.jax']}" in NOTES
