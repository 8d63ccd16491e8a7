"""Tuned cases compared with the case as shipped, on results whose gain is known."""

from dataclasses import replace

import pytest

from reports.analysis.curves import curve_label
from reports.analysis.divisions import changes, gains
from suite.schema.record import Case, CaseResult
from tests.fixtures.results.generated_results import failed_result, make_case, make_result

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
    assert gain.closed.case_id == CLOSED.case_id


def rising(case: Case, *rates: float, iteration_time_s: float = 0.5) -> CaseResult:
    """One round for each rate, whose reward is the rate times the number of the iteration, from 0."""
    result = make_result(case, *([iteration_time_s] * len(rates)))
    rounds = []
    for record, rate in zip(result.rounds, rates, strict=True):
        (rank,) = record.ranks
        rewards = tuple(rate * index for index in range(rank.num_iterations))
        rounds.append(replace(record, ranks=(replace(rank, samples={**rank.samples, "reward_mean": rewards}),)))
    return replace(result, rounds=tuple(rounds))


def with_seeds(case: Case) -> Case:
    return replace(case, seed_per_round=True)


def with_column(case: Case, rewards: tuple[float | None, ...]) -> CaseResult:
    (record,) = make_result(case, 0.5).rounds
    (rank,) = record.ranks
    ranks = (replace(rank, samples={**rank.samples, "reward_mean": rewards}),)
    return CaseResult(case=case, rounds=(replace(record, ranks=ranks),))


def silent(case: Case) -> CaseResult:
    """No episode ended."""
    return with_column(case, (None,) * case.iterations)


def test_rewards_are_compared_after_equal_frames_iterations_and_time() -> None:
    """4 times the frames an iteration in twice the time: the closed case ends at a quarter, the end, and half of it."""
    wide = rising(tuned("wide", num_envs_global=512), 1.0, iteration_time_s=1.0)
    (gain,) = gains([with_rewards(make_result(CLOSED, 0.5), 7.0), wide])
    assert {equal: at.closed for equal, at in gain.rewards.items()} == dict.fromkeys(
        ("frames", "iterations", "time"), (7.0,)
    )
    assert gain.rewards["frames"].tuned == (1.0,)  # mean of iterations 0, 1, 2
    assert gain.rewards["iterations"].tuned == (9.0,)  # 7 to 11
    assert gain.rewards["time"].tuned == (3.0,)  # 1 to 5
    assert gain.learning == "unknown"  # one run each


def test_the_longer_of_two_is_cut_where_the_shorter_ends() -> None:
    short = rising(tuned("short", iterations=8), 1.0, iteration_time_s=0.25)
    (gain,) = gains([rising(CLOSED, 1.0), short])
    assert gain.rewards["frames"].closed == gain.rewards["frames"].tuned == (5.0,)  # 3 to 7 of both
    assert gain.rewards["time"].closed == (1.5,)  # 4 iterations of half a second
    assert gain.rewards["time"].tuned == (5.0,)


def test_learning_less_is_said_when_every_run_does() -> None:
    closed = with_rewards(make_result(CLOSED, 0.5, 0.5, 0.5), 5.0, 5.2, 5.4)
    fast = make_result(tuned("fast"), 0.1, 0.1, 0.1)
    (gain,) = gains([closed, with_rewards(fast, 4.0, 4.9, 4.8)])
    assert gain.learning == "less"
    (gain,) = gains([closed, with_rewards(fast, 4.0, 5.1, 4.8)])
    assert gain.learning == "not surely less"


def test_rounds_that_learn_the_same_are_one_run() -> None:
    """Three rounds of one seed tell no more about learning than one, unless they are equal on both sides."""
    closed = with_rewards(make_result(CLOSED, 0.5, 0.5, 0.5), 5.0, 5.0, 5.0)
    fast = make_result(tuned("fast"), 0.1, 0.1, 0.1)
    (gain,) = gains([closed, with_rewards(fast, 4.0, 4.0, 4.0)])
    assert (gain.learning, gain.rewards["frames"].tuned) == ("unknown", (4.0,))
    (gain,) = gains([closed, with_rewards(fast, 5.0, 5.0, 5.0)])
    assert gain.learning == "the same"
    (gain,) = gains([closed, with_rewards(fast, 5.0, 5.0, 5.1)])
    assert gain.learning == "unknown"


def test_the_time_to_the_reward_is_told_from_the_frames_a_second() -> None:
    """The time to the reward depends on how a case learns, not on its frames per second alone."""
    closed = rising(CLOSED, 1.0)  # the mean of the last five of twelve iterations is 9
    twice = rising(tuned("twice"), 2.0, iteration_time_s=1.0)
    (gain,) = gains([closed, twice])
    assert (gain.target, gain.iterations_to_target) == (9.0, (12, 8))  # the mean of 2 to 6 is 4, that of 3 to 7 is 5
    assert gain.gain is not None
    assert gain.sooner is not None
    assert gain.gain.value == pytest.approx(0.5)
    assert gain.sooner.value == pytest.approx(12 * 0.5 / (8 * 1.0))
    (gain,) = gains([closed, rising(tuned("half"), 0.5, iteration_time_s=0.1)])
    assert (gain.iterations_to_target, gain.sooner) == ((12, None), None)


def test_with_one_seed_each_round_needs_its_own_iterations() -> None:
    """Rounds of one seed learn otherwise too where a GPU adds in another order; the interval contains that."""
    closed = rising(CLOSED, 1.0, 1.0, 1.0)
    (gain,) = gains([closed, rising(tuned("fast"), 1.0, 1.0, 2.0, iteration_time_s=0.25)])
    assert gain.seeds == (1, 1)
    assert gain.sooner is not None
    assert gain.sooner.value == pytest.approx(12 * 0.5 / ((12 * 12 * 8) ** (1 / 3) * 0.25))
    assert gain.sooner.interval is not None
    assert gain.sooner.interval[1] > gain.sooner.value  # the third round has the reward after 8 iterations


def test_with_several_seeds_the_ratio_is_that_of_each_seed() -> None:
    """A seed that learns late does so in both cases, so it does not widen the interval."""
    closed = rising(with_seeds(CLOSED), 1.0, 2.0, 4.0)
    (gain,) = gains([closed, rising(with_seeds(tuned("fast")), 1.0, 2.0, 4.0, iteration_time_s=0.25)])
    assert gain.seeds == (3, 3)
    # The rise is from 8, where the fastest seed begins (the median of 0 to 16), to 9, the most that the slowest has.
    assert gain.target == pytest.approx(8 + 0.9 * (9 - 8))
    shipped_s, tuned_s = gain.time_to_target_s
    assert shipped_s is not None
    assert tuned_s is not None
    iterations = (12 * 8 * 6) ** (1 / 3)
    assert (shipped_s.value, tuned_s.value) == pytest.approx((iterations * 0.5, iterations * 0.25))
    assert gain.sooner is not None
    assert gain.sooner.value == pytest.approx(2.0)
    assert gain.sooner.interval == pytest.approx((2.0, 2.0))


def test_a_closed_case_that_does_not_rise_sets_no_reward_to_wait_for() -> None:
    (gain,) = gains([rising(CLOSED, -1.0), rising(tuned("fast"), 1.0)])
    assert (gain.target, gain.iterations_to_target, gain.sooner) == (None, (None, None), None)
    (gain,) = gains([silent(CLOSED), rising(tuned("fast"), 1.0)])
    assert (gain.target, gain.rewards["frames"].closed) == (None, ())


def test_a_gain_is_faster_or_slower_by_its_interval() -> None:
    closed = make_result(CLOSED, 0.5, 0.5, 0.5)

    def speed(*times_s: float, twins: tuple[CaseResult, ...] = ()) -> str:
        (gain,) = gains([closed, make_result(tuned("x"), *times_s)], twins)
        return gain.speed

    assert speed(0.45, 0.45, 0.45) == "faster"
    assert speed(0.55, 0.55, 0.55) == "slower"
    assert speed(0.25, 0.25, 0.6) == "within noise"
    assert speed(0.45) == "too few runs"
    repeat = make_result(replace(CLOSED, case_id=CLOSED.case_id + "-aa"), 0.72, 0.72, 0.72)
    assert speed(0.55, 0.55, 0.55, twins=(repeat,)) == "within noise"  # of 0.5 and 0.72, whose mean is 0.6


def test_only_a_closed_case_of_the_same_kind_is_held_against() -> None:
    other_library = make_result(replace(CLOSED, rl_library="rsl_rl"), 0.5)
    twin = make_result(replace(CLOSED, case_id=CLOSED.case_id + "-aa"), 0.5)
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
    alone = tuned("y", minibatch_size=4096, overrides=("agent.params.config.minibatch_size=4096",))
    assert changes(alone, CLOSED) == ("minibatch_size=4096",)
    assert changes(CLOSED, CLOSED) == ()


def test_runs_are_counted_for_a_reward_of_zero_too_and_not_without_rewards(fast: Case) -> None:
    zero = with_column(CLOSED, tuple(float(index - 9) for index in range(12)))  # the mean of the last five is 0
    lower = with_rewards(make_result(fast, 0.1), -20.0)
    (gain,) = gains([zero, lower])
    assert gain.target == 0.0
    (gain,) = gains([zero, silent(fast)])
    assert gain.rounds == 1


@pytest.fixture
def fast() -> Case:
    return tuned("fast")


@pytest.fixture
def lost() -> Case:
    return tuned("lost")


# --- the page ----------------------------------------------------------------------------------------------------


def test_a_tuned_line_is_named_by_its_change_and_what_that_leaves_open(fast: Case) -> None:
    wide = [replace(tuned("envs", num_envs_global=n), case_id=f"x/n{n}-1x1-envs") for n in (256, 512)]
    other = replace(CLOSED, rl_library="rsl_rl")
    cases = [CLOSED, other, fast, *wide]
    assert [curve_label(case, cases) for case in cases] == [
        "as shipped, rl_games", "as shipped, rsl_rl", "fast, rl_games",
        "envs, rl_games, 256 environments a rank", "envs, rl_games, 512 environments a rank",
    ]  # fmt: skip
