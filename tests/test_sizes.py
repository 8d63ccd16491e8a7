"""How many environments, in sweeps whose answer can be worked out by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from reports.findings import fillings
from reports.inside import part_shares
from reports.result_sets import read_version
from reports.sizes import NEAR_MOST, SizeChoice, size_choices
from tests.generated_results import failed_result, make_case, make_result, sweep_results


def sweep_of(times_s: Mapping[int, Sequence[float]]) -> SizeChoice:
    (found,) = size_choices(
        [make_result(make_case("ant-envs", scaling="weak", num_envs_global=n), *own) for n, own in times_s.items()]
    )
    return found


def test_the_fewest_near_the_most_are_enough() -> None:
    (found,) = size_choices(sweep_results())
    # Environments over time: 10240, 18618, 27307 and 27307; of two that are equal the first is the most.
    assert [round(size.of_most.value, 3) for size in found.sizes] == [0.375, 0.682, 1.0, 1.0]
    assert (found.enough.number, found.enough.word) == (4096, "decided")
    assert found.who == "rsl_rl, kitless"


def test_near_enough_is_enough() -> None:
    steady = (1.0, 1.0, 1.0)
    found = sweep_of({100: steady, 200: [200 / 192] * 3, 400: [2.0] * 3})
    assert [round(size.of_most.value, 2) for size in found.sizes] == [0.5, 0.96, 1.0]
    assert (found.enough.number, found.enough.word) == (200, "decided")


@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_a_smaller_number_that_may_be_enough_makes_it_inconclusive(spread: float) -> None:
    share = 0.94  # just below the rule, so a spread over the rounds reaches across it
    assert share < NEAR_MOST < share * 1.05
    times_s = [1 / share * (1 + spread * step) for step in (-1, 0, 1)]
    found = sweep_of({100: times_s, 200: [2.0] * 3})
    assert found.enough.number == 200
    assert found.enough.word == ("inconclusive" if spread else "decided")


def test_one_round_decides_nothing() -> None:
    (found,) = size_choices(sweep_results(rounds=1))
    assert (found.enough.number, found.enough.word) == (4096, "inconclusive")
    assert "too few rounds" in found.enough.reason


def test_sizes_that_failed_are_named_and_one_alone_is_no_choice() -> None:
    case = make_case("ant-envs", scaling="weak", num_envs_global=16384, device="cuda")
    failed = failed_result(case, outcome="oom", reason="generated")
    (found,) = size_choices([*sweep_results(), failed])
    assert found.failed == (case.case_id,)
    assert size_choices([sweep_results()[0], failed]) == ()


def test_what_the_readme_says_of_ants_environments_holds() -> None:
    root = Path(__file__).resolve().parents[1]
    sets = read_version(root / "reports" / "results" / "2026.11", name="v").sets
    (sweep,) = (one.campaign for one in sets if one.name == "h200-ant-sweep")
    (filling,), (choice,) = fillings(sweep), size_choices(sweep.results)
    *_, half, most = choice.sizes
    assert (2 * half.num_envs, most.of_most.value, {one.rounds for one in choice.sizes}) == (most.num_envs, 1.0, {3})
    assert half.of_most.interval is not None
    (busy,) = (one.busy_percent for one in filling if one.num_envs == most.num_envs)
    (largest,) = (result for result in sweep.results if result.case.case_id == most.case_id)
    low, high = (100 * end for end in half.of_most.interval)
    said = " ".join((root / "README.md").read_text().split())
    assert (
        f"Ant, learning included, makes {choice.sizes[0].total_fps:,.0f} frames per second with "
        f"{choice.sizes[0].num_envs} environments and {most.total_fps:,.0f} with {most.num_envs}, where learning is "
        f"{100 * part_shares(largest.completed)['learning']:.0f} % of an iteration and the GPU still runs a kernel "
        f"{busy:.0f} % of the time; half as many environments make {100 * half.of_most.value:.0f} % of that "
        f"({low:.0f} to {high:.0f} at 95 %;"
    ) in said
