"""Intervals and Student's t against values computed by hand and by scipy."""

import math
import statistics

import pytest
from scipy import stats

from suite.statistics.intervals import mean_of, ratio_of, t_quantile, two_sided_tail

ONE_S, MANY_S = [1.00, 1.10, 1.21], [0.50, 0.52, 0.60, 0.55]


def test_the_interval_of_a_figure_is_students_t_on_logarithms() -> None:
    """Worked by hand: the logarithms are 0, a and 2a, so their mean is a and their standard deviation too."""
    a = math.log(1.1)
    half_width = 4.302652729911275 * a / math.sqrt(3)
    mean = mean_of(ONE_S)
    assert mean.value == pytest.approx(1.1)
    assert mean.interval == pytest.approx((math.exp(a - half_width), math.exp(a + half_width)))


def test_the_interval_of_a_ratio_is_welchs() -> None:
    logs = [[math.log(value) for value in values] for values in (ONE_S, MANY_S)]
    expected = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    ratio = ratio_of(ONE_S, MANY_S)
    assert ratio.value == pytest.approx(statistics.geometric_mean(ONE_S) / statistics.geometric_mean(MANY_S))
    assert ratio.interval == pytest.approx((math.exp(expected.low), math.exp(expected.high)))


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_processes_of_any_sample_have_no_interval(count: int) -> None:
    assert mean_of([1.0] * count).interval is None
    ratio = ratio_of([2.0] * 5, [1.0] * count)
    assert (ratio.value, ratio.interval) == (2.0, None)
    with pytest.raises(ValueError, match="no value"):
        mean_of([])


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_time_that_is_not_above_zero_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match=r"math domain|positive"):
        mean_of([1.0, 1.0, value])


@pytest.mark.parametrize("degrees", [0.5, 1.3, 2.001, 3.7, 7.25, 11.9, 40.5, 1e3, 1e5])
def test_degrees_of_freedom_need_not_be_whole(degrees: float) -> None:
    assert t_quantile(0.95, degrees) == pytest.approx(float(stats.t.ppf(0.975, degrees)), rel=1e-8)
    assert two_sided_tail(0.1, degrees) == pytest.approx(float(2 * stats.t.sf(0.1, degrees)), rel=1e-9)
