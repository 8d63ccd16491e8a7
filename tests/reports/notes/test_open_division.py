"""What the notes of version 2026.11 say of the open division is what results in git say."""

import pytest

from reports.analysis.curves import variant_of
from reports.analysis.divisions import Gain, gains
from reports.analysis.rows import case_rows
from reports.sets.version import ResultSet
from reports.topics.others.published import read_published
from suite.statistics.aa_noise import SUFFIX, is_within
from tests.fixtures.results.committed_results import NOTES, committed_set


def of_repeat_of(tuned: ResultSet, gain: Gain) -> float:
    """Frames per second of the repeat of what upstream ships."""
    (fps,) = (row.total_fps for row in case_rows(tuned.campaign.twins) if row.case_id == gain.closed.case_id + SUFFIX)
    assert fps is not None
    return fps


def test_what_the_notes_say_of_the_open_division_holds() -> None:
    tuned = committed_set("h200-open")
    found = {variant_of(gain.case): gain for gain in gains(tuned.campaign.results, tuned.campaign.twins)}
    assert {gain.rounds for gain in found.values()} == {2, 3}
    wide, graphs = found["wide"], found["wide-graphs"]
    for gain, place in ((wide, "with 32768 environments"), (graphs, "with CUDA graphs in the update too")):
        assert gain.fps is not None
        assert f"{gain.fps / 1e6:.2f} million " in NOTES.partition(place)[0]
        assert gain.sooner is not None
    assert (wide.case.num_envs, wide.case.optimiser_steps) == (8 * wide.closed.num_envs, wide.closed.optimiser_steps)
    assert wide.gain is not None
    assert graphs.gain is not None
    assert (wide.gain.interval, graphs.gain.interval) == (None, None)
    of_repeat = [gain / of_repeat_of(tuned, wide) for gain in (wide.fps or 0, graphs.fps or 0)]
    assert (
        f"That is eight times the batch: {wide.gain.value:.1f} and {graphs.gain.value:.1f} times the frames of what "
        f"upstream ships on the same host, and {of_repeat[0]:.1f} and {of_repeat[1]:.1f} times those of its repeat"
    ) in NOTES
    assert (wide.case.minibatch_size, wide.rounds, wide.closed_rounds) == (8 * wide.closed.minibatch_size, 2, 2)
    assert "With two rounds a side there is no interval." in NOTES
    assert wide.sooner is not None
    assert graphs.sooner is not None
    assert f"same reward {wide.sooner.value:.2f} and {graphs.sooner.value:.2f} times sooner" in NOTES
    minibatch, physics = found["one-minibatch"], found["no-cuda-graph"]
    assert minibatch.gain is not None
    assert minibatch.gain.value == pytest.approx(2, abs=0.1)
    assert minibatch.sooner is None
    assert physics.gain is not None
    assert physics.gain.value == pytest.approx(0.5, abs=0.05)
    assert wide.noise is not None
    assert f"the noise of an A/A pair is {100 * wide.noise:.1f} %, so the {wide.sooner.value:.2f} is within" in NOTES
    assert is_within(wide.sooner.value - 1, wide.noise)
    assert not is_within(graphs.sooner.value - 1, wide.noise)
    others = set(found) - {"wide", "wide-graphs", "one-minibatch", "no-cuda-graph"}
    assert others == {"compile-reduce-overhead", "no-compile", "mixed-precision", "one-thread", "pinned"}
    assert {found[name].speed for name in others} == {"within the noise"}


def test_what_the_notes_say_of_the_open_division_on_four_gpus_holds() -> None:
    tuned = committed_set("h200-x4-open")
    found = {variant_of(gain.case): gain for gain in gains(tuned.campaign.results, tuned.campaign.twins)}
    assert {(gain.rounds, gain.closed_rounds, gain.case.world_size) for gain in found.values()} == {(1, 1, 4)}
    pair = found["wide"], found["wide-graphs"]
    fps, gained, sooner = (
        [gain.fps / 1e6 for gain in pair if gain.fps],
        [gain.gain.value for gain in pair if gain.gain],
        [gain.sooner.value for gain in pair if gain.sooner],
    )
    assert f"the two make {fps[0]:.2f} and {fps[1]:.2f} million" in NOTES
    assert f"{gained[0]:.1f} and {gained[1]:.1f} times what upstream ships there" in NOTES
    assert f"the same reward {sooner[0]:.2f} and {sooner[1]:.2f} times sooner" in NOTES
    theirs = next(table for table in read_published().table if table.tuned).rows[-1]
    assert theirs.total is not None
    (shipped,) = {gain.closed_fps for gain in pair}
    assert f"As upstream ships it, the same host makes {shipped:,.0f}." in NOTES
    assert (
        f"The {theirs.total.value / 1e6:.1f} million that Isaac Lab's own documentation gives for {theirs.gpus} L40 are"
        " as shipped too"
    ) in NOTES


def test_what_the_notes_say_of_ant_tuned_holds() -> None:
    tuned = committed_set("h200-ant-open")
    found = {variant_of(gain.case): gain for gain in gains(tuned.campaign.results, tuned.campaign.twins)}
    assert {(gain.rounds, gain.closed_rounds) for gain in found.values()} == {(3, 3)}
    precision, graphs, envs, wide = (
        found[name] for name in ("full-precision", "compile-reduce-overhead", "envs", "wide")
    )
    for gain, text in (
        (graphs, "CUDA graphs in the update make {} times as many frames as what upstream ships ({} to {})"),
        (precision, "full precision instead of mixed {} times ({} to {}); both are within the noise,"),
    ):
        assert gain.gain is not None
        assert gain.gain.interval is not None
        assert (gain.speed, gain.learning) == ("within the noise", "not surely less")
        assert text.format(*(f"{number:.2f}" for number in (gain.gain.value, *gain.gain.interval))) in NOTES
    assert "and neither surely learns less" in NOTES
    assert {gain.noise for gain in found.values()} == {wide.noise}
    assert wide.noise is not None
    assert f"where the noise of an A/A pair is {100 * wide.noise:.1f} %: CUDA graphs" in NOTES
    assert wide.gain is not None
    assert wide.sooner is not None
    assert envs.gain is not None
    assert envs.sooner is not None
    assert wide.case.minibatch_size == 8 * envs.case.minibatch_size == 8 * wide.closed.minibatch_size
    assert (
        f"Eight times the environments make {envs.gain.value:.1f} times as many frames, with minibatches eight times "
        f"as large {wide.gain.value:.1f} times; the same reward comes {envs.sooner.value:.2f} and "
        f"{wide.sooner.value:.2f} times as soon. From as many frames both learn less."
    ) in NOTES
    assert (envs.learning, wide.learning) == ("less", "less")
    repeat = of_repeat_of(tuned, wide)
    of_repeat = [(gain.fps or 0) / repeat for gain in (graphs, precision)]
    assert (
        f"CUDA graphs make {of_repeat[0]:.2f} times as many frames and full precision {of_repeat[1]:.2f} times. Both "
        "are within that noise"
    ) in NOTES
    assert all(is_within(ratio - 1, wide.noise) for ratio in of_repeat)


def test_what_the_notes_say_of_ant_tuned_with_rsl_rl_holds() -> None:
    tuned = committed_set("h200-ant-open-rsl")
    found = {variant_of(gain.case): gain for gain in gains(tuned.campaign.results, tuned.campaign.twins)}
    assert {gain.rounds for gain in found.values()} == {4, 5}
    envs, compiled = found["envs"], found["compile"]
    assert (envs.speed, compiled.speed, found["pinned"].speed) == ("faster", "slower", "within the noise")
    assert envs.case.num_envs == 8 * envs.closed.num_envs
    assert envs.noise is not None
    assert f"h200-ant-open-rsl/SHA256SUMS), A/A noise {100 * envs.noise:.1f} %): eight times" in NOTES
    assert envs.sooner is not None
    for gain, digits, text in (
        (
            envs,
            1,
            f"make {{}} times as many frames ({{}} to {{}}), with the same reward {envs.sooner.value:.2f} times sooner",
        ),
        (compiled, 2, "compiled, the network makes {} times as many ({} to {}), and pinned cores change nothing"),
    ):
        assert gain.gain is not None
        assert gain.gain.interval is not None
        assert text.format(*(f"{number:.{digits}f}" for number in (gain.gain.value, *gain.gain.interval))) in NOTES


def test_what_the_notes_say_of_cartpole_tuned_with_rsl_rl_holds() -> None:
    tuned = committed_set("h200-open-rsl")
    found = {
        (variant_of(gain.case), gain.case.num_envs // gain.closed.num_envs): gain
        for gain in gains(tuned.campaign.results, tuned.campaign.twins)
    }
    assert {(gain.rounds, gain.closed_rounds) for gain in found.values()} == {(3, 3)}
    four, eight, one_minibatch = found["envs", 4], found["envs", 8], found["one-minibatch", 1]
    assert {gain.speed for gain in (four, eight, one_minibatch)} == {"faster"}
    assert {found[name, 1].speed for name in ("compile", "one-thread", "pinned")} == {"within the noise"}
    assert (four.sooner, eight.sooner, one_minibatch.sooner) == (None, None, None)
    assert eight.fps is not None
    assert eight.noise is not None
    assert f"h200-open-rsl/SHA256SUMS), A/A noise {100 * eight.noise:.1f} %) makes {eight.fps / 1e6:.2f} mill" in NOTES
    for gain, text in (
        (eight, "with 32768 environments, {:.1f} times what upstream ships there ({:.1f} to {:.1f});"),
        (four, "make {:.1f} times as many frames ({:.1f} to {:.1f}). Neither"),
    ):
        assert gain.gain is not None
        assert gain.gain.interval is not None
        assert text.format(gain.gain.value, *gain.gain.interval) in NOTES
    (shipped,), (of_eight,), (of_four,) = (
        eight.rewards["iterations"].closed,
        *(gain.rewards["iterations"].tuned for gain in (eight, four)),
    )
    assert (
        f"Neither quite has upstream's reward of {shipped:.2f} within 60 iterations, where they have {of_eight:.2f} and"
        f" {of_four:.2f}."
    ) in NOTES
    assert one_minibatch.gain is not None
    (theirs,), (reward,) = one_minibatch.rewards["frames"].closed, one_minibatch.rewards["frames"].tuned
    assert (
        f"One minibatch an epoch makes {one_minibatch.gain.value:.2f} times as many, and has a reward of {reward:.1f} "
        f"where upstream's has {theirs:.1f} after as many frames."
    ) in NOTES
