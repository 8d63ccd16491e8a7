"""When a case has enough rounds: the interval of the figure, the decision, the order, repeats of baselines."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from suite.schema.record import Case, RunRecord
from suite.statistics.set_model import SetModel
from suite.statistics.stopping_rule import Rule, decide, relative_half_width, rotated
from suite.statistics.twins import is_twin, ratios_of, with_twins
from tests.fixtures.results.generated_results import make_case, make_record

FIXED = Rule(rounds=3)
ADAPTIVE = Rule(rounds=3, precision=0.01, max_rounds=10)


ONE, TWO, FOUR = (make_case(world_size=ranks) for ranks in (1, 2, 4))


def rounds(times_s: Sequence[float | None], case: Case = ONE) -> list[RunRecord]:
    """A round per time; None did not complete."""
    return [
        make_record(case, index=index, outcome="crashed", reason="x")
        if time_s is None
        else make_record(case, index=index, iteration_time_s=time_s)
        for index, time_s in enumerate(times_s)
    ]


@pytest.mark.parametrize(
    ("rule", "times_s", "go_on", "named"),
    [
        (FIXED, [], True, "0 of 3 rounds"),
        (FIXED, [1.0, 1.0], True, "2 of 3 rounds"),
        (FIXED, [1.0, 2.0, 3.0], False, "as many"),
        (FIXED, [None, None, None], False, "as many"),
        (ADAPTIVE, [1.0, 1.0], True, "2 of 3 rounds"),
        (ADAPTIVE, [1.0, 1.0, 1.0], False, "0.0%"),
        (ADAPTIVE, [1.0, 1.05, 0.95], True, "12.5%"),
        (ADAPTIVE, [1.0, 1.0, 1.0, 1.0, 1.009, 0.991], False, "0.6%"),
        (ADAPTIVE, [1.0, 1.0, 1.0, 1.0, 1.02, 0.98], True, "1.3%"),
        (ADAPTIVE, [1.0] * 4 + [1.1] * 6, False, "budget of 10 rounds"),
        (ADAPTIVE, [None, None, None], False, "none of 3 rounds"),
        (ADAPTIVE, [None, 1.0, 1.0], True, "too few runs"),
        (ADAPTIVE, [1.0] * 2 + [None] * 8, False, "budget of 10 rounds"),  # failed rounds spend it
        (Rule(rounds=8, precision=0.5, max_rounds=8), [1.0] * 7, True, "7 of 8 rounds"),
    ],
)
def test_decisions(rule: Rule, times_s: list[float | None], go_on: bool, named: str) -> None:
    decision = decide(rounds(times_s), rule)
    assert (decision.go_on, named in decision.reason) == (go_on, True), decision.reason


@pytest.mark.parametrize(("count", "elapsed_s", "go_on"), [(2, 999.0, True), (3, 59.0, True), (3, 60.0, False)])
def test_time_ends_only_what_goes_beyond_the_rounds_of_the_matrix(count: int, elapsed_s: float, go_on: bool) -> None:
    rule = Rule(rounds=3, precision=0.01, budget_s=60.0)
    decision = decide(rounds([1.0, 1.1, 0.9][:count]), rule, elapsed_s=elapsed_s)
    assert decision.go_on == go_on
    assert ("budget of 1 minute" in decision.reason) != go_on


def test_a_case_goes_on_until_its_least_certain_ratio_is_known() -> None:
    """The baseline alone is known well enough; a ratio to it is not, and the budget of the baseline ends first."""
    base, calm = rounds([1.0, 1.001, 0.999]), rounds([0.5, 0.5005, 0.4995], TWO)
    loose = rounds([0.3, 0.33, 0.28, 0.31], FOUR)
    assert not decide(base, ADAPTIVE).go_on
    assert not decide(base, ADAPTIVE, ratios=[(TWO, ONE)], of_set=[*base, *calm]).go_on
    of_set, ratios = [*base, *calm, *loose], [(TWO, ONE), (FOUR, ONE)]
    ratio = SetModel(of_set).ratio(FOUR, ONE)
    assert ratio is not None
    decision = decide(base, ADAPTIVE, ratios=ratios, of_set=of_set)
    assert (decision.go_on, f"{relative_half_width(ratio):.1%}" in decision.reason) == (True, True)
    spent = decide(base, replace(ADAPTIVE, max_rounds=3), ratios=ratios, of_set=of_set)
    assert (spent.go_on, "budget of 3 rounds" in spent.reason) == (False, True)


def test_each_round_starts_one_case_later() -> None:
    assert [rotated("abc", index) for index in range(4)] == [list("abc"), list("bca"), list("cab"), list("abc")]
    assert rotated([], 3) == []


def test_the_baseline_of_each_series_is_followed_by_its_twin() -> None:
    cases = [make_case("cartpole-strong", world_size=size) for size in (2, 1, 4)]
    cases += [make_case("ant-weak", scaling="weak", world_size=2)]
    ids = [case.case_id for case in with_twins(cases)]
    two, baseline, four, ant = (case.case_id for case in cases)
    assert ids == [two, baseline, f"{baseline}-aa", four, ant, f"{ant}-aa"]
    twin = with_twins(cases)[2]
    assert is_twin(twin)
    assert not is_twin(cases[1])
    control = replace(make_case(), workload="environment_step")
    assert with_twins([control]) == [control]
    assert (twin.series, twin.seed, twin.num_envs) == (cases[1].series, cases[1].seed, cases[1].num_envs)


def test_a_baseline_has_part_in_all_ratios_and_another_case_in_its_own() -> None:
    two, baseline, four = (make_case(world_size=ranks) for ranks in (2, 1, 4))
    others = [make_case(rl_library="rl_games"), make_case(world_size=2, minibatch_rule="fixed_updates")]
    cases = [*with_twins([two, baseline, four]), *others]
    twin = cases[2]
    assert ratios_of(baseline, cases) == ratios_of(twin, cases) == [(two, baseline), (four, baseline)]
    assert ratios_of(two, cases) == [(two, baseline)]
    assert [ratios_of(other, cases) for other in others] == [[], []]
    assert ratios_of(two, []) == []
