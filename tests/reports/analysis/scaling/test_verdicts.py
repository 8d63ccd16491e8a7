import math
from dataclasses import replace

import pytest

from reports.analysis.scaling.scaling_groups import scaling_groups
from reports.analysis.scaling.verdicts import Verdict, limit, verdict
from suite.statistics.intervals import Estimate
from suite.statistics.speed import SCALES_EFFICIENCY
from tests.fixtures.results.generated_groups import amdahl, group_from, group_of, gustafson, usl
from tests.fixtures.results.generated_results import failed_result, make_case, make_result


def judged(*times_s: float) -> Verdict:
    """The verdict on two ranks that took ``times_s`` for what one rank did in 1 s, three times."""
    return verdict(group_from({1: (1.0, 1.0, 1.0), 2: times_s}))


def test_ideal_scaling_is_at_least_80_percent() -> None:
    found = verdict(group_of(amdahl(0.0)))
    assert (found.word, found.text, found.world_size) == ("at least 80 %", "at least 80 %", 16)
    assert found.efficiency is not None
    assert found.efficiency.value == pytest.approx(1)


def test_the_whole_interval_must_be_at_or_above_the_threshold() -> None:
    """Computed by hand: both variances of the model are a third of the spread's square, over 3 degrees of freedom."""
    spread = 0.01  # of the logarithms of three runs; those of the baseline have none
    half_width = 3.182446305284263 * spread / math.sqrt(3)

    def with_bound(efficiency: float, side: int) -> Verdict:
        middle_s = 0.5 / efficiency * math.exp(side * half_width)
        return judged(*(middle_s * math.exp(step * spread) for step in (-1, 0, 1)))

    assert with_bound(SCALES_EFFICIENCY + 1e-6, -1).word == "at least 80 %"
    assert with_bound(SCALES_EFFICIENCY - 1e-6, -1).word == "within noise"
    assert with_bound(SCALES_EFFICIENCY + 1e-6, 1).word == "within noise"
    assert with_bound(SCALES_EFFICIENCY - 1e-6, 1).word == "below 80 %"


@pytest.mark.parametrize(("times_s", "is_said"), [((1.2, 1.15, 1.25), True), ((1.2, 0.9, 1.3), False)])
def test_more_ranks_that_surely_make_fewer_frames_are_named(times_s: tuple[float, ...], is_said: bool) -> None:
    """Strong scaling, compared with 1 s on one rank."""
    found = judged(*times_s)
    assert found.word == "below 80 %"
    assert found.reason.endswith("; 2 ranks are slower than 1") == is_said


@pytest.mark.parametrize(("times", "is_said"), [(1.9, False), (1.5, True)])
def test_a_verdict_that_depends_on_the_window_says_so(times: float, *, is_said: bool) -> None:
    group = group_of(amdahl(0.0))
    elsewhere = {0.5: Estimate(value=8 * times, interval=(8 * times, 8 * times))}  # of 16 ranks
    last = replace(group.points[-1], speedup_over=elsewhere)
    found = verdict(replace(group, points=(*group.points[:-1], last)))
    assert found.word == "at least 80 %"
    assert ("below 80 % by the last 50% of the iterations" in found.reason) is is_said


def test_limited_by_a_serial_part() -> None:
    found = verdict(group_of(amdahl(0.2)))
    assert found.word == "below 80 %"
    assert found.reason == "by a serial part (Amdahl, serial fraction 0.2 (0.2 to 0.2)): at most 5.0 times one rank"


def test_limited_by_a_part_that_does_not_grow() -> None:
    found = verdict(group_of(gustafson(0.4), scaling="weak"))
    assert found.word == "below 80 %"
    assert "Gustafson, serial fraction 0.4" in found.reason


def test_limited_by_all_to_all() -> None:
    found = verdict(group_of(usl(0.02, 0.01), noise=0.001))
    assert found.word == "below 80 %"
    assert "universal scalability law, kappa 0.0" in found.reason
    assert "peak at 10 ranks" in found.reason


def test_a_coefficient_that_is_infinite_limits_nothing() -> None:
    """Each rank after the second adds the same time again: nothing is left for one rank's own work."""
    times_s = {2: 1.0, 4: 3.0, 8: 7.0, 16: 15.0}
    assert "law misses a point by" in limit(group_from({ranks: [t] * 3 for ranks, t in times_s.items()}))
    falls = group_from({ranks: [1 / ranks + 2.0 * (ranks - 1)] * 3 for ranks in (1, 2, 4, 8)})
    assert limit(falls).endswith("throughput is predicted to peak at 1 rank")


def test_a_limit_without_a_law_that_describes_it_is_not_named() -> None:
    assert "needs 3" in judged(0.7, 0.71, 0.72).reason
    strange = group_from({1: [0.4] * 3, 2: [0.2] * 3, 4: [2.0] * 3})
    assert "Amdahl's law misses a point by" in limit(strange)


def test_above_ideal_says_what_to_check() -> None:
    found = judged(0.45, 0.46, 0.47)
    assert (found.word, found.world_size) == ("above ideal", 2)
    assert found.text == "above ideal: check per-GPU versus global environments"
    assert judged(0.45, 0.46, 0.5).word == "at least 80 %"  # the interval reaches down to ideal


def test_above_ideal_in_between_is_seen_too() -> None:
    found = verdict(group_from({1: [0.4] * 3, 2: [0.18] * 3, 4: [0.1] * 3}))
    assert (found.word, found.world_size) == ("above ideal", 2)


def test_one_run_is_too_few() -> None:
    found = judged(0.5)
    assert (found.word, found.text) == ("too few runs", "too few runs")
    assert found.efficiency is not None
    assert found.efficiency.value == 1


def test_one_point_has_no_verdict_and_a_failed_one_is_said() -> None:
    assert verdict(group_of(amdahl(0.0), world_sizes=(1,))).word is None
    ok = [make_result(make_case(world_size=ranks), 1.0 / ranks, 1.0 / ranks, 1.0 / ranks) for ranks in (1, 2)]
    failed = failed_result(make_case(world_size=4), outcome="oom", reason="out of memory")
    (group,) = scaling_groups([*ok, failed])
    found = verdict(group)
    assert (found.word, found.reason, found.efficiency) == ("failed", "no round of 4 ranks completed", None)
