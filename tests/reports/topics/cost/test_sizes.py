"""How many environments, in sweeps whose answer can be worked out by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from reports.topics.cost.sizes import NEAR_MOST, Failed, SizeChoice, size_choices
from suite.schema.record import Outcome
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, sweep_results


def sweep_of(times_s: Mapping[int, Sequence[float]]) -> SizeChoice:
    (found,) = size_choices(
        [make_result(make_case("ant-envs", scaling="weak", num_envs_global=n), *own) for n, own in times_s.items()]
    )
    return found


def test_the_fewest_near_the_most_are_enough() -> None:
    (found,) = size_choices(sweep_results())
    # Environments over time: 10240, 18618, 27307 and 27307; of two that are equal the first is the most.
    assert [round(size.of_most.value, 3) for size in found.sizes] == [0.375, 0.682, 1.0, 1.0]
    assert (found.enough.number, found.enough.word) == (4096, "clear")
    assert found.who == "rsl_rl, kitless"


def test_twins_and_controls_are_no_sizes() -> None:
    twin = make_result(make_case("ant-envs", scaling="weak", num_envs_global=8192, variant="aa"), 1.0, 1.0, 1.0)
    control = make_case("ant-envs", scaling="weak", num_envs_global=16384, workload="environment_step")
    (found,) = size_choices([*sweep_results(), twin, make_result(control, 1.0, 1.0, 1.0)])
    assert [found] == [*size_choices(sweep_results())]


def test_near_enough_is_enough() -> None:
    found = sweep_of({100: [1.0] * 3, 200: [200 / 192] * 3, 400: [2.0] * 3})
    assert [round(size.of_most.value, 2) for size in found.sizes] == [0.5, 0.96, 1.0]
    assert (found.enough.number, found.enough.word) == (200, "clear")


@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_a_smaller_number_that_may_be_enough_leaves_it_within_noise(spread: float) -> None:
    share = 0.94  # just below the rule, so a spread over the rounds reaches across it
    assert share < NEAR_MOST < share * 1.05
    times_s = [1 / share * (1 + spread * step) for step in (-1, 0, 1)]
    found = sweep_of({100: times_s, 200: [2.0] * 3, 400: [4.0] * 3})
    assert found.enough.number == 200
    assert found.enough.word == ("within noise" if spread else "clear")


def test_one_round_decides_nothing() -> None:
    (found,) = size_choices(sweep_results(rounds=1))
    assert (found.enough.number, found.enough.word) == (4096, "within noise")
    assert "too few rounds" in found.enough.reason


def test_sizes_that_failed_are_named_and_one_alone_is_no_choice() -> None:
    case = make_case("ant-envs", scaling="weak", num_envs_global=16384, device="cuda")
    failed = failed_result(case, outcome="oom", reason="generated")
    (found,) = size_choices([*sweep_results(), failed])
    assert found.failed == (Failed(case_id=case.case_id, num_envs=16384, outcome="oom"),)
    assert size_choices([sweep_results()[0], failed]) == ()


RISING = [make_result(make_case("ant-envs", scaling="weak", num_envs_global=n), 1.0, 1.0, 1.0) for n in (100, 200)]


def test_where_throughput_still_rises_the_most_is_not_known() -> None:
    (found,) = size_choices(RISING)
    assert (found.enough.number, found.enough.word) == (200, "within noise")
    assert found.enough.reason == "throughput still rises at 200, the most that ran"
    (once,) = size_choices([replace(result, rounds=result.rounds[:1]) for result in RISING])
    assert once.enough.reason == (
        "too few rounds for an interval, which needs 3; throughput still rises at 200, the most that ran"
    )


@pytest.mark.parametrize(("outcome", "word"), [("oom", "clear"), ("crashed", "within noise")])
def test_memory_that_ran_out_beyond_decides_it_and_a_crash_does_not(outcome: Outcome, word: str) -> None:
    case = make_case("ant-envs", scaling="weak", num_envs_global=400)
    (found,) = size_choices([*RISING, failed_result(case, outcome=outcome, reason="generated")])
    assert (found.enough.number, found.enough.word) == (200, word)
    assert found.enough.reason.endswith("and 400 ran out of memory") is (outcome == "oom")


def test_fewer_that_ran_out_of_memory_say_nothing_of_more() -> None:
    case = make_case("ant-envs", scaling="weak", num_envs_global=150)
    (found,) = size_choices([*RISING, failed_result(case, outcome="oom", reason="another process had the GPU")])
    assert found.enough.word == "within noise"
