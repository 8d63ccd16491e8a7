"""Which number of GPUs, in cases whose answer can be worked out by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from reports.analysis.scaling.scaling_groups import scaling_groups
from reports.topics.cost.model import KNEE_WORTH, Choice, at_least, choice, scaled
from suite.schema.record import CaseResult, Scaling
from suite.statistics.intervals import Estimate
from tests.fixtures.results.generated_results import failed_result, make_case, make_result

FRAMES = 128 * 16  # of an iteration of all environments


def results_of(times_s: Mapping[int, Sequence[float]], scaling: Scaling = "strong") -> list[CaseResult]:
    """Number of ranks -> seconds per iteration of its rounds; weak scaling has 128 environments a rank."""
    return [
        make_result(
            make_case(world_size=ranks, scaling=scaling, num_envs_global=128 * (ranks if scaling == "weak" else 1)),
            *own,
        )
        for ranks, own in times_s.items()
    ]


def choice_of(times_s: Mapping[int, Sequence[float]], scaling: Scaling = "strong") -> Choice:
    (group,) = scaling_groups(results_of(times_s, scaling))
    found = choice(group)
    assert found is not None
    return found


def rounds(time_s: float, spread: float = 0.0) -> tuple[float, ...]:
    """Three times in order: rounds of two cases move together unless one spread is negative."""
    return tuple(time_s * (1 + spread * step) for step in (-1, 0, 1))


def test_hours_and_cost_follow_from_the_iteration_time() -> None:
    one, four = choice_of({1: rounds(1.0), 4: rounds(0.5)}).options
    assert one.wall_s_per_frame.value == pytest.approx(1.0 / FRAMES)
    assert four.wall_s_per_frame.interval == pytest.approx((0.5 / FRAMES, 0.5 / FRAMES))
    assert four.rank_s_per_frame.value == pytest.approx(4 * 0.5 / FRAMES)
    assert four.over_cheapest.value == pytest.approx(2.0)
    assert four.over_cheapest.interval == pytest.approx((2.0, 2.0))
    assert (one.over_cheapest.value, one.over_cheapest.interval) == (1.0, None)


def test_weak_scaling_counts_the_frames_of_all_ranks() -> None:
    found = choice_of({1: rounds(1.0), 2: rounds(1.25)}, "weak")
    assert found.options[1].rank_s_per_frame.value == pytest.approx(1.25 / FRAMES)
    assert found.options[1].over_cheapest.value == pytest.approx(1.25)
    worth = found.options[1].worth
    assert worth is not None
    assert worth.value == pytest.approx(0.6)
    assert worth.interval == pytest.approx((0.6, 0.6))


def test_start_up_is_what_is_left_of_the_wall_time() -> None:
    (one,) = choice_of({1: rounds(0.5)}).options
    assert one.start_up_s == pytest.approx(60.0 - 12 * 0.5)
    results = results_of({1: rounds(0.5)})
    untimed = replace(results[0], rounds=tuple(replace(each, wall_time_s=None) for each in results[0].rounds))
    found = choice(scaling_groups([untimed])[0])
    assert found is not None
    assert found.options[0].start_up_s is None


def test_added_ranks_are_worth_what_they_add_to_the_baseline() -> None:
    # Speed-ups 1, 1.8, 2.2: the second rank adds 0.8, and each of the two after it 0.2.
    found = choice_of({1: rounds(1.8), 2: rounds(1.0), 4: rounds(1.8 / 2.2)})
    assert [option.worth and round(option.worth.value, 9) for option in found.options] == [None, 0.8, 0.2]
    assert found.knee is not None
    assert (found.knee.number, found.knee.word) == (2, "clear")
    assert found.fastest.world_size == 4
    assert (found.cheapest.number, found.cheapest.word) == (1, "clear")


def test_a_knee_is_not_passed_because_of_what_comes_later() -> None:
    # Four give no more than two, eight are ideal again: a disturbed point, and no reason to skip it.
    found = choice_of({1: rounds(1.0), 2: rounds(0.5), 4: rounds(0.5), 8: rounds(0.125)})
    assert found.knee is not None
    assert (found.knee.number, found.knee.word) == (2, "clear")


def test_where_every_rank_is_worth_it_the_knee_is_the_most_that_was_measured() -> None:
    found = choice_of({1: rounds(1.0), 2: rounds(0.5), 4: rounds(0.25)})
    assert found.knee is not None
    assert (found.knee.number, found.knee.word) == (4, "clear")
    assert "further on" in found.knee.reason


def test_an_interval_on_both_sides_decides_nothing() -> None:
    # 1.5 times as fast is half of a rank; a tenth of spread makes it more or less.
    found = choice_of({1: rounds(1.5, 0.1), 2: rounds(0.99, -0.1)})
    assert found.knee is not None
    assert (found.knee.number, found.knee.word) == (2, "within noise")
    assert f"contains {KNEE_WORTH:g}" in found.knee.reason


def test_costs_that_may_be_equal_decide_nothing() -> None:
    found = choice_of({1: rounds(1.0, 0.05), 2: rounds(0.505, -0.05)})
    assert (found.cheapest.number, found.cheapest.word) == (1, "within noise")
    assert "contains 1" in found.cheapest.reason


def test_too_few_rounds_decide_nothing_and_say_so() -> None:
    found = choice_of({1: rounds(1.0), 2: (0.6,)})
    assert found.knee is not None
    assert (found.cheapest.word, found.knee.word) == ("within noise", "within noise")
    assert found.knee.reason == found.cheapest.reason == "too few rounds for an interval, which needs 3: 1 at 2"
    assert found.options[1].wall_s_per_frame.interval is None


def test_one_number_of_ranks_has_a_cost_and_no_knee() -> None:
    found = choice_of({2: rounds(1.0)})
    assert (found.cheapest.number, found.cheapest.word, found.knee) == (2, "clear", None)


def test_what_did_not_complete_is_no_option() -> None:
    crashed = failed_result(make_case(world_size=1), outcome="crashed", reason="generated")
    (group,) = scaling_groups([crashed, *results_of({2: rounds(1.0), 4: rounds(0.5)})])
    found = choice(group)
    assert found is not None
    assert [option.world_size for option in found.options] == [2, 4]
    assert found.knee is None, "what one rank gives is not known"
    assert choice(scaling_groups([crashed])[0]) is None


@pytest.mark.parametrize(
    ("interval", "said"), [((0.5, 0.6), True), ((0.3, 0.49), False), ((0.4, 0.6), None), (None, None)]
)
def test_a_threshold_is_met_by_the_whole_interval_only(interval: tuple[float, float] | None, said: bool | None) -> None:
    assert at_least(Estimate(value=0.5, interval=interval), 0.5) is said


def test_scaling_takes_the_interval_along() -> None:
    assert scaled(Estimate(value=2.0, interval=(1.0, 3.0)), 2) == Estimate(value=4.0, interval=(2.0, 6.0))
    assert scaled(Estimate(value=2.0, interval=None), 2) == Estimate(value=4.0, interval=None)
