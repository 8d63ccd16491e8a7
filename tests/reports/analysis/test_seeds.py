"""Runs of several seeds, the references made of them, and measured rounds beside both."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.analysis.seeds import Size, seeds
from reports.sets.version import Version, read_version
from reports.site.contents import page_sources
from reports.topics.tuning import learning_page as learning
from reports.topics.tuning.learning_references import least_rewards
from suite.matrix.catalog import LearningReference
from suite.schema.record import Case, CaseResult
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import (
    failed_result,
    held_to_a_reference,
    make_case,
    make_result,
    on_gpus,
    write_results,
)

CASE = make_case("ant-weak", iterations=10)
RATES = {1: 1.0, 2: 1.1, 3: 1.2, 4: 1.3, 5: 1.4}  # by seed
ALONE = "Isaac-Reorient-Cube-Shadow-Camera-Direct"  # whose ranks each train the network that reads their pictures
REFERENCE = LearningReference(
    stack=CASE.stack,
    frames_per_iteration=CASE.frames_per_iteration,
    optimiser_steps=CASE.optimiser_steps,
    iterations=10,
    reward_at_least=6.0,
    source="a test",
)


def learned(case: Case, rate: float) -> CaseResult:
    """The reward is the rate times the number of the iteration, from 0: 7 times the rate at the end."""
    (record,) = make_result(case, 0.5).rounds
    rewards = tuple(rate * index for index in range(record.ranks[0].num_iterations))
    ranks = tuple(replace(rank, samples={**rank.samples, "reward_mean": rewards}) for rank in record.ranks)
    return CaseResult(case=case, rounds=(replace(record, ranks=ranks),))


def known(_: Case) -> Sequence[LearningReference]:
    return [REFERENCE, REFERENCE.model_copy(update={"frames_per_iteration": 1})]


def test_a_reference_stands_beside_its_seeds_and_the_measured_rounds_of_its_size() -> None:
    runs = [learned(replace(CASE, seed=seed), rate) for seed, rate in ((2, 1.0), (1, 1.5))]
    other_size = replace(CASE, case_id="ant-weak/other", optimiser_steps=2 * CASE.optimiser_steps)
    assert Size.of(other_size) != Size.of(CASE)
    measured = [learned(CASE, 0.8), learned(CASE, 0.8), learned(CASE, 2.0), learned(other_size, 9.0)]
    (found,) = seeds(runs, measured, known)
    assert list(found.curves) == [1, 2]
    assert found.curves[2] == tuple(map(float, range(10)))
    (judged,) = found.judged  # that of the other size is not
    assert judged.seed_rewards == {1: (10.5,), 2: (7.0,)}
    assert judged.measured == pytest.approx((5.6, 14.0))
    assert judged.measured_below == 1


def test_the_page_opens_with_how_many_rewards_lie_below_their_reference() -> None:
    assert re.fullmatch(
        r"\d+ runs of several seeds say what a sound run learns in \d+ sizes\. Of \d+ rewards of measured rounds none"
        r" is lower than that\.",
        learning.answer(committed_version()).text,
    )


def test_a_run_below_the_reference_is_one_of_those_that_a_reference_is_held_to() -> None:
    """Such rounds are invalid. The page once showed completed rounds alone, so none could be below."""
    low = held_to_a_reference(learned(CASE, 0.5))
    (found,) = seeds([learned(CASE, 1.0), replace(low, case=replace(CASE, seed=2))], [low], known)
    (judged,) = found.judged
    assert judged.seed_rewards == {CASE.seed: (7.0,), 2: (3.5,)}
    assert (judged.measured, judged.measured_below) == ((3.5,), 1)


def test_a_round_that_ended_before_has_no_reward_there() -> None:
    short = learned(make_case("ant-weak", iterations=9), 1.0)
    (found,) = seeds([learned(CASE, 1.0)], [short, failed_result(CASE, outcome="oom", reason="x")], known)
    assert found.judged[0].measured == ()
    assert seeds([failed_result(CASE, outcome="oom", reason="x")], [], known) == ()


def test_one_rank_stands_for_several_only_where_ranks_learn_together() -> None:
    two = replace(CASE, nproc_per_node=2)
    assert Size.of(two) == Size.of(CASE)
    assert Size.of(replace(two, task=ALONE)) != Size.of(replace(CASE, task=ALONE))


def of_two_ranks(result: CaseResult, second: float) -> CaseResult:
    """The result with a second rank, whose rewards are ``second`` times those of the first."""
    (record,), case = result.rounds, replace(result.case, nproc_per_node=2)
    (first,) = record.ranks
    rewards = tuple(second * (reward or 0.0) for reward in first.samples["reward_mean"])
    other = replace(first, rank=1, samples={**first.samples, "reward_mean": rewards})
    return CaseResult(case=case, rounds=(replace(record, case=case, ranks=(first, other)),))


def test_every_page_takes_the_mean_over_ranks() -> None:
    """The page's table once took rank 0; its figure and the page Findings took the mean."""
    runs = [of_two_ranks(learned(replace(CASE, seed=seed), rate), 2.0) for seed, rate in RATES.items()]
    (found,) = seeds(runs, [of_two_ranks(learned(CASE, 0.8), 2.0)], known)
    (judged,) = found.judged
    assert judged.seed_rewards == {seed: pytest.approx((1.5 * 7 * rate,)) for seed, rate in RATES.items()}
    assert judged.seed_rewards == {seed: pytest.approx((curve[7],)) for seed, curve in found.curves.items()}
    assert judged.measured == pytest.approx((1.5 * 5.6,))
    (least,) = least_rewards(runs, [10]).values()
    assert least == pytest.approx(1.5 * 7 * (2 * RATES[1] - RATES[5]))


def test_other_assets_are_not_held_to_what_was_learned_on_the_usual_ones() -> None:
    """No round of them is checked, and yet the page had them below the reference."""
    official = replace(CASE, assets="official")
    (found,) = seeds([learned(CASE, 1.0), learned(official, 9.0)], [learned(official, 0.1)], known)
    assert (found.judged[0].seed_rewards, found.judged[0].measured) == ({CASE.seed: (7.0,)}, ())


def test_the_page_says_by_which_of_its_runs_a_seed_counts() -> None:
    """The page once named the worst and best runs, from which the tables' figures give other references."""
    runs = [learned(replace(CASE, seed=seed), RATES[seed]) for seed in RATES]
    again = learned(replace(CASE, seed=5), 1.05)  # seed 5's worst, so the best that counts is seed 4's
    assert least_rewards([*runs, again], [10]) == least_rewards([*runs[:4], again], [10])
    (least,) = least_rewards([*runs, again], [10]).values()
    assert least == pytest.approx(7 * (1.0 - (1.3 - 1.0)))
    said = learning.rule().text
    assert "counts once, by the worst of its runs" in said
    assert "cannot test it" in said


def test_every_run_of_a_seed_counts() -> None:
    """Runs after the first of a seed that ran on several machines were once omitted silently."""
    runs = [learned(replace(CASE, seed=seed), rate) for seed, rate in ((1, 1.0), (2, 1.5), (1, 0.5))]
    (found,) = seeds(runs, [], known)
    assert found.judged[0].seed_rewards == {1: (7.0, 3.5), 2: (10.5,)}
    assert (found.num_runs, len(found.curves)) == (3, 2)


@pytest.fixture
def version(tmp_path: Path) -> Version:
    for seed, rate in ((1, 1.0), (2, 1.5)):
        write_results(on_gpus([learned(replace(CASE, seed=seed), rate)]), tmp_path / f"seed-{seed}")
    write_results(on_gpus([learned(CASE, 0.8)]), tmp_path / "measured")
    entries = [f'[[set]]\nfolder = "seed-{seed}"\ntitle = "Seed {seed}"\nrole = "learning"\n' for seed in (1, 2)]
    (tmp_path / "report.toml").write_text("".join(entries))
    return read_version(tmp_path, name="v")


def test_sets_of_seeds_have_a_page_and_are_no_series(version: Version, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.name for one in version.scaling] == ["measured"]
    assert "learning" in page_sources(version)
    monkeypatch.setattr("suite.matrix.catalog.Catalog.learning_references", lambda *_: known(CASE))
    lines = learning.runs(version).text.splitlines()
    assert any("2 seeds" in line for line in lines)
    assert "10\t7\t8.75\t10.5\t6\t5.6\t1" in lines
    assert "seed 1: 9; seed 2: 13.5" in learning.runs(version).text


def test_no_two_sizes_have_one_heading(tmp_path: Path) -> None:
    """Runs on PhysX once had the same heading as those on Newton."""
    cases = (CASE, replace(CASE, stack="ovphysx"), replace(CASE, optimiser_steps=CASE.optimiser_steps + 1))
    for number, case in enumerate(cases):
        write_results(on_gpus([learned(case, 1.0)]), tmp_path / f"{number}")
    entries = [f'[[set]]\nfolder = "{number}"\ntitle = "{number}"\nrole = "learning"\n' for number in range(3)]
    (tmp_path / "report.toml").write_text("".join(entries))
    lines = learning.runs(read_version(tmp_path, name="v")).text.splitlines()
    headings = [line for line in lines if line.endswith(("optimiser step", "optimiser steps"))]
    assert len(set(headings)) == len(headings) == len(cases)


def test_no_two_sizes_of_one_set_have_one_figure(tmp_path: Path) -> None:
    """Two stacks in one set and series had figures of one id, so a link to the second led to the first."""
    cases = (CASE, replace(CASE, case_id="ant-weak/other", stack="ovphysx"))
    write_results(on_gpus([learned(case, 1.0) for case in cases]), tmp_path / "both")
    (tmp_path / "report.toml").write_text('[[set]]\nfolder = "both"\ntitle = "Both"\nrole = "learning"\n')
    ids = re.findall(r'<figure[^>]* id="([^"]+)"', learning.runs(read_version(tmp_path, name="v")).markup)
    assert len(set(ids)) == len(ids) == len(cases)


def test_a_size_without_a_reference_says_so(version: Version, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.matrix.catalog.Catalog.learning_references", lambda *_: ())
    assert "no reference of this size" in learning.runs(version).text


def test_without_seeds_there_is_no_page(tmp_path: Path) -> None:
    version = read_version(write_results(on_gpus([learned(CASE, 1.0)]), tmp_path), name="v")
    assert "learning" not in page_sources(version)
