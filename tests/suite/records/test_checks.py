"""One-sided: a reward below the reference is a fault, whatever is above or beyond it is none."""

from dataclasses import replace
from typing import Any, Final

import pytest

from suite.matrix.catalog import Catalog, LearningReference
from suite.records.checks import check_learning, only_learned_less
from suite.schema.record import CheckResult
from tests.conftest import CaseMaker
from tests.fixtures.results.generated_results import held_to_a_reference, make_result
from tests.fixtures.results.generated_results import make_case as generated_case
from tests.fixtures.results.rank_events import RankFiles, end, head, iterations

REFERENCE = LearningReference(
    stack="kitless", frames_per_iteration=1024, optimiser_steps=20, iterations=10, reward_at_least=4.0, source="a test"
)


LATER = REFERENCE.model_copy(update={"iterations": 20, "reward_at_least": 8.0})


@pytest.mark.parametrize(
    ("rewards", "verdict"),
    [
        ([4.0] * 10, "ok"),
        ([400.0] * 10, "ok"),  # better than known is no fault
        ([3.9] * 10, "failure"),
        ([9.0] * 5 + [3.0] * 5, "failure"),  # unlearned
        ([0.0] * 5 + [3.0, 3.0, 5.0, 5.0, 5.0], "ok"),  # one low iteration is noise
        ([5.0] * 10 + [0.0] * 9, "ok"),  # the reference says nothing of later ones
        ([None] * 10, "failure"),
        ([None] * 9 + [4.5], "ok"),
        ([1.0] * 9, "not_checked"),
        ([4.0] * 20, "failure"),  # the latest that was reached counts
        ([4.0] * 10 + [8.0] * 10, "ok"),
    ],
)
def test_rewards_are_held_to_the_reference(rewards: list[float | None], verdict: str, make_case: CaseMaker) -> None:
    result = check_learning(make_case(), rewards, [LATER, REFERENCE])
    assert (result.verdict, result.fault) == (verdict, "learns_worse" if verdict == "failure" else None)


NONE_FOR: Final = "the catalog has no reference for "


@pytest.mark.parametrize(
    ("changed", "references", "why"),
    [
        ({"num_envs_global": 128}, [REFERENCE], f"{NONE_FOR}2048 frames and 20 optimiser steps in an iteration"),
        ({"optimiser_steps": 40}, [REFERENCE], f"{NONE_FOR}1024 frames and 40 optimiser steps in an iteration"),
        # PhysX was held to what runs on Newton had learned, and controls were invalid: they count no episode.
        (
            {"stack": "ovphysx", "device": "cuda"},
            [REFERENCE],
            f"{NONE_FOR}Isaac-Cartpole-Direct with rsl_rl on the stack ovphysx",
        ),
        ({"workload": "environment_step"}, [REFERENCE], "nothing learns in a control"),
        ({"only_learning": True}, [REFERENCE], "what it learns is what is measured"),
        ({"assets": "official"}, [REFERENCE], "references are of offline assets, and these are official"),
        ({}, [], f"{NONE_FOR}Isaac-Cartpole-Direct with rsl_rl on the stack kitless"),
    ],
)
def test_a_case_unlike_every_reference_is_not_checked(
    changed: dict[str, Any], references: list[LearningReference], why: str, make_case: CaseMaker
) -> None:
    result = check_learning(make_case(**changed), [0.0] * 10, references)
    assert (result.verdict, result.found) == ("not_checked", why)


def test_where_ranks_learn_something_alone_other_ranks_are_not_held_to_it(make_case: CaseMaker) -> None:
    case = make_case()
    own, other = (REFERENCE.model_copy(update={"world_size": case.world_size + more}) for more in (0, 1))
    assert check_learning(case, [0.0] * 10, [own]).verdict == "failure"
    assert check_learning(case, [0.0] * 10, [REFERENCE]).verdict == "failure"  # whose ranks learn together
    result = check_learning(case, [0.0] * 10, [other])
    size = f"{case.frames_per_iteration} frames and {case.optimiser_steps} optimiser steps in an iteration"
    missing = f"{NONE_FOR}{size} on {case.world_size} ranks"
    assert (result.verdict, result.found) == ("not_checked", missing)


@pytest.mark.parametrize(
    ("of_ranks", "reward"),
    [
        ((3.0, 3.0), "3"),
        ((6.0, 1.0), "3.5"),  # rank 0 alone reached it
        ((3.0, None), "3"),  # rsl_rl keeps rewards on rank 0
        ((3.5, 5.0), None),
    ],
)
def test_learning_worse_than_the_reference_is_invalid(
    of_ranks: tuple[float | None, ...], reward: str | None, rank_files: RankFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = REFERENCE.model_copy(update={"iterations": 3})
    monkeypatch.setattr(Catalog, "learning_references", lambda *_: (reference,))
    for rank, of_rank in enumerate(of_ranks):
        rank_files.rank(rank, head(rank) + iterations(3, reward_mean=of_rank) + end())
    record = rank_files.collect()
    assert record.outcome == ("completed" if reward is None else "invalid")
    assert reward is None or f"reward is {reward};" in (record.reason or "")
    assert reward is None or "(learns_worse)" in (record.reason or "")


def test_only_a_round_that_did_nothing_else_wrong_only_learned_less() -> None:
    """One that was profiled is no measurement, however it learned."""
    (record,) = held_to_a_reference(make_result(generated_case(), 0.5)).rounds
    assert only_learned_less(record)
    (rank,) = record.ranks
    passed = CheckResult(name="finite_state", feature="physics", verdict="ok", found="all finite", fault=None)
    assert only_learned_less(replace(record, ranks=(replace(rank, validity=(*rank.validity, passed)),)))
    assert not only_learned_less(replace(record, outcome="completed"))
    assert not only_learned_less(replace(record, reason="rank 0: frames: all black (constant)"))
    assert not only_learned_less(replace(record, reason=None))
    assert not only_learned_less(replace(record, profiled_ranks=(0,)))
