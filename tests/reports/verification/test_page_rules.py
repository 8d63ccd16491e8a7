"""Facts that the figures of pages rest on, where the verifier has a copy of its own."""

from reports.verification.pages.findings.learned import RANKS_LEARN_ALONE
from suite.matrix.catalog import load_catalog


def test_the_same_tasks_are_learned_by_each_rank_alone() -> None:
    assert {name for name, task in load_catalog().tasks.items() if task.ranks_learn_alone} == RANKS_LEARN_ALONE
