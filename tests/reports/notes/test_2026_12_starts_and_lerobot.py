"""What the notes of version 2026.12 say of starts and of LeRobot is what results in git say."""

from reports.analysis.start_ups import cold_and_warm, compile_time_s, whole_of
from reports.display.html import count, seconds
from reports.topics.lerobot.model import acting, recordings
from tests.fixtures.results.version_2026_12 import NOTES, in_seconds, runs_of, set_of, span


def in_ms(time_s: float) -> str:
    return seconds(1e3 * time_s)


def test_cold_and_warm_starts_of_cartpole() -> None:
    (found,) = cold_and_warm(set_of("h200-start-up").campaign.results)
    cold, warm = whole_of(found.cold), whole_of(found.warm)
    assert (len(found.cold), len(found.warm), found.is_designed) == (3, 3, True)
    for text in (
        f"with an empty kernel cache takes {cold.value:.1f} s ({span(cold, seconds)})",
        f"and {warm.value:.2f} s ({span(warm, seconds)}) with compiled kernels",
        f"{found.kernels_compiled[0]} kernels are compiled",
        f"Warp's compiler takes {compile_time_s(found.cold):.1f} s",
    ):
        assert text in NOTES
    assert len(set(found.kernels_compiled)) == 1


def test_cold_and_warm_starts_of_ant() -> None:
    (found,) = cold_and_warm(set_of("h200-start-up-ant").campaign.results)
    cold, warm = whole_of(found.cold), whole_of(found.warm)
    assert (len(found.cold), len(found.warm), found.is_designed) == (3, 3, True)
    assert {*found.kernels_compiled} == {188}
    cold_s, warm_s = map(in_seconds, (cold, warm))
    assert f"Ant with rl_games and 1,024 environments takes {cold_s} and {warm_s}, on the eighth, for 188" in NOTES


def test_a_policy_of_lerobot_and_its_data_sets() -> None:
    results = set_of("h200-lerobot").campaign.results
    few, _, _, many = acting(results)
    assert (few.case.num_envs, many.case.num_envs) == (1, 512)
    assert few.fps is not None
    assert few.latency_s is not None
    assert many.fps is not None
    assert many.latency_s is not None
    one, written = recordings(results)
    assert (one.case.num_envs, written.case.num_envs) == (1, 16)
    assert written.written_fps is not None
    for text in (
        f"makes {count(many.fps.value)} frames/s in 512 environments",
        f"({span(many.fps, count)}), and {count(few.fps.value)} in one ({span(few.fps, count)}).",
        f"takes {in_ms(many.latency_s.value)} ms ({span(many.latency_s, in_ms)}) in 512 environments",
        f"and {in_ms(few.latency_s.value)} ms ({span(few.latency_s, in_ms)}) in one.",
        f"keeps {count(written.written_fps.value)} frames/s from 16 environments ({span(written.written_fps, count)})",
    ):
        assert text in NOTES
    assert {len(result.completed) for result in results} == {3}


def test_versions_on_the_eighth_single_h200() -> None:
    found = runs_of(set_of("h200-lerobot"))[0].ranks[0].settings
    spoken = f"Newton {found['versions.newton']}, LeRobot {found['versions.lerobot']}, numpy {found['versions.numpy']}"
    assert spoken in NOTES
