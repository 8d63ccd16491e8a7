"""Rounds in turns beside rounds that run alone: differences, cost and the page."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import geometric_mean

import pytest

from reports.sets.version import read_version
from reports.topics.trust import turns_page as turns
from reports.topics.trust.turns_page import TurnsCheck, mean_ratio, pooled, turns_check
from suite.records.folders import ALONE
from suite.schema.case_suffixes import ALONE_SUFFIX
from suite.schema.record import CaseResult, RunRecord
from suite.schema.turns import TurnsTaken
from suite.statistics.reduce import iteration_times_s
from suite.statistics.turns_check import is_alone, measured_both_ways, with_copies
from tests.fixtures.results.generated_results import make_case, make_record, on_gpus, write_results

BEGIN = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
CASES = [make_case("ant-turns", num_envs_global=size, scaling="weak") for size in (64, 128)]
WALL_S = 60.0


def result(times_s: Sequence[float], *, place: int, in_turns: bool) -> CaseResult:
    """A case or its copy: rounds of ten minutes, in which all in turns start together and those alone one by one."""
    case, copy = with_copies([CASES[place]])
    beside = TurnsTaken(beside=tuple(one.case_id for one in CASES if one != case), turns=3, turn_s=2.5)
    records: list[RunRecord] = []
    for index, time_s in enumerate(times_s):
        start = BEGIN + timedelta(minutes=10 * index, seconds=0 if in_turns else 120 + WALL_S * place)
        record = make_record(case if in_turns else copy, index=index, iteration_time_s=time_s)
        timed = replace(record, started_utc=start.isoformat(timespec="seconds"), wall_time_s=WALL_S)
        records.append(replace(timed, turns=beside if in_turns else None))
    return CaseResult(case=records[0].case, rounds=tuple(records), ended_because="for a test")


def results_of(turning_s: Sequence[float], alone_s: Sequence[float]) -> list[CaseResult]:
    return [
        result(times_s, place=place, in_turns=in_turns)
        for place in range(len(CASES))
        for times_s, in_turns in ((turning_s, True), (alone_s, False))
    ]


def checked(turning_s: Sequence[float], alone_s: Sequence[float]) -> TurnsCheck:
    found = turns_check(measured_both_ways(results_of(turning_s, alone_s)))
    assert found is not None
    return found


def test_equal_times_are_within_the_noise() -> None:
    found = checked([1.0, 1.1, 0.9], [0.9, 1.0, 1.1])
    assert [case.case_id for case in found.cases] == [case.case_id for case in CASES]
    assert found.over_all.value == pytest.approx(1.0)
    assert all(case.is_within_noise for case in found.cases)


def test_a_slower_way_is_outside_the_noise() -> None:
    found = checked([1.2, 1.21, 1.22], [1.0, 1.01, 1.02])
    assert found.over_all.value == pytest.approx(geometric_mean([1.2, 1.21, 1.22]) / geometric_mean([1.0, 1.01, 1.02]))
    assert [case.is_within_noise for case in found.cases] == [False, False]


def test_two_processes_each_way_have_no_verdict() -> None:
    found = checked([1.0, 1.1], [1.0, 1.1])
    assert {case.is_within_noise for case in found.cases} == {None}


def test_a_block_is_paid_for_once() -> None:
    found = checked([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    assert found.alone_minutes == pytest.approx(WALL_S / 60)
    assert found.in_turns_minutes == pytest.approx(WALL_S / 60 / len(CASES))
    assert found.cost == pytest.approx(1 / len(CASES))


def test_turns_cannot_cost_less_than_the_iterations() -> None:
    results = results_of([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    found = turns_check(measured_both_ways(results))
    assert found is not None
    assert found.least_cost == pytest.approx(sum(iteration_times_s(results[1].rounds[0])) / WALL_S)
    assert found.cost is not None
    assert found.least_cost is not None
    assert found.least_cost < found.cost


def test_turns_that_other_cases_took_too_have_no_cost_to_compare() -> None:
    results = results_of([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    found = turns_check(measured_both_ways(results[:2]))  # of the two cases in each block, one
    assert found is not None
    assert (found.in_turns_minutes, found.cost) == (None, None)
    assert found.alone_minutes == pytest.approx(WALL_S / 60)


def test_rounds_that_ran_alone_in_spite_of_the_plan_do_not_count() -> None:
    original, copy = results_of([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])[:2]
    crowded = replace(original, rounds=(replace(original.rounds[0], turns=None), *original.rounds[1:]))
    (pair,) = measured_both_ways([crowded, copy])
    assert len(pair.in_turns.rounds) == 2
    assert measured_both_ways([original]) == ()


def test_rounds_are_compared_within_their_set_only() -> None:
    """The second machine is twice as slow, and had more rounds in turns than alone."""
    machines = [([1.0, 1.1, 0.9], [1.0, 1.1, 0.9]), ([2.4, 2.2, 2.64, 2.4], [2.0, 2.2, 1.8])]
    both = [pair for times_s in machines for pair in measured_both_ways(results_of(*times_s))]
    found = pooled(both)
    assert [case.case_id for case in found] == sorted(case.case_id for case in CASES)
    assert {(case.sets, case.in_turns_rounds, case.alone_rounds, case.gpu) for case in found} == {(2, 7, 6, None)}
    expected = math.sqrt(geometric_mean(machines[1][0]) / geometric_mean(machines[1][1]))
    assert [case.ratio.value for case in found] == pytest.approx([expected] * 2)
    assert mean_ratio(both).value == pytest.approx(expected)
    assert [case.is_within_noise for case in found] == [True, True]


def test_gpu_models_are_not_pooled_and_one_set_is_not_repeated() -> None:
    plain, on_others = (
        results_of([1.0, 1.1, 0.9], [1.0, 1.1, 0.9]),
        on_gpus(results_of([1.2, 1.3, 1.1], [1.0, 1.1, 0.9])),
    )
    assert pooled([*measured_both_ways(plain), *measured_both_ways(on_others)]) == ()


def test_the_page_says_the_answer(tmp_path: Path) -> None:
    both = on_gpus(results_of([1.2, 1.21, 1.22], [1.0, 1.01, 1.02]))
    write_results([one for one in both if not is_alone(one.case)], tmp_path / "cases")
    write_results([one for one in both if is_alone(one.case)], tmp_path / ALONE)
    version = read_version(tmp_path, name="test")
    assert turns.has_check(version)
    said = turns.check(version).text
    answer = turns.answer(version).text
    assert answer.startswith("Over all cases an iteration takes 19.8 % more time in turns than alone (")
    assert answer.endswith(" %). 2 of 2 cases are outside the noise.")
    assert "Over all cases an iteration takes 19.8 % more time in turns than alone (" in said
    assert "2 of 2 cases are outside the noise" in said
    assert "0.50 times as much. It cannot be less than 0." in said
    assert ALONE_SUFFIX not in said
