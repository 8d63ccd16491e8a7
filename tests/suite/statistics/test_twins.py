"""Repeats of baselines: which cases get one, and in which ratios a case has part."""

from dataclasses import replace

from suite.statistics.twins import is_twin, ratios_of, with_twins
from tests.fixtures.results.generated_results import make_case


def test_the_baseline_of_each_series_is_followed_by_its_twin() -> None:
    cases = [make_case("cartpole-strong", world_size=size) for size in (2, 1, 4)]
    cases += [make_case("ant-weak", scaling="weak", world_size=2)]
    ids = [case.case_id for case in with_twins(cases)]
    two, one, four, ant = (case.case_id for case in cases)
    assert ids == [two, one, f"{one}-aa", four, ant, f"{ant}-aa"]
    twin = with_twins(cases)[2]
    assert is_twin(twin)
    assert not is_twin(cases[1])
    control = replace(make_case(), workload="environment_step")
    assert with_twins([control]) == [control]
    assert (twin.series, twin.seed, twin.num_envs) == (cases[1].series, cases[1].seed, cases[1].num_envs)


def test_a_baseline_has_part_in_all_ratios_and_another_case_in_its_own() -> None:
    two, one, four = (make_case(world_size=ranks) for ranks in (2, 1, 4))
    others = [make_case(rl_library="rl_games"), make_case(world_size=2, minibatch_rule="fixed_updates")]
    cases = [*with_twins([two, one, four]), *others]
    twin = cases[2]
    assert ratios_of(one, cases) == ratios_of(twin, cases) == [(two, one), (four, one)]
    assert ratios_of(two, cases) == [(two, one)]
    assert [ratios_of(other, cases) for other in others] == [[], []]
    assert ratios_of(two, []) == []
