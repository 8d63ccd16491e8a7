"""What is said of cores: on generated rounds of known iterations, and on those in git that the limit comes from."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from suite.records.store import load_results
from suite.schema.record import CaseResult, RankRecord, RunRecord
from suite.statistics.core_speed import (
    MIN_LOOKS,
    SLOWED,
    CoreSpeed,
    core_speed,
    fastest_probes_s,
    host_of,
    slowed_cores,
)
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.results.generated_results import make_case, make_record

SWEEP = RESULTS / "h200-x2-envs"
CASE = make_case(device="cuda", iterations=41)
FAST_S, SLOW_S = 1.0e-4, 1.9e-4


def probed(record: RunRecord, *probes_s: Sequence[float | None]) -> RunRecord:
    """A record whose iteration takes 1.4 s instead of 1 s after a slow probe of any rank."""
    times_s = [1.0] * len(probes_s[0])
    for index in range(len(times_s) - 1):
        if any((column[index] or 0.0) > SLOWED * FAST_S for column in probes_s):
            times_s[index + 1] = 1.4

    def changed(rank: RankRecord, column: Sequence[float | None]) -> RankRecord:
        marked = tuple(float(probe_s is not None) for probe_s in column)
        mine = {"iteration_time_s": tuple(times_s), "marked": marked, "core_probe_time_s": tuple(column)}
        return replace(rank, samples={**rank.samples, **mine})

    ranks = tuple(changed(rank, column) for rank, column in zip(record.ranks, probes_s, strict=True))
    return replace(record, ranks=ranks)


def column(*probes_s: float) -> list[float | None]:
    """Marked iterations with these probes, each followed by one without."""
    return [value for probe_s in probes_s for value in (probe_s, None)]


def a_round(*probes_s: float) -> RunRecord:
    case = replace(CASE, iterations=2 * len(probes_s))
    return probed(make_record(case, iteration_time_s=[1.0]), column(*probes_s))


def test_iterations_are_told_apart_by_the_look_before_them() -> None:
    record = a_round(*[FAST_S, SLOW_S] * 12)
    found = core_speed([record], fastest_probes_s([record]))
    assert found is not None
    assert found.slowed_share == pytest.approx(0.5, abs=0.05)
    assert (found.full_speed_iteration_s, found.slowed_iteration_s) == (1.0, 1.4)
    assert found.slower_by == pytest.approx(0.4)


def test_a_case_that_never_had_a_fast_core_is_told_by_the_others_of_its_host() -> None:
    slow = a_round(*[SLOW_S] * 12)
    alone = core_speed([slow], fastest_probes_s([slow]))
    assert alone is not None
    assert alone.slowed == 0
    found = core_speed([slow], fastest_probes_s([slow, a_round(*[FAST_S] * 12)]))
    assert found is not None
    assert found.slowed == found.looks == alone.looks
    assert found.slower_by is None


def test_hosts_have_cores_of_their_own() -> None:
    here, there = a_round(*[SLOW_S] * 12), a_round(*[FAST_S] * 12)
    there = replace(there, environment=replace(there.environment, host_label="another"))
    fastest_s = fastest_probes_s([here, there])
    assert fastest_s == {host_of(here.environment): SLOW_S, host_of(there.environment): FAST_S}
    found = core_speed([here], fastest_s)
    assert found is not None
    assert found.slowed == 0


def test_the_slowest_rank_decides() -> None:
    case = replace(CASE, nproc_per_node=2, num_envs=64, iterations=24)
    record = probed(make_record(case, iteration_time_s=[1.0, 1.0]), column(*[FAST_S] * 12), column(*[SLOW_S] * 12))
    assert fastest_probes_s([record]) == {host_of(record.environment): FAST_S}
    found = core_speed([record], fastest_probes_s([record]))
    assert found is not None
    assert found.slowed == found.looks > 0


def test_too_few_looks_of_a_kind_compare_nothing() -> None:
    record = a_round(*[FAST_S] * 12, *[SLOW_S] * (MIN_LOOKS - 1))
    found = core_speed([record], fastest_probes_s([record]))
    assert found is not None
    assert found.slowed == MIN_LOOKS - 1
    assert (found.slowed_iteration_s, found.slower_by) == (None, None)
    assert found.full_speed_iteration_s == 1.0


def test_rounds_without_probes_and_cpu_ranks_say_nothing() -> None:
    older = make_record(CASE, iteration_time_s=[1.0])
    on_cpu = replace(a_round(*[SLOW_S] * 12), case=replace(CASE, device="cpu", iterations=24))
    for record in (older, on_cpu):
        assert fastest_probes_s([record]) == {}
        assert core_speed([record], {}) is None


def test_the_sentence_counts_looks_and_gives_the_cost() -> None:
    result = CaseResult(case=replace(CASE, iterations=48), rounds=(a_round(*[FAST_S, SLOW_S] * 12),))
    said = slowed_cores([result], fastest_probes_s(result.rounds))
    assert said == (
        "Cores were shared or slowed: after 12 of 23 marked iterations a fixed piece of Python's work took over 1.3 "
        "times as long as at best (100 µs); the next iteration took 40% longer (median of 1 case)."
    )


def test_what_costs_less_than_is_shown_takes_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page said that an iteration took 0% less."""
    result = CaseResult(case=replace(CASE, iterations=48), rounds=(a_round(*[FAST_S, SLOW_S] * 12),))
    for slower_by, words in ((-0.004, "took as long (median of"), (-0.006, "took 1% less"), (0.006, "took 1% longer")):
        monkeypatch.setattr(CoreSpeed, "slower_by", slower_by)
        assert words in str(slowed_cores([result], fastest_probes_s(result.rounds)))


def test_on_quiet_cores_nothing_is_said() -> None:
    result = CaseResult(case=replace(CASE, iterations=48), rounds=(a_round(*[FAST_S] * 24),))
    assert slowed_cores([result], fastest_probes_s(result.rounds)) is None
    assert slowed_cores([], {}) is None


def test_the_limit_lies_between_the_two_groups_of_probes_in_git() -> None:
    """Almost no probes take 1.2 to 1.5 times the fastest, so any limit in that range gives the same answer."""
    results = [*load_results(SWEEP), *load_results(SWEEP / "interference")]
    records = [record for result in results for record in result.completed]
    (fastest_s,) = fastest_probes_s(records).values()
    ratios = [
        probe_s / fastest_s
        for record in records
        for probe_s in record.ranks[0].samples["core_probe_time_s"]
        if probe_s is not None
    ]
    assert len(ratios) > 250
    assert sum(ratio < 1.2 for ratio in ratios) / len(ratios) > 0.2
    assert sum(ratio > 1.5 for ratio in ratios) / len(ratios) > 0.6
    assert sum(1.2 <= ratio <= 1.5 for ratio in ratios) / len(ratios) < 0.04


def test_in_git_an_iteration_goes_with_its_core() -> None:
    (test,) = load_results(SWEEP / "interference")
    found = core_speed(test.completed, fastest_probes_s(test.completed))
    assert isinstance(found, CoreSpeed)
    assert found.looks == 88
    assert found.slower_by == pytest.approx(0.28, abs=0.01)
