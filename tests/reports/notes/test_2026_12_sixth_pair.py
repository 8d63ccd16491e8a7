"""What the notes of version 2026.12 say of the sixth pair of H200s is what results in git say."""

from reports.topics.releases.model import releases
from tests.fixtures.results.version_2026_12 import NOTES, row, set_of, times, version

JAX, RELEASES = "h200-x2-jax-3", "h200-x2-releases-ant"
FLAG = "--xla_gpu_deterministic_ops=true"


def test_releases_with_ant() -> None:
    found = releases(set_of(RELEASES).campaign)
    assert {release.speed for release in found} == {"within the noise"}
    assert [release.packages for release in found] == [
        ("newton==1.6.0",),
        ("warp-lang==1.18.0",),
        ("warp-lang==1.19.0",),
    ]
    newton, older, newer = (times(release.frames) for release in found if release.frames)
    assert f"on one H200 of the sixth pair, it is {newton}, {older} and {newer}." in NOTES
    assert "A loss below a sixth or a gain below a tenth would not be seen." in NOTES
    reached = [release.frames.interval for release in found if release.frames and release.frames.interval]
    assert 5 / 6 <= min(low for low, _ in reached) < 0.86
    assert 1.1 <= max(high for _, high in reached) < 1.12


def test_jax_on_two_gpus_with_the_same_kernels() -> None:
    found = {result.case.rl_library: result for result in set_of(JAX).campaign.results}
    records = found["skrl_jax"].rounds
    assert [record.outcome for record in records] == ["completed"] * 3
    assert all(FLAG in str(rank.settings["xla_flags"]) for record in records for rank in record.ranks)
    jax, torch = (row(version().folder, JAX, found[name].case.case_id) for name in ("skrl_jax", "skrl"))
    (low, high), (torch_low, torch_high) = jax["interval_s"], torch["interval_s"]
    took = f"{jax['seconds_per_iteration']:.3g} s ({low:.3g} to {high:.3g})"
    torch_took = f"{torch['seconds_per_iteration']:.3f} s ({torch_low:.3f} to {torch_high:.3f})"
    assert f"An iteration takes {took}, and with torch {torch_took}." in NOTES
    assert f"{100 * jax['measured']['share_all_reduce']:.0f} % of it is the all-reduce" in NOTES
