"""Facts that the figures of pages rest on, where the verifier has a copy of its own."""

from reports.topics.others.published import read_published
from reports.verification.pages.findings.learned import RANKS_LEARN_ALONE
from reports.verification.pages.others.published_beside import COMPARED
from suite.matrix.catalog import load_catalog


def test_the_same_tasks_are_learned_by_each_rank_alone() -> None:
    assert {name for name, task in load_catalog().tasks.items() if task.ranks_learn_alone} == RANKS_LEARN_ALONE


def test_the_same_series_stand_beside_frames_per_second_of_others() -> None:
    tables = [table for table in read_published().table if table.series and table.rows[0].hours is None]
    found = {(table.series, table.rl_library, min(row.gpus for row in table.rows)) for table in tables}
    assert found == COMPARED
