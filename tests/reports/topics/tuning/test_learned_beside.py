"""Several ranks beside one with as many environments: seeds of both are paired, others are shown and not compared."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.topics.tuning.learned_beside import MIN_ITERATIONS, several_beside_one, stacks_beside_newton
from suite.schema.record import CaseResult
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import failed_result, held_to_a_reference, make_case, make_result

ONE = make_case("ant-weak", iterations=MIN_ITERATIONS)
TWO = replace(ONE, case_id="ant-weak/two", nproc_per_node=2, num_envs_global=ONE.num_envs_global)


def runs(rewards: dict[int, float], *, ranks: int = 1, **changes: object) -> list[CaseResult]:
    """One run for each seed, whose reward is the same in every iteration."""
    return [_run(seed, [reward], ranks=ranks, **changes) for seed, reward in rewards.items()]


def _run(seed: int, rewards: Sequence[float], *, ranks: int = 1, **changes: object) -> CaseResult:
    """One round for each reward."""
    case = replace(TWO if ranks > 1 else ONE, seed=seed, **changes)  # type: ignore[arg-type]
    rounds = []
    for number, reward in enumerate(rewards):
        (record,) = make_result(case, 0.5).rounds
        of_ranks = tuple(
            replace(rank, samples={**rank.samples, "reward_mean": (reward,) * rank.num_iterations})
            for rank in record.ranks
        )
        rounds.append(replace(record, round=number, ranks=of_ranks))
    return CaseResult(case=case, rounds=tuple(rounds))


ALONE = {1: 10.0, 2: 20.0, 3: 30.0, 4: 40.0, 5: 50.0}


def test_seeds_that_both_have_are_paired() -> None:
    alone, together = ALONE | {9: 0.0}, {1: 9.0, 2: 18.0, 3: 27.0, 4: 36.0, 5: 45.0, 8: 0.0}
    (pair,) = several_beside_one(runs(alone) + runs(together, ranks=2))
    assert (pair.size.frames_per_iteration, pair.other.world_size, pair.iterations) == (ONE.frames_per_iteration, 2, 20)
    assert (pair.base_rewards, pair.other_rewards) == (alone, together)
    assert pair.differences == (-1.0, -2.0, -3.0, -4.0, -5.0)
    assert pair.difference is not None
    half_width = 2.7764451051977934 * math.sqrt(2.5 / 5)  # t of 4 degrees of freedom; the variance is 2.5
    assert pair.difference.value == -3.0
    assert pair.difference.interval == pytest.approx((-3.0 - half_width, -3.0 + half_width))
    assert pair.verdict == "less"


def test_runs_on_other_assets_are_no_pair_with_these() -> None:
    assert several_beside_one(runs(ALONE) + runs(ALONE, ranks=2, assets="official")) == ()
    (pair,) = several_beside_one(runs(ALONE, assets="official") + runs(ALONE, ranks=2, assets="official"))
    assert pair.differences == (0.0,) * 5


@pytest.mark.parametrize(
    ("together", "verdict"),
    [
        ({seed: 1.1 * reward for seed, reward in ALONE.items()}, "more"),
        (ALONE | {1: 9.0, 2: 22.0}, "no sure difference"),
        ({seed: 0.9 * ALONE[seed] for seed in (1, 2, 3, 4)}, "unknown"),  # of one sign by chance too often
        (dict.fromkeys((6, 7, 8, 9, 10), 1.0), "unknown"),
    ],
)
def test_a_verdict_needs_an_interval_that_leaves_no_difference_out(together: dict[int, float], verdict: str) -> None:
    (pair,) = several_beside_one(runs(ALONE) + runs(together, ranks=2))
    assert pair.verdict == verdict
    assert (pair.difference is None) == (verdict == "unknown")


def test_a_longer_run_of_another_seed_takes_no_shared_seeds_away() -> None:
    longer = [run for ranks in (1, 2) for run in runs({42: 7.0}, ranks=ranks, iterations=3 * MIN_ITERATIONS)]
    (pair,) = several_beside_one([*runs(ALONE), *runs(ALONE, ranks=2), *longer])
    assert (pair.iterations, len(pair.differences)) == (MIN_ITERATIONS, 6)


def test_a_seed_that_ran_again_has_its_median() -> None:
    results = [_run(1, [1.0, 5.0, 6.0]), *runs({1: 7.0}), *runs({1: 5.0}, ranks=2)]
    (pair,) = several_beside_one(results)
    assert (pair.base_rewards, pair.other_rewards) == ({1: 5.5}, {1: 5.0})


def test_what_learned_less_than_its_reference_is_no_measurement_but_is_not_left_out_of_what_is_learned() -> None:
    """Only rounds that learned enough were compared, so that the ranks that learn less did not."""
    less = [held_to_a_reference(one) for one in runs(dict.fromkeys(ALONE, 1.0), ranks=2)]
    (pair,) = several_beside_one([*runs(ALONE), *less])
    assert (pair.other_rewards, pair.verdict) == (dict.fromkeys(ALONE, 1.0), "less")


def test_what_is_no_measurement_for_another_reason_too_says_nothing_of_what_is_learned() -> None:
    (run,) = runs({1: 1.0}, ranks=2)
    assert several_beside_one([*runs(ALONE), held_to_a_reference(run, also="bodies_fell")]) == ()
    (record,) = held_to_a_reference(run).rounds
    of_two = tuple(replace(rank, parameters_sha256=f"{rank.rank:064d}") for rank in record.ranks)
    assert several_beside_one([*runs(ALONE), replace(run, rounds=(replace(record, ranks=of_two),))]) == ()


def test_other_work_short_runs_and_what_never_learned_are_left_out() -> None:
    alone = runs({1: 10.0})
    assert several_beside_one(alone + runs({1: 9.0}, ranks=2, optimiser_steps=ONE.optimiser_steps + 1)) == ()
    assert several_beside_one(alone + runs({1: 9.0}, ranks=2, stack="ovphysx")) == ()
    assert several_beside_one(alone + runs({1: 9.0}, ranks=2, division="open")) == ()
    assert several_beside_one(alone + runs({1: 9.0}, ranks=2, iterations=MIN_ITERATIONS - 1)) == ()
    assert several_beside_one([*alone, failed_result(TWO, outcome="oom", reason="x")]) == ()
    assert several_beside_one(alone) == ()


def test_another_stack_is_held_against_newton_on_as_many_ranks() -> None:
    physx = runs({seed: 2 * reward for seed, reward in ALONE.items()}, stack="ovphysx")
    two_ranks = runs(ALONE, ranks=2, stack="ovphysx")
    (pair,) = stacks_beside_newton(runs(ALONE) + physx + two_ranks)
    assert (pair.base.stack, pair.other.stack, pair.other.world_size) == ("kitless", "ovphysx", 1)
    assert pair.differences == tuple(ALONE.values())
    assert pair.verdict == "more"
    assert stacks_beside_newton(physx + two_ranks) == ()
    assert stacks_beside_newton(runs(ALONE) + runs(ALONE, stack="ovphysx", assets="official")) == ()


def test_what_is_learned_on_physx_in_git() -> None:
    version = committed_version()
    pairs = stacks_beside_newton(result for one in version.sets for result in one.campaign.results)
    verdicts = {(pair.size.task, pair.size.rl_library): pair.verdict for pair in pairs}
    assert verdicts == {
        ("Isaac-Ant", "rl_games"): "no sure difference",
        ("Isaac-Ant", "rsl_rl"): "more",
        ("Isaac-Cartpole-Direct", "rl_games"): "no sure difference",
        ("Isaac-Cartpole-Direct", "rsl_rl"): "no sure difference",
    }
