"""Quantiles of Student's t: printed tables, closed forms, and scipy, which reports may use."""

import math

import pytest
from scipy import stats

from suite.statistics.student_t import t_quantile, two_sided_tail


@pytest.mark.parametrize(
    ("degrees", "printed"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (22, 2.074), (30, 2.042), (120, 1.980)],
)
def test_the_quantiles_are_those_of_printed_tables(degrees: int, printed: float) -> None:
    assert round(t_quantile(0.95, degrees), 3) == printed


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
def test_one_and_two_degrees_of_freedom_have_closed_forms(confidence: float) -> None:
    assert t_quantile(confidence, 1) == pytest.approx(math.tan(math.pi * confidence / 2), rel=1e-9)
    assert t_quantile(confidence, 2) == pytest.approx(confidence * math.sqrt(2 / (1 - confidence**2)), rel=1e-9)


@pytest.mark.parametrize("degrees", [0.5, 1.3, 2.001, 3.7, 7.25, 11.9, 40.5, 1e3, 1e5])
def test_degrees_of_freedom_need_not_be_whole(degrees: float) -> None:
    assert t_quantile(0.95, degrees) == pytest.approx(float(stats.t.ppf(0.975, degrees)), rel=1e-8)
    assert two_sided_tail(0.1, degrees) == pytest.approx(float(2 * stats.t.sf(0.1, degrees)), rel=1e-9)


@pytest.mark.parametrize(("confidence", "degrees"), [(0.0, 3), (1.0, 3), (0.95, 0), (0.95, -1)])
def test_what_has_no_quantile_is_refused(confidence: float, degrees: float) -> None:
    with pytest.raises(ValueError, match="degrees of freedom"):
        t_quantile(confidence, degrees)
