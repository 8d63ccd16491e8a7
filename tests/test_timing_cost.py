"""What marks cost, on iteration times whose cost is known."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from rich.console import Console

from suite.schema import CaseResult, RunRecord
from suite.summary import print_timing_cost
from suite.timing_cost import block_costs, timing_cost
from tests.generated_results import make_case, make_record

MARKS = (1.0, 0.0, 0.0, 1.0)


def round_of(
    time_s: Callable[[int, float], float], *, iterations: int = 41, marks: Sequence[float] = MARKS
) -> RunRecord:
    """``time_s`` of an iteration's index and whether it had marks. The first iteration is slow, as it always is."""
    case = make_case(iterations=iterations, workload="timing_cost")
    record = make_record(case)
    marked = tuple(marks[index % len(marks)] for index in range(iterations))
    times_s = (9.0, *(time_s(index, mark) for index, mark in list(enumerate(marked))[1:]))
    (rank,) = record.ranks
    samples = {**rank.samples, "iteration_time_s": times_s, "control.marks": marked}
    return replace(record, ranks=(replace(rank, samples=samples),))


def test_the_cost_is_what_an_iteration_takes_longer_with_marks() -> None:
    cost = timing_cost([round_of(lambda _, mark: 0.5 + 0.01 * mark)] * 2)
    assert cost is not None
    assert cost.blocks == 2 * 9  # iterations 4 to 39: neither the first block nor the torn last one
    assert cost.median == pytest.approx(0.02)
    assert cost.interval == pytest.approx((0.02, 0.02))


def test_a_steady_drift_costs_nothing() -> None:
    costs = block_costs(round_of(lambda index, _: 0.5 + 0.0001 * index))
    assert costs == pytest.approx([0.0] * len(costs), abs=1e-12)
    assert costs
    # The control: marks in the first two of four would show the drift as a cost.
    assert max(block_costs(round_of(lambda index, _: 0.5 + 0.0001 * index, marks=(1.0, 1.0, 0.0, 0.0)))) < -1e-4


def test_few_blocks_have_no_interval_and_other_work_no_cost() -> None:
    cost = timing_cost([round_of(lambda _, mark: 0.5 + 0.01 * mark, iterations=13)])
    assert cost is not None
    assert (cost.blocks, cost.interval) == (2, None)
    assert timing_cost([make_record(make_case())]) is None
    assert timing_cost([]) is None


def test_the_cost_is_printed_of_the_cases_that_measure_it() -> None:
    record = round_of(lambda _, mark: 0.5 + 0.01 * mark)
    measured = CaseResult(case=record.case, rounds=(record,))
    output = io.StringIO()
    other = make_case()
    print_timing_cost(Console(file=output, width=200), [measured, CaseResult(case=other, rounds=(make_record(other),))])
    (line,) = output.getvalue().splitlines()
    cost = "Marks within an iteration cost +2.00% of it (+2.00% to +2.00% at 95 %, 9 blocks of four)"
    assert line == f"{cost}: {record.case.case_id}"
