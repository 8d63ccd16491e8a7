"""What the notes of version 2026.12 say of the tenth single H200 is what results in git say."""

from reports.analysis.start_ups import cold_and_warm, compile_time_s, whole_of
from reports.display.html import count, seconds
from reports.topics.pipeline.ray_model import over_ray
from tests.fixtures.results.version_2026_12 import NOTES, in_seconds, set_of, slowed_of, span

STARTS, RAY = "h200-start-up-shadow", "h200-torchrl-camera-ray-3"


def test_cold_and_warm_starts_of_the_shadow_hand() -> None:
    (found,) = cold_and_warm(set_of(STARTS).campaign.results)
    assert (len(found.cold), len(found.warm), found.is_designed) == (3, 3, True)
    assert {*found.kernels_compiled} == {66}
    cold, warm = (in_seconds(whole_of(starts)) for starts in (found.cold, found.warm))
    assert f"with a camera, rsl_rl and 512 environments takes {cold} and {warm}, on the tenth." in NOTES
    whole, compiler = (seconds(time_s) for time_s in (whole_of(found.cold).value, compile_time_s(found.cold)))
    assert f"Of the {whole} s, Warp's compiler takes {compiler} s, for 66 kernels.[^tenth]" in NOTES


def test_a_camera_over_ray_three_times() -> None:
    (found,) = over_ray(set_of(RAY).campaign.results)
    assert found.fps is not None
    assert found.here_fps is not None
    assert found.over_here is not None
    assert found.collecting is not None
    over, here = (f"({span(rate, count)})" for rate in (found.fps, found.here_fps))
    times = span(found.over_here, "{:#.2g}".format)
    for text in (
        f"a collector with a camera makes {count(found.fps.value)} frames/s {over}, and",
        f"and {count(found.here_fps.value)} in the process that asks** {here}.",
        f"That is {found.over_here.value:.3f} times the frames ({times}), in three runs of each",
        f"The other process collects in {100 * found.collecting:.1f} % of the time.",
    ):
        assert text in NOTES
    assert {len(one.completed) for one in set_of(RAY).campaign.results} == {3}


def test_slowed_cores_of_the_tenth_single_h200() -> None:
    assert f"Cores were slowed after {slowed_of(STARTS, RAY)} marked iterations." in NOTES
