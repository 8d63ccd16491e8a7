"""References are computed from runs with several seeds, and hold those runs to nothing they did not reach."""

import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main as session
from reports.figures.learning_references import Size, catalog_lines, least_rewards
from suite.errors import UsageError
from suite.files.paths import ROOT
from suite.matrix.catalog import AgentEntry, load_catalog
from suite.records.checks import check_learning
from suite.records.store import load_results
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import held_to_a_reference, make_case, make_record, write_results

FINAL = {1: 5.0, 2: 5.5, 3: 6.0, 4: 5.25, 5: 5.75}  # reward by seed


def run(seed: int, *, reward: float | None, iterations: int = 20, **changes: Any) -> CaseResult:
    """The reward rises by 1 in each iteration, up to ``reward``."""
    case = make_case(iterations=iterations, seed=seed, **changes)
    record = make_record(case)
    rewards = tuple(None if reward is None else min(reward, float(index)) for index in range(iterations))
    ranks = tuple(replace(rank, samples={**rank.samples, "reward_mean": rewards}) for rank in record.ranks)
    return CaseResult(case=case, rounds=(replace(record, ranks=ranks),))


def runs() -> list[CaseResult]:
    return [run(seed, reward=reward) for seed, reward in FINAL.items()]


@pytest.mark.parametrize(
    ("results", "least"),
    [
        ([*runs(), run(1, reward=4.5)], 3.0),  # a seed counts by its worst run
        ([run(1, reward=4.5), *runs()], 3.0),
        # Invalid for its reward alone; left out, a reference could only rise.
        ([*runs(), held_to_a_reference(run(1, reward=4.5))], 3.0),
        ([*runs(), held_to_a_reference(run(1, reward=4.5), also="bodies_fell")], 4.0),
        # What is tuned, of other assets or a control is no reference.
        ([*runs(), run(1, reward=1.0, division="open")], 4.0),
        ([*runs(), run(1, reward=1.0, assets="official")], 4.0),
        ([*runs(), run(1, reward=1.0, workload="environment_step")], 4.0),
        # Seeds that lie close together leave a tenth of the best.
        ([run(seed, reward=reward) for seed, reward in enumerate((8.0, 8.0, 8.0, 8.0, 7.9))], 7.1),
    ],
)
def test_the_worst_run_of_each_seed_counts(results: list[CaseResult], least: float) -> None:
    assert list(least_rewards(results, [20]).values()) == pytest.approx([least])


def test_the_catalog_takes_what_is_printed_and_judges_by_it() -> None:
    text = "\n".join(catalog_lines(least_rewards(runs(), [20, 5]), source="a test"))
    case = make_case(iterations=20)
    (agents,) = tomllib.loads(text)["tasks"].values()
    entry = agents["agents"][case.rl_library]
    references = AgentEntry(num_steps_per_env=16, minibatch_size=128, learning_epochs=5, **entry).learning_references
    assert [(item.iterations, item.reward_at_least) for item in references] == [(5, 1.8), (20, 4.0)]
    verdicts = [check_learning(case, [reward] * 20, references).verdict for reward in (*FINAL.values(), 3.9)]
    assert verdicts == ["ok"] * len(FINAL) + ["failure"]


@pytest.mark.parametrize(
    ("results", "why"),
    [
        (runs()[:4], "4 of 4 seeds with a reward at iteration 20"),
        ([*runs()[:4], run(1, reward=9.0)], "4 of 4 seeds"),  # the same seed twice is no other run
        ([*runs(), run(1, reward=None)], "4 of 5 seeds"),  # and once without a reward is without
        ([*runs(), run(6, reward=None)], "5 of 6 seeds"),
        ([run(1, reward=1.0, iterations=19)], "no run has 20 iterations"),
        ([], "no run has 20 iterations"),
    ],
)
def test_too_little_is_refused(results: list[CaseResult], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        least_rewards(results, [20])


def test_the_command_reads_a_folder_for_each_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(write_results([result], tmp_path / str(result.case.seed))) for result in runs()]
    assert session("learning_references", [*folders, "--at", "20", "--source", "seeds of a test"]) == 0
    output = capsys.readouterr().out
    assert "iterations = 20, reward_at_least = 4.0000" in output
    assert 'source = "seeds of a test"' in output
    assert session("learning_references", [*folders, "--at", "20", "--case", "ant-open/*"]) == UsageError.exit_code
    assert session("learning_references", [folders[0], "--at", "20"]) == UsageError.exit_code


def test_the_catalog_says_what_its_sources_do() -> None:
    """Every reference is computed again from the results in git that it names, separated by spaces, ``*`` allowed."""
    results_of = cache(load_results)
    held = []
    for task, entry in load_catalog().tasks.items():
        for library, agent in entry.agents.items():
            for reference in agent.learning_references:
                folders = [folder for pattern in reference.source.split() for folder in sorted(ROOT.glob(pattern))]
                assert folders, reference.source
                results = [result for folder in folders for result in results_of(folder)]
                work = reference.world_size, reference.frames_per_iteration, reference.optimiser_steps
                size = Size(task, library, reference.stack, *work, reference.iterations)
                of_size = [result for result in results if Size.of(result.case, reference.iterations) == size]
                (least,) = least_rewards(of_size, [reference.iterations]).values()
                assert reference.reward_at_least == pytest.approx(least, abs=1e-4)
                held.append(size)
    assert held
