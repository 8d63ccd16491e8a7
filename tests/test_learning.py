"""One-sided: a reward below the reference is a fault, whatever is above or beyond it is none."""

import pytest

from suite.catalog import LearningReference, load_catalog
from suite.learning import check_learning
from tests.conftest import CaseMaker

REFERENCE = LearningReference(iterations=10, reward_at_least=4.0, source="a test")


@pytest.mark.parametrize(
    ("rewards", "verdict", "fault"),
    [
        ([4.0] * 10, "ok", None),
        ([400.0] * 10, "ok", None),  # better than known is no fault
        ([3.9] * 10, "failure", "learns_worse"),
        ([9.0] * 5 + [3.0] * 5, "failure", "learns_worse"),  # unlearned
        ([0.0] * 5 + [3.0, 3.0, 5.0, 5.0, 5.0], "ok", None),  # one low iteration is noise
        ([5.0] * 10 + [0.0] * 20, "ok", None),  # the reference says nothing of later ones
        ([None] * 10, "failure", "learns_worse"),
        ([None] * 9 + [4.5], "ok", None),
        ([1.0] * 9, "not_checked", None),
    ],
)
def test_rewards_are_held_to_the_reference(
    rewards: list[float | None], verdict: str, fault: str | None, make_case: CaseMaker
) -> None:
    result = check_learning(make_case(), rewards, REFERENCE)
    assert (result.verdict, result.fault) == (verdict, fault)


def test_without_a_reference_it_says_so(make_case: CaseMaker) -> None:
    result = check_learning(make_case(), [1.0], None)
    assert (result.verdict, result.found) == (
        "not_checked",
        "the catalog has no reference for Isaac-Cartpole-Direct with rsl_rl",
    )


def test_an_unknown_task_has_no_reference() -> None:
    assert load_catalog().learning_reference("Isaac-Nothing", "skrl") is None
