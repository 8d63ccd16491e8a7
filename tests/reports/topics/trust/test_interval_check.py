"""Intervals contain the truth often enough: in campaigns simulated from stored rounds, and by stored twins."""

import math
import random
from functools import cache

import pytest

from suite.schema.record import CaseResult
from suite.statistics.intervals import CONFIDENCE
from suite.statistics.student_t import t_quantile
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import make_case, make_result
from tests.reports.topics.trust.interval_check import Components, components, coverage, twin_ratios

LEAST_COVERAGE = 0.92
DRAWS = 2000


@cache
def stored_sets() -> tuple[tuple[CaseResult, ...], ...]:
    """The training results of every stored set that ran on GPUs, with the twins."""
    sets = ([*one.campaign.results, *one.campaign.twins] for one in committed_version().sets)
    return tuple(
        tuple(each for each in one if each.case.workload == "train" and each.case.device == "cuda") for one in sets
    )


@cache
def stored_components() -> Components:
    return components(stored_sets())


@pytest.mark.parametrize("processes", range(3, 13))
def test_intervals_contain_the_truth_in_at_least_92_of_100_simulated_campaigns(processes: int) -> None:
    found = coverage(stored_components(), processes, draws=DRAWS)
    assert found.figure >= LEAST_COVERAGE
    assert found.ratio >= LEAST_COVERAGE


def test_the_simulation_has_every_effect() -> None:
    found = stored_components()
    assert min(found.process, found.block) > 0.01
    assert sum(kind.slow_by > 3 * kind.spread for kind in found.kinds) > len(found.kinds) / 2


def test_a_stored_ratio_stays_inside_its_interval_if_the_twin_replaces_the_baseline() -> None:
    found = [ratio for results in stored_sets() for ratio in twin_ratios(results)]
    assert len(found) >= 30
    assert sum(ratio.is_inside for ratio in found) >= 0.9 * len(found)


def test_rounds_correlate_too_little_for_a_pairing_of_six() -> None:
    """A paired interval is narrower by the root of 1 - correlation, and wider by its fewer degrees of freedom."""
    paired = t_quantile(CONFIDENCE, 5) * math.sqrt(1 - stored_components().correlation)
    assert paired > t_quantile(CONFIDENCE, 10)


def test_components_of_generated_rounds_are_found_again() -> None:
    generator = random.Random(3)  # noqa: S311 - generated times, not secrets
    blocks = [generator.gauss(0, 0.10) for _ in range(60)]
    results = [
        make_result(
            make_case(num_envs_global=128 * case), *(math.exp(block + generator.gauss(0, 0.05)) for block in blocks)
        )
        for case in range(1, 9)
    ]
    found = components([results])
    assert found.process == pytest.approx(0.05, rel=0.1)
    assert found.block == pytest.approx(0.10, rel=0.2)
    assert found.correlation == pytest.approx(0.8, abs=0.06)
    with pytest.raises(ValueError, match="two common rounds"):
        components([results[:1]])


def test_a_twin_that_is_far_off_leaves_the_interval() -> None:
    case = make_case()
    two_ranks = make_result(make_case(world_size=2), 0.5, 0.51, 0.49)

    def inside(*twin_s: float) -> list[bool]:
        twin = make_result(make_case(variant="aa"), *twin_s)
        return [one.is_inside for one in twin_ratios([make_result(case, 1.0, 1.01, 0.99), twin, two_ranks])]

    assert inside(1.0, 1.02, 0.98) == [True]
    assert inside(1.5, 1.52, 1.48) == [False]
    assert inside(1.5, 1.52) == []
