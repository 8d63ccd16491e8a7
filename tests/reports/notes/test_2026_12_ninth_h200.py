"""What the notes of version 2026.12 say of the ninth single H200 is what results in git say."""

from reports.topics.pipeline.ray_model import over_ray
from reports.topics.releases.model import Release, releases
from suite.statistics.intervals import Estimate
from suite.statistics.reduce import steady_part
from suite.statistics.start_up import Start
from tests.fixtures.results.version_2026_12 import NOTES, in_seconds, set_of, slowed_of, times

STARTS, RAY = "h200-releases-start-up", "h200-torchrl-camera-ray-2"
PACKAGES = [("newton==1.6.0",), ("warp-lang==1.18.0",), ("warp-lang==1.19.0",)]


def of_kind(kind: Start) -> list[Release]:
    found = [release for release in releases(set_of(STARTS).campaign) if release.start == kind]
    assert [release.packages for release in found] == PACKAGES
    return found


def longer(kind: Start) -> list[Estimate]:
    return [release.start_longer for release in of_kind(kind) if release.start_longer]


def test_starts_with_other_versions() -> None:
    newton, older, newer = map(times, longer("cold"))
    assert f"With an empty kernel cache they take {newton}, {older} and {newer} as long as with the pinned" in NOTES
    newton, older, newer = map(times, longer("warm"))
    assert f"With compiled kernels it is {newton}, {older} and {newer}. These" in NOTES
    cold, warm = (in_seconds(of_kind(kind)[0].starts_s[0]) for kind in ("cold", "warm"))
    assert f"The pinned versions take {cold} there, and {warm} with compiled kernels." in NOTES
    assert "A change to 0.75 to 1.4 times a cold start, or to 0.8 to 1.1 times a warm one, would not be seen." in NOTES
    unseen: tuple[tuple[Start, float, float], ...] = (("cold", 0.75, 1.4), ("warm", 0.8, 1.1))
    for kind, least, most in unseen:
        intervals = [found.interval for found in longer(kind) if found.interval]
        assert len(intervals) == len(PACKAGES)
        assert all(low < least and most < high for low, high in intervals)


def test_every_cold_start_compiles_as_many_kernels() -> None:
    cold = [one for one in set_of(STARTS).campaign.results if one.case.kernel_cache == "empty"]
    assert {len(one.completed) for one in cold} == {3}
    assert {record.ranks[0].kernels_compiled for one in cold for record in one.completed} == {55}
    assert "Each compiles 55 kernels." in NOTES


def test_a_camera_over_ray_once_more() -> None:
    (found,) = over_ray(set_of(RAY).campaign.results)
    assert found.fps is not None
    assert len(found.result.completed) == 1
    assert f"On the ninth, one run over Ray makes {found.fps.value:,.0f} frames/s; it had not settled." in NOTES
    assert steady_part(found.result.completed[0]).flag is not None


def test_slowed_cores_of_the_ninth_single_h200() -> None:
    assert f"Cores were slowed after {slowed_of(STARTS, RAY)} marked iterations." in NOTES
