"""What two stacks spend an iteration on, against GENERATED results and those in git."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.analysis.analysed_set import Campaign
from reports.analysis.stack_parts import StackPair, stack_pairs
from reports.display import series_tables
from reports.display.charts.scaling import throughput
from reports.display.figure import Figure
from reports.display.pair_tables import cases_in_words, parts_of_stacks, stack_in_words, stacks_of
from reports.sets.version import read_version
from reports.site.topics import series_parts
from reports.topics.cost import page as choosing
from reports.topics.others import pairs_page
from reports.topics.tasks import curves_page as summary
from reports.topics.tasks.section import section
from suite.schema.record import CaseResult
from tests.fixtures.results.committed_results import committed_set
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, stack_results, write_results


def one_gpu(newton_s: float, physx_s: float, *, rounds: int = 3) -> list[CaseResult]:
    newton, physx = (result.case for result in stack_results()[:2])
    return [make_result(newton, *[newton_s] * rounds), make_result(physx, *[physx_s] * rounds)]


def the_pair(results: list[CaseResult]) -> StackPair:
    (pair,) = stack_pairs(Campaign.from_results(results))
    return pair


def test_the_parts_of_both_add_up_to_their_iterations_and_to_the_difference() -> None:
    pair = the_pair(one_gpu(0.5, 1.0))
    for side, time_s in ((pair.base, 0.5), (pair.case, 1.0)):
        assert side.iteration_time_s == pytest.approx(time_s)
        assert sum(side.parts_s.values()) == pytest.approx(time_s)
    assert sum(pair.longer_s.values()) == pytest.approx(0.5)
    assert pair.base.reward is not None


def test_a_case_of_several_machines_is_said_once_with_what_the_others_found() -> None:
    slower, faster, lost = (the_pair(one_gpu(0.5, physx_s)) for physx_s in (1.0, 0.4, 0.4))
    lost = replace(lost, ratio=replace(lost.ratio, over_base=None))
    first = stack_in_words(slower)
    assert cases_in_words([slower]) == cases_in_words([lost, slower]) == [first]
    assert cases_in_words([slower, faster]) == [f"{first} On another machine it takes 20.0 % shorter (20.0 to 20.0 %)."]
    (said,) = cases_in_words([slower, faster, slower])
    assert said.startswith(f"{first} On 2 other machines it takes 20.0 % shorter")
    assert said.count(" and ") == first.count(" and ") + 1
    _, on_two_gpus = stack_pairs(Campaign.from_results(stack_results()))
    assert cases_in_words([slower, on_two_gpus, faster])[1:] == [stack_in_words(on_two_gpus)]


def test_a_stack_that_failed_has_no_parts_and_says_so() -> None:
    newton, physx = one_gpu(0.5, 1.0)
    crashed = failed_result(physx.case, outcome="crashed", reason="generated")
    pair = the_pair([newton, crashed])
    assert (pair.case.iteration_time_s, pair.case.reward, pair.speed) == (None, None, "too few runs")
    assert pair.longer_s == {}
    assert "did not both complete" in stack_in_words(pair)
    row = parts_of_stacks([pair], label="generated").text.splitlines()[2]
    assert set(row.split("\t")[1:]) == {"n/a"}


def test_one_round_is_not_called_slower() -> None:
    said = stack_in_words(the_pair(one_gpu(0.5, 1.0, rounds=1)))
    assert "100.0 % longer" in said
    assert said.endswith("too few runs.")


def test_a_campaign_of_stacks_on_one_gpu_shows_its_table_and_nothing_of_scaling(tmp_path: Path) -> None:
    version = read_version(write_results(one_gpu(0.5, 1.0), tmp_path / "one"), name="v")
    shown = summary.answers(version).text
    assert "cartpole-physics/rsl_rl-ovphysx-n4096-1x1\tPhysX (no Isaac Sim)\t" in shown
    assert "Efficiency" not in shown
    assert "nothing is known of scaling" in summary.verdicts(version).text
    page = section(version, "Cartpole", "cartpole-physics", series_parts()).text
    assert "Speed-up" not in page
    assert "nothing can be said of how it scales" in page
    assert "100.0 % longer" in stacks_of(version.series("cartpole-physics")).text
    assert "nothing to choose from" in choosing.in_short(version).text
    assert "cartpole-physics: rsl_rl, ovphysx" in choosing.rewards(version).text
    several = read_version(write_results(stack_results(), tmp_path / "several"), name="v")
    assert "Efficiency" in summary.answers(several).text
    assert "cartpole-physics: rsl_rl, ovphysx" in choosing.in_short(several).text
    assert "Speed-up" in section(several, "Cartpole", "cartpole-physics", series_parts()).text


def test_the_page_of_stacks_opens_with_how_much_longer_iterations_take(tmp_path: Path) -> None:
    version = read_version(write_results(one_gpu(1.0, 1.5), tmp_path), name="v")
    said = pairs_page.stacks_answer(version).text
    assert "50.0 % longer" in said
    assert "1 of them is surely slower" in said


def test_other_cases_on_one_gpu_are_not_hidden_behind_pairs_of_stacks(tmp_path: Path) -> None:
    alone = make_result(make_case("ant-weak", scaling="weak", num_envs_global=1024, device="cuda"), 0.5)
    version = read_version(write_results([*one_gpu(0.5, 1.0), alone], tmp_path), name="v")
    assert "ant-weak: rsl_rl" in summary.answers(version).text


def test_one_number_of_ranks_has_no_efficiency(tmp_path: Path) -> None:
    """The page once showed 100 % at 1 rank and a verdict."""
    version = read_version(write_results([one_gpu(0.5, 1.0)[0]], tmp_path), name="v")
    shown = summary.answers(version).text
    assert "nothing is known of scaling" in shown
    assert "within noise" not in shown
    assert "too few runs" not in shown
    assert stacks_of(version.series("cartpole-physics")).text == ""


@pytest.mark.parametrize("name", ["h200-physx", "h200-physx-rsl"])
def test_physx_in_git_takes_longer_than_newton_mostly_in_physics(name: str) -> None:
    campaign = committed_set(name).campaign
    pairs = [pair for name in campaign.series_names for pair in stack_pairs(campaign.series(name))]
    assert [pair.case.case.series for pair in pairs] == ["ant-physics", "cartpole-physics"]
    for pair in pairs:
        assert pair.speed == "slower"
        assert max(pair.longer_s, key=pair.longer_s.__getitem__) == "physics"


def test_a_series_of_one_number_of_ranks_is_not_said_to_scale() -> None:
    """Its page said "weak scaling", and named ideal lines that one point does not have."""
    one = Campaign.from_results(one_gpu(0.5, 1.0))
    facts = series_tables.series_facts(one.rows).text
    assert facts.endswith("minibatch rule fixed_minibatch, on 1x1 nodes x ranks.")
    assert "scaling" not in facts
    assert not isinstance(throughput(one), Figure)
    (case,) = {result.case for result in one.results if result.case.stack == "kitless"}
    two = replace(case, case_id=f"{case.case_id}-two", nproc_per_node=2, num_envs_global=2 * case.num_envs)
    several = Campaign.from_results([make_result(case, 0.5), make_result(two, 0.5)])
    assert series_tables.series_facts(several.rows).text.startswith("Weak scaling of ")
    drawn = throughput(several)
    assert isinstance(drawn, Figure)
    assert "ideal scaling" in drawn.caption
