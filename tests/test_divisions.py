"""The open division beside the closed one, on results whose gain is known."""

from dataclasses import replace

import pytest

from reports.divisions import changes, gains, gains_table
from suite.schema import Case, CaseResult
from tests.generated_results import failed_result, make_case, make_record, make_result

CLOSED = make_case("cartpole-open", scaling="weak", rl_library="rl_games")


def tuned(variant: str, **changed: object) -> Case:
    changed = {"iterations": 12, "division": "open", **changed}
    case = make_case("cartpole-open", scaling="weak", rl_library="rl_games", variant=variant, **changed)  # type: ignore[arg-type]
    return replace(case, num_envs=case.num_envs_global)


def with_rewards(result: CaseResult, *rewards: float) -> CaseResult:
    """Each round has one reward in all its iterations."""
    rounds = []
    for record, reward in zip(result.rounds, rewards, strict=True):
        (rank,) = record.ranks
        samples = {**rank.samples, "reward_mean": (reward,) * rank.num_iterations}
        rounds.append(replace(record, ranks=(replace(rank, samples=samples),)))
    return replace(result, rounds=tuple(rounds))


def test_the_gain_is_in_frames_a_second_not_in_iterations() -> None:
    wide = make_result(tuned("wide", num_envs_global=1024), 1.0, 1.0, 1.0)  # 8 times the frames in twice the time
    (gain,) = gains([make_result(CLOSED, 0.5, 0.5, 0.5), wide])
    assert gain.gain is not None
    assert gain.gain.value == pytest.approx(4.0)
    assert gain.gain.interval == pytest.approx((4.0, 4.0))
    assert (gain.closed_fps, gain.fps) == pytest.approx((128 * 16 / 0.5, 1024 * 16 / 1.0))
    assert gain.closed_id == CLOSED.case_id


def test_rewards_are_compared_after_equal_frames() -> None:
    wide = tuned("wide", num_envs_global=512)  # 4 times the frames an iteration: its third ends where the closed ends
    rising = make_record(wide)
    (rank,) = rising.ranks
    samples = {**rank.samples, "reward_mean": tuple(float(index) for index in range(12))}
    wide_result = CaseResult(case=wide, rounds=(replace(rising, ranks=(replace(rank, samples=samples),)),))
    closed = with_rewards(make_result(CLOSED, 0.5), 7.0)
    (gain,) = gains([closed, wide_result])
    assert gain.frames == 12 * 128 * 16
    assert (gain.closed_rewards, gain.rewards) == ((7.0,), (1.0,))  # mean of iterations 0, 1, 2
    assert gain.learning == "unknown"  # one round each


def test_learning_less_is_said_when_every_round_does() -> None:
    closed = with_rewards(make_result(CLOSED, 0.5, 0.5, 0.5), 5.0, 5.2, 5.4)
    fast = make_result(tuned("fast"), 0.1, 0.1, 0.1)
    (gain,) = gains([closed, with_rewards(fast, 4.0, 4.9, 4.8)])
    assert gain.learning == "less"
    (gain,) = gains([closed, with_rewards(fast, 4.0, 5.1, 4.8)])
    assert gain.learning == "as well"


def test_only_a_closed_case_of_the_same_kind_is_held_against() -> None:
    other_library = make_result(replace(CLOSED, rl_library="rsl_rl"), 0.5)
    twin = make_result(replace(CLOSED, case_id=CLOSED.case_id + "-aa"), 0.1)
    fast = make_result(tuned("fast"), 0.25)
    assert gains([other_library, fast]) == ()
    assert gains([twin, fast]) == ()
    (gain,) = gains([make_result(CLOSED, 0.5), twin, fast])
    assert gain.gain is not None
    assert gain.gain.value == pytest.approx(2.0)
    assert gain.gain.interval is None
    (failed,) = gains([make_result(CLOSED, 0.5), failed_result(tuned("fast"), outcome="oom", reason="x")])
    assert (failed.gain, failed.fps) == (None, None)


def test_the_changes_name_what_differs_and_nothing_else() -> None:
    case = tuned("x", num_envs_global=1024, minibatch_size=4096, cpu_threads=4, overrides=("agent.a=1", "agent.b=2"))
    assert changes(case, replace(CLOSED, overrides=("agent.a=1",))) == (
        "num_envs=1024", "minibatch_size=4096", "cpu_threads=4", "agent.b=2",
    )  # fmt: skip
    assert changes(CLOSED, CLOSED) == ()


def test_the_table_has_a_row_for_each_change_and_a_sentence_without() -> None:
    assert "no open division" in gains_table([make_result(CLOSED, 0.5)]).text
    fast, lost = tuned("fast"), tuned("lost")
    closed = make_result(CLOSED, 0.5, 0.5, 0.5)
    table = gains_table(
        [closed, make_result(fast, 0.25, 0.25, 0.25), failed_result(lost, outcome="oom", reason="x")]
    ).text.splitlines()
    assert [line.split("\t")[0] for line in table[1:]] == [fast.case_id, lost.case_id]
    assert table[1].split("\t")[5] == "2.00 (2.00 to 2.00)"
    assert table[2].split("\t")[4:6] == ["n/a", "n/a"]
