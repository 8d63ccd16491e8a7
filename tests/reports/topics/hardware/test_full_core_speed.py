"""Cases that several machines measured, and what the page of machines says of them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.topics.hardware import page as machines
from reports.topics.hardware.full_core_speed import SharedCase, shared_cases
from reports.topics.hardware.page import how_far_apart
from suite.schema.record import Case, CaseResult, RunRecord
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import make_case, make_record

CASE = make_case("ant-weak", scaling="weak", num_envs_global=1024, device="cuda", iterations=40)
FAST_S, SLOW_S = 1.0e-4, 1.9e-4


def measured(label: str, *parts: tuple[int, float, float | None], case: Case = CASE) -> CaseResult:
    """One round: so many iterations of so many seconds each, with this probe after each."""
    times_s = tuple(time_s for count, time_s, _ in parts for _ in range(count))
    probes_s = tuple(probe_s for count, _, probe_s in parts for _ in range(count))
    marked = tuple(float(index % 4 == 2) for index in range(len(times_s)))
    record = make_record(case, iteration_time_s=[1.0])
    samples = {"iteration_time_s": times_s, "marked": marked, "core_probe_time_s": probes_s}
    made: RunRecord = replace(
        record,
        ranks=(replace(record.ranks[0], samples=samples),),
        environment=replace(record.environment, host_label=label),
    )
    return CaseResult(case=case, rounds=(made,))


def shared(*results: CaseResult) -> Sequence[SharedCase]:
    return shared_cases(results)


QUIET = measured("quiet", (40, 1.0, FAST_S))
NOISY = measured("noisy", *[(8, 1.1, FAST_S), (16, 2.0, SLOW_S)] * 4)
NOISY_S = (18 * 1.1 + 39 * 2.0) / 57  # of the last 76 iterations of 96 those without marks


def test_machines_are_compared_as_measured_and_at_full_core_speed() -> None:
    (found,) = shared(NOISY, QUIET)
    assert [machine.label for machine in found.machines] == ["quiet", "noisy"]
    assert [machine.iteration_s for machine in found.machines] == pytest.approx([1.0, NOISY_S])
    assert [machine.full_s for machine in found.machines] == pytest.approx([1.0, 1.1])
    assert [machine.fastest_probe_s for machine in found.machines] == [FAST_S, FAST_S]
    assert found.apart == pytest.approx(NOISY_S)
    assert found.both == pytest.approx((NOISY_S, 1.1))


def test_a_machine_without_a_figure_at_full_speed_is_shown_and_not_compared() -> None:
    older = measured("older", (40, 3.0, None))
    (found,) = shared(NOISY, QUIET, older)
    assert found.apart == pytest.approx(3.0)
    assert [machine.full for machine in found.machines if machine.label == "older"] == [None]
    assert found.both == pytest.approx((NOISY_S, 1.1))
    (found,) = shared(QUIET, older)
    assert found.both is None


def test_other_seeds_lengths_and_series_are_the_same_case_and_other_work_is_not() -> None:
    series = replace(CASE, series="ant-physics", case_id="ant-physics/x", seed=7, iterations=60)
    assert len(shared(QUIET, measured("noisy", (60, 2.0, FAST_S), case=series))) == 1
    larger = replace(CASE, minibatch_size=2 * CASE.minibatch_size)
    assert shared(QUIET, measured("noisy", (40, 2.0, FAST_S), case=larger)) == ()
    tuned = replace(CASE, division="open")
    assert shared(*(measured(label, (40, 1.0, FAST_S), case=tuned) for label in ("a", "b"))) == ()


def test_what_ran_on_another_kind_of_gpu_is_not_compared() -> None:
    (record,) = NOISY.rounds
    gpus = tuple(replace(gpu, name="Another Accelerator") for gpu in record.environment.gpus)
    other = replace(record, environment=replace(record.environment, gpus=gpus))
    assert shared(QUIET, replace(NOISY, rounds=(other,))) == ()


def test_the_fastest_probe_of_a_machine_is_that_of_all_its_cases() -> None:
    other = replace(CASE, task="Isaac-Cartpole-Direct", case_id="cartpole/x")
    slow = measured("noisy", (40, 2.0, SLOW_S))
    (alone,) = shared(QUIET, slow)
    assert [machine.full_s for machine in alone.machines] == [1.0, 2.0]
    (found,) = shared(QUIET, slow, measured("noisy", (40, 1.0, FAST_S), case=other))
    assert [machine.full_s for machine in found.machines] == [1.0, None]


def test_the_sentence_says_whether_machines_come_closer() -> None:
    closer = how_far_apart(shared(NOISY, QUIET))
    assert CASE.case_id in closer
    assert "1.72 times as long as measured and 1.10 times at full core speed" in closer
    assert "closer in 1 of 1" in closer
    assert "a probability of 50%" in closer
    often = how_far_apart([*shared(NOISY, QUIET)] * 5)
    assert often.endswith("they come closer in 5 of 5. So full core speed brings machines closer.")
    odd = measured("odd", *[(8, 3.0, FAST_S), (16, 1.0, SLOW_S)] * 4)
    further = how_far_apart(shared(QUIET, odd))
    assert further.endswith("they come closer in 0 of 1. So full core speed does not bring machines closer.")
    unknown = how_far_apart(shared(measured("a", (40, 1.0, None)), measured("b", (40, 2.0, None))))
    assert unknown.endswith("No two machines have figures of one case at full core speed.")


def test_the_page_shows_the_machines_of_the_version_in_git() -> None:
    text = machines.core_speed(committed_version()).text
    name = committed_version().machine_names["H200 host O"]
    begins = f"ant-weak/rl_games-kitless-n1024-1x1\t{name}\t"
    (host_o,) = (line for line in text.splitlines() if line.startswith(begins))
    assert host_o.split("\t")[2:] == ["3", "0.130", "125,944", "0.114", "143,892", "40 of 108", "87"]
    assert "takes up to 2.17 times as long as the quickest (ant-weak/rl_games-kitless-n1024-1x1)" in text
    assert "come closer in 6 of 10. So full core speed does not bring machines closer." in text


def test_a_version_of_one_machine_has_nothing_to_compare() -> None:
    version = committed_version()
    one = replace(version, sets=tuple(each for each in version.sets if each.name == "h200-x4-full"))
    assert machines.core_speed(one).text == "No case ran on several machines with one kind of GPU."
