"""Deterministic cases beside those as shipped, of GENERATED results. Real ones: ``test_shared_gpu``, on the CPU."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reports.display.topic import has_speeds
from reports.sets.version import Version, read_version
from reports.site.pages import page_sources
from reports.topics.determinism import page
from reports.topics.determinism.model import Repeats, pairs, repeats
from suite.schema.record import Case, CaseResult, RunRecord
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, write_results

SHIPPED = make_case("cartpole-deterministic", device="cuda", scaling="weak")


def deterministic(case: Case = SHIPPED) -> Case:
    return replace(case, case_id=f"{case.case_id}-deterministic", division="open", deterministic=True)


def with_parameters(result: CaseResult, hashes: Sequence[str], *, alike_until: int = 12) -> CaseResult:
    """Runs with these final parameters and with rewards that differ from an iteration on, where they do."""

    def changed(record: RunRecord, parameters_sha256: str) -> RunRecord:
        (rank,) = record.ranks
        rewards = (*([1.0] * alike_until), *([float(record.round)] * (record.case.iterations - alike_until)))
        samples = {**rank.samples, "reward_mean": rewards}
        return replace(record, ranks=(replace(rank, parameters_sha256=parameters_sha256, samples=samples),))

    rounds = tuple(changed(record, one) for record, one in zip(result.rounds, hashes, strict=True))
    return replace(result, rounds=rounds)


def measured() -> list[CaseResult]:
    """All three runs as shipped differ from iteration 4 on; deterministic ones are equal and take twice as long."""
    return [
        with_parameters(make_result(SHIPPED, 0.4, 0.41, 0.39), "abc", alike_until=4),
        with_parameters(make_result(deterministic(), 0.8, 0.82, 0.78), "ddd"),
    ]


def version_of(results: Sequence[CaseResult], folder: Path) -> Version:
    return read_version(write_results(results, folder), name="generated")


def test_the_page_opens_with_the_cost_and_with_how_many_cases_have_equal_runs(tmp_path: Path) -> None:
    version = version_of(measured(), tmp_path)
    said = page.answer(version).text
    assert said.startswith("With deterministic settings an iteration takes 2.00 (")
    assert "With them, runs of one seed are equal bit for bit; as shipped they are not equal" in said
    row = page.sets(version).text.splitlines()[-1].split("\t")
    assert row[1].startswith("0.400 (")
    assert row[-2:] == ["3 runs, 3 results, rewards differ from iteration 4", "3 runs, equal bit for bit"]


def test_runs_that_are_equal_both_ways_are_one_sentence(tmp_path: Path) -> None:
    equal = [with_parameters(make_result(case, 0.4, 0.4), "aa") for case in (SHIPPED, deterministic())]
    said = page.answer(version_of(equal, tmp_path)).text
    assert said.endswith(" With them and as shipped, runs of one seed are equal bit for bit.")


def test_equal_parameters_with_other_rewards_are_not_equal_runs() -> None:
    found = repeats(with_parameters(make_result(SHIPPED, 0.4, 0.4), "aa", alike_until=11))
    assert found == Repeats(runs=2, outcomes=1, differ_from=11)
    assert not found.are_equal


def test_only_runs_of_one_seed_on_one_kind_of_gpu_are_compared() -> None:
    seeds = make_result(replace(SHIPPED, seed_per_round=True), 0.4, 0.4, 0.4)
    assert repeats(seeds) is None
    assert repeats(make_result(SHIPPED, 0.4)) is None
    first, second, third = with_parameters(make_result(SHIPPED, 0.4, 0.4, 0.4), "aba").rounds
    elsewhere = replace(second.ranks[0], settings={**second.ranks[0].settings, "gpu_name": "Another"})
    moved = CaseResult(case=SHIPPED, rounds=(first, replace(second, ranks=(elsewhere,)), third))
    found = repeats(moved)
    assert found is not None
    assert (found.runs, found.are_equal) == (2, True)


def test_a_run_that_stopped_is_listed_and_nothing_is_known_of_the_cost(tmp_path: Path) -> None:
    reason = "RuntimeError: scatter has no deterministic implementation"
    results = [measured()[0], failed_result(deterministic(), outcome="crashed", reason=reason)]
    version = version_of(results, tmp_path)
    assert "so their cost is unknown" in page.answer(version).text
    assert "is unknown: no case has two completed runs" in page.answer(version).text
    assert f"run 0: crashed. {reason}" in page.sets(version).text


def test_runs_that_stopped_for_one_reason_are_one_sentence(tmp_path: Path) -> None:
    failed = failed_result(deterministic(), outcome="crashed", reason="refused")
    again = replace(failed, rounds=(failed.rounds[0], replace(failed.rounds[0], round=1)))
    version = version_of([measured()[0], again], tmp_path)
    assert page.sets(version).text.count("refused") == 1
    assert "runs 0, 1: crashed. refused" in page.sets(version).text


def test_a_case_is_compared_with_nothing_that_differs_in_more(tmp_path: Path) -> None:
    other = replace(SHIPPED, num_envs=2 * SHIPPED.num_envs, num_envs_global=2 * SHIPPED.num_envs_global)
    results = [make_result(other, 0.4), make_result(deterministic(), 0.8)]
    assert pairs(results) == ()
    version = version_of(results, tmp_path)
    assert has_speeds(version)
    assert "determinism" not in page_sources(version)
    assert "determinism" in page_sources(version_of(measured(), tmp_path / "both"))
