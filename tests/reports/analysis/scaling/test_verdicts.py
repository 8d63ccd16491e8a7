import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.analysis.scaling.scaling_groups import ScalingGroup, scaling_groups
from reports.analysis.scaling.verdicts import SCALES_EFFICIENCY, Verdict, limit, verdict
from tests.fixtures.results.generated_groups import amdahl, group_of, gustafson, point_of, usl
from tests.fixtures.results.generated_results import failed_result, make_case, make_result


def with_last(group: ScalingGroup, times_s: Sequence[float]) -> ScalingGroup:
    last = replace(group.points[-1], times_s=dict(enumerate(times_s)))
    return replace(group, points=(*group.points[:-1], last))


def judged(*times_s: float, baseline_s: Sequence[float] = (1.0, 1.0, 1.0)) -> Verdict:
    """The verdict on two ranks that took ``times_s`` for what one rank did in ``baseline_s``."""
    points = tuple(point_of(ranks, 1000, dict(enumerate(values))) for ranks, values in ((1, baseline_s), (2, times_s)))
    return verdict(ScalingGroup(series="s", curve="c", scaling="strong", points=points))


def test_ideal_scaling_scales() -> None:
    found = verdict(group_of(amdahl(0.0)))
    assert (found.word, found.text, found.world_size) == ("scales", "scales", 16)
    assert found.efficiency is not None
    assert found.efficiency.value == pytest.approx(1)


def test_the_whole_interval_must_be_at_or_above_the_threshold() -> None:
    spread = 0.01  # of the logarithms of three rounds, so their mean has a half-width of 4.3027 * 0.01 / sqrt(3)
    half_width = 4.302652729911275 * spread / math.sqrt(3)

    def with_bound(efficiency: float, side: int) -> Verdict:
        middle_s = 0.5 / efficiency * math.exp(side * half_width)
        return judged(*(middle_s * math.exp(step * spread) for step in (-1, 0, 1)))

    assert with_bound(SCALES_EFFICIENCY + 1e-6, -1).word == "scales"
    assert with_bound(SCALES_EFFICIENCY - 1e-6, -1).word == "inconclusive"
    assert "lies on both sides of 0.80" in with_bound(SCALES_EFFICIENCY + 1e-6, 1).reason
    assert with_bound(SCALES_EFFICIENCY - 1e-6, 1).word == "limited"


@pytest.mark.parametrize(("times_s", "is_said"), [((1.2, 1.15, 1.25), True), ((1.2, 0.9, 1.3), False)])
def test_more_ranks_that_surely_make_fewer_frames_are_named(times_s: tuple[float, ...], is_said: bool) -> None:
    """Strong scaling, compared with 1 s on one rank."""
    found = judged(*times_s)
    assert found.word == "limited"
    assert found.reason.endswith("; 2 ranks are slower than 1") == is_said


@pytest.mark.parametrize(
    ("twin_s", "word"), [((1.0, 1.0, 1.0), "scales"), ((0.7, 1.0, 1.0), "inconclusive"), ((0.7, 0.7), "scales")]
)
def test_a_word_has_to_hold_with_the_baselines_twin_too(twin_s: tuple[float, ...], word: str) -> None:
    """The twin is the same case; with two rounds it says nothing."""
    points = tuple(point_of(ranks, 1000, dict(enumerate((time_s,) * 3))) for ranks, time_s in ((1, 1.0), (2, 0.5)))
    twin = point_of(1, 1000, dict(enumerate(twin_s)))
    found = verdict(ScalingGroup(series="s", curve="c", scaling="strong", points=points, twin=twin))
    assert found.word == word
    if word == "inconclusive":
        assert found.reason == (
            "scales by the baseline and inconclusive by its repeat, which is the same case: 0.53 to 1.48 at 2 ranks"
        )


def test_limited_by_a_serial_part() -> None:
    found = verdict(group_of(amdahl(0.2)))
    assert found.word == "limited"
    assert found.reason == "by a serial part (Amdahl, serial fraction 0.2 (0.2 to 0.2)): at most 5.0 times one rank"


def test_limited_by_a_part_that_does_not_grow() -> None:
    found = verdict(group_of(gustafson(0.4), scaling="weak"))
    assert found.word == "limited"
    assert "Gustafson, serial fraction 0.4" in found.reason


def test_limited_by_all_to_all() -> None:
    found = verdict(group_of(usl(0.02, 0.01), noise=0.001))
    assert found.word == "limited"
    assert "universal scalability law, kappa 0.0" in found.reason
    assert "peak at 10 ranks" in found.reason


def test_a_coefficient_that_is_infinite_limits_nothing() -> None:
    """Each rank after the second adds the same time again: nothing is left for one rank's own work."""
    times_s = {2: 1.0, 4: 3.0, 8: 7.0, 16: 15.0}
    (group,) = scaling_groups([make_result(make_case(world_size=ranks), *[t] * 3) for ranks, t in times_s.items()])
    assert "law misses a point by" in limit(group)
    (falls,) = scaling_groups(
        [make_result(make_case(world_size=ranks), *[1 / ranks + 2.0 * (ranks - 1)] * 3) for ranks in (1, 2, 4, 8)]
    )
    assert limit(falls).endswith("throughput is predicted to peak at 1 rank")


def test_a_limit_without_a_law_that_describes_it_is_not_named() -> None:
    assert "needs 3" in judged(0.7, 0.71, 0.72).reason
    strange = with_last(group_of(amdahl(0.0), world_sizes=(1, 2, 4)), (1.0, 1.0, 1.0))
    assert "Amdahl's law misses a point by" in limit(strange)


def test_superlinear_says_what_to_check() -> None:
    found = judged(0.45, 0.46, 0.47)
    assert (found.word, found.world_size) == ("superlinear", 2)
    assert found.text == "superlinear: check per-GPU versus global environments"
    assert judged(0.45, 0.46, 0.5).word == "scales"  # the interval reaches down to ideal


def test_superlinear_in_between_is_seen_too() -> None:
    group = group_of(amdahl(0.0), world_sizes=(1, 2, 4))
    fast = replace(group.points[1], times_s={0: 0.09, 1: 0.09, 2: 0.09})
    found = verdict(replace(group, points=(group.points[0], fast, group.points[2])))
    assert (found.word, found.world_size) == ("superlinear", 2)


def test_too_few_rounds_have_no_verdict() -> None:
    found = judged(0.5)
    assert (found.word, found.text) == (None, "none")
    assert found.reason == "too few rounds for an interval, which needs 3: 1 at 2 ranks"
    assert found.efficiency is not None
    assert found.efficiency.value == 1


def test_one_point_or_a_failed_one_has_no_verdict() -> None:
    assert "scaling needs two" in verdict(group_of(amdahl(0.0), world_sizes=(1,))).reason
    ok = [make_result(make_case(world_size=ranks), 1.0 / ranks, 1.0 / ranks, 1.0 / ranks) for ranks in (1, 2)]
    failed = failed_result(make_case(world_size=4), outcome="oom", reason="out of memory")
    (group,) = scaling_groups([*ok, failed])
    found = verdict(group)
    assert (found.word, found.reason, found.efficiency) == (None, "no round of 4 ranks completed", None)
