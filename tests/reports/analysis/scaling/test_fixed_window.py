"""The speed-up over a fixed window, in numbers that can be worked out by hand."""

import math

import pytest

from reports.analysis.scaling.fixed_window import fixed_window_speedup
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import make_case, make_result


def result(world_size: int, *times_s: float, variant: str = "") -> CaseResult:
    return make_result(make_case(world_size=world_size, variant=variant), *times_s)


def test_the_repeat_of_the_baseline_counts_as_the_baseline() -> None:
    base, repeat, four = result(1, 1.0, 1.0, 1.1), result(1, 1.2, 1.2, 1.2, variant="aa"), result(4, 1.5, 1.5, 1.6)
    alone, both = fixed_window_speedup(base, four, []), fixed_window_speedup(base, four, [repeat])
    assert alone is not None
    assert both is not None
    logs = [math.fsum(map(math.log, times)) / len(times) for times in ((1.0, 1.0, 1.1, 1.2, 1.2, 1.2), (1.5, 1.5, 1.6))]
    assert both.value == pytest.approx(math.exp(logs[0] - logs[1]), rel=0.01)
    assert both.value > alone.value
    assert both.interval is not None
    assert both.interval[0] < both.value < both.interval[1] < 1


def test_too_few_runs_and_the_baseline_itself_have_none() -> None:
    base = result(1, 1.0, 1.0, 1.1)
    assert fixed_window_speedup(base, base, []) is None
    assert fixed_window_speedup(base, result(4, 0.5, 0.5), []) is None
