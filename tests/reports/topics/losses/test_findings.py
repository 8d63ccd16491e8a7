"""What results say together, on GENERATED results whose answer is known, and what the page makes of those in git."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.analysis.analysed_set import Campaign
from reports.analysis.seeds import seeds
from reports.display.topic import read_text
from reports.sets.manifest import MANIFEST
from reports.sets.version import Version, read_version
from reports.site import pages
from reports.topics.losses import findings
from reports.topics.losses import findings_page as page
from reports.topics.results.page import caution
from suite.schema.record import CaseResult
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import (
    full_results,
    make_case,
    make_result,
    node_results,
    smoke_results,
    stack_results,
    sweep_results,
    write_results,
)


@pytest.fixture(scope="module")
def committed() -> Version:
    return committed_version()


def elsewhere(result: CaseResult, label: str) -> CaseResult:
    """The result from another machine, measured alone."""
    return replace(
        result,
        rounds=tuple(
            replace(record, environment=replace(record.environment, host_label=label)) for record in result.rounds
        ),
    )


def test_splits_are_of_the_fewest_and_the_most_gpus_and_add_up() -> None:
    found = findings.splits(Campaign.from_results(full_results()))
    assert [split.case_id for split in found if split.case_id.startswith("cartpole")] == [
        f"cartpole-strong/{library}-kitless-n8192-1x{gpus}" for library in ("rl_games", "rsl_rl") for gpus in (1, 8)
    ]
    for split in found:
        assert split.rollout + split.learning + (split.between_ranks or 0) == pytest.approx(1)
        assert (split.between_ranks is None) == split.case_id.endswith("1x1")
    alone, eight = found[0], found[1]
    # Generated: 70 % collection and 29 % learning, of which 10 % of the iteration is all-reduce on several ranks.
    assert alone.learning == pytest.approx(0.29, abs=0.011)
    assert eight.learning == pytest.approx(0.19, abs=0.02)
    assert (alone.busy_percent, alone.power_w) == (None, None)  # no sampler, which is not 0


def test_splits_leave_out_sweeps_and_nodes_that_are_emulated_or_real() -> None:
    assert findings.splits(Campaign.from_results(sweep_results())) == ()
    ids = [split.case_id for split in findings.splits(Campaign.from_results(node_results()))]
    assert [case_id.rpartition("-")[2] for case_id in ids] == ["1x1", "1x4"]


def test_stacks_are_not_the_ends_of_one_curve() -> None:
    ids = [split.case_id for split in findings.splits(Campaign.from_results(stack_results()))]
    assert len(ids) == 4


def test_a_gpu_fills_with_environments() -> None:
    other = [
        replace(result, case=replace(result.case, rl_library="skrl", case_id=f"{result.case.case_id}-skrl"))
        for result in sweep_results()[:2]
    ]
    found, of_other = findings.fillings(Campaign.from_results([*other, *sweep_results()][::-1]))
    assert [one.of_most["total"] for one in of_other] == [pytest.approx(0.55, rel=0.01), pytest.approx(1)]
    assert [one.num_envs for one in found] == [1024, 2048, 4096, 8192]
    most = 4096 * 16 / 0.15
    assert found[0].fps["total"] == pytest.approx(1024 * 16 / 0.10, rel=0.01)
    assert found[0].of_most["total"] == pytest.approx(1024 * 16 / 0.10 / most, rel=0.01)
    assert found[2].of_most["total"] == pytest.approx(1, rel=0.01)
    assert found[0].fps["step"] == pytest.approx(2 * found[0].fps["total"])  # half of an iteration is steps


def test_half_of_the_most_is_not_said_to_need_the_fewest_that_ran(tmp_path: Path) -> None:
    whole = page.sizes(read_version(write_results(sweep_results(), tmp_path / "whole"), name="v")).text
    assert "half of the most needs 2,048" in whole
    most = sweep_results()[2:]
    few = page.sizes(read_version(write_results(most, tmp_path / "few"), name="v")).text
    assert "half of the most needs" not in few
    assert "the fewest that ran have half of the most already" in few


def test_places_are_compared_by_all_of_their_rounds() -> None:
    case = make_case("ant-weak", scaling="weak", device="cuda")
    here = [elsewhere(make_result(case, 0.2, 0.2, 0.2), "here"), elsewhere(make_result(case, 0.4, 0.4), "here")]
    there = elsewhere(make_result(case, 0.4), "there")
    (found,) = findings.places_of_cases([*here, there])
    assert (found.quickest, found.slowest) == ("here", "there")
    assert found.ratio == pytest.approx(2)
    assert findings.places_of_cases(here) == ()
    other_gpu = replace(
        there,
        rounds=tuple(
            replace(
                record,
                environment=replace(
                    record.environment, gpus=tuple(replace(gpu, name="Another") for gpu in record.environment.gpus)
                ),
            )
            for record in there.rounds
        ),
    )
    assert findings.places_of_cases([*here, other_gpu]) == ()


def test_a_place_that_others_may_have_used_is_never_the_slow_one(tmp_path: Path) -> None:
    case = make_case("ant-weak", scaling="weak", device="cuda")
    here, there = elsewhere(make_result(case, 0.2), "here"), elsewhere(make_result(case, 0.4), "there")
    assert findings.places_of_cases([here, there], {"there"}) == ()  # others may be all that makes it slow
    assert findings.places_of_cases([here, there], {"here", "there"}) == ()
    (found,) = findings.places_of_cases([here, there], {"here"})
    assert (found.quickest, found.is_least) == ("here", True)
    assert found.ratio == pytest.approx(2)
    (alone,) = findings.places_of_cases([here, there])
    assert not alone.is_least
    for name, result in (("here", here), ("there", there)):
        write_results([result], tmp_path / name)
    (tmp_path / MANIFEST).write_text('[[set]]\nfolder = "here"\nshared_machine = "unknown"\n')
    said = page.places(read_version(tmp_path, name="v")).text
    assert "In 1 of them other runs may have used the quickest machine at the same time" in said
    assert ", 10:00 (perhaps beside others)" in said


def test_learning_in_strong_scaling_is_of_fixed_minibatches_alone() -> None:
    (rl_games, rsl_rl) = findings.learned_in_strong_scaling(Campaign.from_results(full_results()))
    assert [one.world_size for one in rl_games] == [one.world_size for one in rsl_rl] == [1, 2, 4, 8]
    updates = [
        replace(result, case=replace(result.case, minibatch_rule="fixed_updates"))
        for result in full_results()
        if result.case.scaling == "strong"
    ]
    assert findings.learned_in_strong_scaling(Campaign.from_results(updates)) == ()
    silent = [
        replace(
            result,
            rounds=tuple(
                replace(
                    record,
                    ranks=tuple(
                        replace(rank, samples={**rank.samples, "reward_mean": (None,) * result.case.iterations})
                        for rank in record.ranks
                    ),
                )
                for record in result.rounds
            ),
        )
        for result in full_results()
    ]
    assert findings.learned_in_strong_scaling(Campaign.from_results(silent)) == ()


def test_other_seeds_of_as_many_frames_and_steps_stand_beside_strong_scaling() -> None:
    results = full_results()
    (curve, _) = findings.learned_in_strong_scaling(Campaign.from_results(results))
    assert {each.of_seeds for each in curve} == {()}
    measured = next(result for result in results if result.case.case_id == curve[1].case_id)
    case = measured.case
    cases = [replace(case, seed=case.seed + number, device="cpu") for number in range(3)]
    others = [CaseResult(case=each, rounds=measured.rounds) for each in cases]
    ended = [
        replace(rank, samples={**rank.samples, "reward_mean": rank.samples["reward_mean"][:-1]})
        for rank in measured.rounds[0].ranks
    ]
    shorter = replace(case, seed=case.seed + 3, iterations=case.iterations - 1)
    others.append(CaseResult(case=shorter, rounds=(replace(measured.rounds[0], ranks=tuple(ended)),)))
    ((_, two, *_), _) = findings.learned_in_strong_scaling(
        Campaign.from_results(results), seeds(others, (), lambda _: ())
    )
    assert list(two.of_seeds) == pytest.approx([two.reward] * 2, rel=0.1)  # neither its own seed nor a shorter run


def test_one_other_seed_is_its_own_worst_median_and_best(tmp_path: Path) -> None:
    """One other seed once stopped every page of the report."""
    results = full_results()
    (curve, _) = findings.learned_in_strong_scaling(Campaign.from_results(results))
    measured = next(result for result in results if result.case.case_id == curve[1].case_id)
    other = CaseResult(case=replace(measured.case, seed=measured.case.seed + 1), rounds=measured.rounds)
    version = read_version(write_results(results, tmp_path), name="v")
    seen = replace(version.sets[0], name="seeds", role="learning", campaign=Campaign.from_results([other]))
    text = page.learning(replace(version, sets=(*version.sets, seen))).text
    row = next(line for line in text.splitlines() if line.startswith(measured.case.case_id))
    assert re.search(r"\t(\S+), \1, \1 of 1$", row)


def test_the_page_says_of_results_in_git_what_their_rounds_say(committed: Version) -> None:
    sweep = next(one.campaign for one in committed.sets if one.name == "h200-x2-envs")
    ((first, *_, last),) = findings.fillings(sweep.series("cartpole-envs"))
    said = page.sizes(committed).text
    assert f"from {first.fps['step']:,.0f} a second with 1,024 environments to {last.fps['step']:,.0f}" in said
    splits = [split for one in committed.scaling for split in findings.splits(one.campaign)]
    alone = [split for split in splits if split.between_ranks is None]
    half = sum(split.learning > 0.5 for split in alone)
    assert f"more than half in {half} of {len(alone)} cases" in page.iterations(committed).text
    places = page.places(committed).text
    names = committed.machine_names
    assert f"ant-weak/rl_games-kitless-n1024-1x1\t{names['H200 host M']}\t" in places
    beside = names["H200 x4 virtual machine, 16 CPU cores per GPU, up to 4 cases side by side"]
    assert f"{beside} (perhaps beside others)" in places
    assert f"{names['H200 host N']} (perhaps beside others)" not in places
    assert "H200 host" not in places  # the label says nothing to a reader
    assert "After 60 iterations of as many frames" in page.learning(committed).text
    assert "\t312\t255\t104 µs\t31% longer (median of 4 cases)" in page.cores(committed).text


def test_the_page_says_what_differs_between_places(committed: Version) -> None:
    """Rounds that show what is learned are of other seeds than those of the series."""
    alone = [
        (result.case.case_id, result.case.seed)
        for one in committed.sets
        if one.shared_machine != "yes"
        for result in one.campaign.results
        if result.completed
    ]
    compared = {one.case_id for one in findings.places_of_version(committed)}
    assert any(len({seed for case_id, seed in alone if case_id == each}) > 1 for each in compared)
    assert "Numbers of iterations, threads and seeds may differ" in read_text("findings")


def test_series_that_vary_stacks_are_not_said_to_scale(committed: Version) -> None:
    assert any("physics" in split.case_id for one in committed.scaling for split in findings.splits(one.campaign))
    assert "In series that vary GPUs or stacks, on one GPU" in page.iterations(committed).text


def test_of_many_sets_the_first_page_says_once_that_cores_were_slowed(committed: Version) -> None:
    said = caution(committed).text
    assert f"In {len(committed.slowed_cores)} of {committed.totals.sets} sets cores were shared or slowed" in said
    assert "marked iterations" not in said
    one = replace(committed, sets=tuple(each for each in committed.sets if each.name == "h200-x4-full"))
    assert "255 of 312 marked iterations" in caution(one).text


def test_a_version_without_gpus_has_no_such_page_and_one_with_them_says_what_it_lacks(tmp_path: Path) -> None:
    on_cpu = read_version(write_results(smoke_results(), tmp_path / "cpu"), name="v")
    assert "findings" not in pages.page_sources(on_cpu)
    few = [make_result(make_case("ant-weak", world_size=2, scaling="weak", device="cuda"), 0.3)]
    version = read_version(write_results(few, tmp_path / "gpu"), name="v")
    assert "findings" in pages.page_sources(version)
    said = [getattr(page, name)(version).text for name in ("iterations", "sizes", "places", "cores", "learning")]
    assert all(sentence.startswith(("No ", "Nothing ")) for sentence in said)
