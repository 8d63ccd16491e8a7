"""The chart of what the cases of a series learned."""

from dataclasses import replace
from typing import Any

import pytest

from reports.analysis.analysed_set import Campaign
from reports.display.figure import Figure
from reports.pages.learned import learning
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import make_case, make_record, make_result


def points_of(results: list[CaseResult]) -> list[dict[str, Any]]:
    drawn = learning(Campaign.from_results(results, version="2026.12"))
    assert isinstance(drawn, Figure)
    assert "labscale 2026.12 \u00b7 " in drawn.svg
    return next(iter(drawn.spec["datasets"].values()))


def test_cases_that_learn_the_same_are_one_line_that_counts_them() -> None:
    results = [make_result(make_case(world_size=ranks), 0.5 * ranks) for ranks in (1, 2)]
    assert {point["label"] for point in points_of(results)} == {"1x1 and 1 more"}


def test_cases_that_learn_otherwise_have_a_line_each() -> None:
    case = make_case(rl_library="rl_games")
    (rank,) = make_record(case).ranks
    rewards = tuple(None if value is None else 2 * value for value in rank.samples["reward_mean"])
    twice = replace(rank, samples={**rank.samples, "reward_mean": rewards})
    better = CaseResult(case=case, rounds=(replace(make_record(case), ranks=(twice,)),))
    results = [make_result(make_case(), 0.5), better]
    assert {point["label"] for point in points_of(results)} == {"rsl_rl", "rl_games"}


@pytest.mark.parametrize("iterations", [24, 1001])
def test_a_curve_has_as_many_points_as_a_phone_shows(iterations: int) -> None:
    case = make_case(iterations=iterations)
    assert 10 < len(points_of([CaseResult(case=case, rounds=(make_record(case),))])) <= 60
