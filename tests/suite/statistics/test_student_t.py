"""Quantiles of Student's t: printed tables, closed forms, and scipy, which reports may use."""

import pytest
from scipy import stats

from suite.statistics.student_t import t_quantile, two_sided_tail


@pytest.mark.parametrize("degrees", [0.5, 1.3, 2.001, 3.7, 7.25, 11.9, 40.5, 1e3, 1e5])
def test_degrees_of_freedom_need_not_be_whole(degrees: float) -> None:
    assert t_quantile(0.95, degrees) == pytest.approx(float(stats.t.ppf(0.975, degrees)), rel=1e-8)
    assert two_sided_tail(0.1, degrees) == pytest.approx(float(2 * stats.t.sf(0.1, degrees)), rel=1e-9)
