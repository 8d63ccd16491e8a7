"""The speed-up over a fixed window, from all runs of a series."""

import pytest

from reports.analysis.scaling.fixed_window import fixed_window_speedup
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import make_case, make_result


def result(world_size: int, *times_s: float, variant: str = "") -> CaseResult:
    return make_result(make_case(world_size=world_size, variant=variant), *times_s)


def test_the_repeat_of_the_baseline_counts_as_the_baseline() -> None:
    base, repeat, four = result(1, 1.0, 1.0, 1.1), result(1, 1.2, 1.2, 1.2, variant="aa"), result(4, 1.5, 1.5, 1.6)
    alone = fixed_window_speedup(base, four, [base, four])
    both = fixed_window_speedup(base, four, [base, four, repeat])
    assert alone is not None
    assert both is not None
    assert both.value > alone.value
    assert both.interval is not None
    low, high = both.interval
    assert low < both.value < high < 1
    assert (low * high) ** 0.5 == pytest.approx(both.value)


def test_too_few_runs_and_the_baseline_itself_have_none() -> None:
    base, few = result(1, 1.0, 1.0, 1.1), result(4, 0.5)
    assert fixed_window_speedup(base, base, [base]) is None
    assert fixed_window_speedup(base, few, [base, few]) is None
