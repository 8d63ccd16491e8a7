"""What the notes of version 2026.12 say of the third pair of H200s is what results in git say."""

from reports.topics.shared_gpu.model import groups
from suite.schema.record import CaseResult
from tests.fixtures.results.version_2026_12 import NOTES, ends, frames_ratio, runs_of, set_of, times

JAX, SHARED = "h200-x2-jax", "h200-x2-shared"


def by_library() -> dict[str, CaseResult]:
    return {f"{result.case.rl_library} {result.case.topology}": result for result in set_of(JAX).campaign.results}


def test_trainings_that_share_one_of_them() -> None:
    found = {
        f"{group.numbers[0].result.case.series} {group.numbers[0].result.case.rl_library}": [
            times(each.over_one) for each in group.numbers if each.over_one
        ]
        for group in groups(set_of(SHARED).campaign.results)
    }
    (_, two, four), (_, ant_two, ant_four) = found["cartpole-shared rl_games"], found["ant-shared rl_games"]
    (_, other_two, other_four) = found["ant-shared rsl_rl"]
    frames = four.replace("times", "times the frames of one**")
    assert f"**With rl_games, four trainings of Cartpole on one H200 process {frames}, and two {two}." in NOTES
    assert f"Ant with 1,024 environments for each has {ant_four} with four and {ant_two} with two." in NOTES
    assert f"With rsl_rl it has {other_four} and {other_two}." in NOTES


def test_skrl_with_torch_and_with_jax() -> None:
    found = by_library()
    ratio = frames_ratio(found["skrl_jax 1x1"], found["skrl 1x1"])
    assert f"skrl processes {ratio.value:.2f} times the frames of skrl with torch** ({ends(ratio)})" in NOTES
    crashed = found["skrl_jax 1x2"].rounds
    assert [record.outcome for record in crashed] == ["crashed"] * 3
    assert all("ncclGetPeerDevicePointer" in str(record.reason) for record in crashed)
    assert "There no run with JAX trained: each of three ended with an error of XLA." in NOTES
    assert {len(found[name].completed) for name in ("skrl_jax 1x1", "skrl 1x1", "skrl 1x2")} == {3}


def test_versions_and_turns_on_the_third_pair_of_h200s() -> None:
    settings = runs_of(set_of(JAX))[0].ranks[0].settings
    versions = (f"{word} {settings[key]}" for word, key in (("skrl", "versions.skrl"), ("JAX", "versions.jax")))
    assert f"Newton {settings['versions.newton']}, {', '.join(versions)}" in NOTES
    beside = {len(record.turns.beside) if record.turns else None for record in runs_of(set_of(SHARED))}
    assert beside == {8}
