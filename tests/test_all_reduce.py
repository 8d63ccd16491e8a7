from dataclasses import replace

import pytest

from reports.all_reduce import all_reduce_times_s
from suite.schema.record import CaseResult
from tests.generated_results import make_case, make_record, make_result


def test_of_a_round_the_rank_that_waited_least_counts() -> None:
    case = make_case(world_size=2)
    record = make_record(case, iteration_time_s=[1.0, 2.0])  # all-reduce is a tenth of either
    result = CaseResult(case=case, rounds=(record, replace(record, round=1)))
    assert all_reduce_times_s(result) == pytest.approx({0: 0.1, 1: 0.1})


def test_one_rank_has_no_all_reduce() -> None:
    assert all_reduce_times_s(make_result(make_case(), 0.5)) == {}
