"""The table of start-ups, on rounds whose kernels are counted."""

from dataclasses import replace

import pytest

from reports.analysis.start_ups import start_ups
from reports.topics.tasks.start_up import start_up_table
from suite.schema.record import CaseResult, RunRecord
from tests.fixtures.results.generated_results import failed_result, make_case, make_record

CASE = make_case("ant-envs", world_size=1)


def counted(index: int, kernels_compiled: int | None, iteration_time_s: float = 0.5) -> RunRecord:
    """The generated start takes 10 s and one iteration that is ten times as long as the others."""
    record = make_record(CASE, index=index, iteration_time_s=iteration_time_s)
    ranks = tuple(replace(rank, kernels_compiled=kernels_compiled) for rank in record.ranks)
    return replace(record, ranks=ranks)


def test_cold_and_warm_rounds_have_medians_of_their_own() -> None:
    found = start_ups(CaseResult(case=CASE, rounds=(counted(0, 96, 2.0), counted(1, 0), counted(2, 0, 0.7))))
    assert found.median_s("cold") == pytest.approx(30.0)
    assert found.median_s("warm") == pytest.approx(16.0)
    assert found.median_s(None) is None
    assert [start.round for start in found.usual] == [1, 2]


def test_the_table_says_what_is_not_known() -> None:
    single = CaseResult(case=CASE, rounds=(counted(0, None),))
    text = start_up_table([single], label="x").text
    row = next(line for line in text.splitlines() if CASE.case_id in line)
    assert "Warm or cold in s" in text
    assert row.split() == [CASE.case_id, "1", "n/a", "n/a", "n/a", "15.0", "6.00", "5.00", "n/a"]
    both = CaseResult(case=CASE, rounds=(counted(0, 3), counted(1, 0)))
    text = start_up_table([both, failed_result(CASE, outcome="oom", reason="x")], label="x").text
    assert "Warm or cold" not in text
    assert sum(CASE.case_id in line for line in text.splitlines()) == 1
    assert "1, 1" in text


@pytest.mark.parametrize(
    ("kernels", "shown"),
    [((57, 0, 57), "57"), ((57, 1, 0), "1 to 57"), ((0, 0, 0), "n/a"), ((57, None, 0), "57")],
    ids=str,
)
def test_a_cold_start_says_how_many_kernels_it_compiled(kernels: tuple[int | None, ...], shown: str) -> None:
    """A start that compiles one kernel and a start that compiles all of them once looked alike."""
    rounds = tuple(counted(index, count) for index, count in enumerate(kernels))
    lines = start_up_table([CaseResult(case=CASE, rounds=rounds)], label="x").text.splitlines()
    column = lines[0].split("\t").index("Kernels compiled")
    (row,) = (line.split("\t") for line in lines if line.startswith(CASE.case_id))
    assert row[column] == shown


def test_where_nothing_completed_the_page_says_so() -> None:
    assert "No case completed" in start_up_table([failed_result(CASE, outcome="oom", reason="x")], label="x").text
