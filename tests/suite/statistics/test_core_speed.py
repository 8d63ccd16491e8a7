"""What is said of cores: on generated rounds of known iterations."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from suite.schema.record import RankRecord, RunRecord
from suite.statistics.core_speed import (
    SLOWED,
    core_speed,
    fastest_probes_s,
)
from tests.fixtures.results.generated_results import make_case, make_record

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
    speed = core_speed([record], fastest_probes_s([record]))
    assert speed is not None
    assert speed.slowed / speed.looks == pytest.approx(0.5, abs=0.05)
    assert speed.slower_by == pytest.approx(0.4)


def test_a_case_that_never_had_a_fast_core_is_told_by_the_others_of_its_host() -> None:
    slow = a_round(*[SLOW_S] * 12)
    alone = core_speed([slow], fastest_probes_s([slow]))
    assert alone is not None
    assert alone.slowed == 0
    speed = core_speed([slow], fastest_probes_s([slow, a_round(*[FAST_S] * 12)]))
    assert speed is not None
    assert speed.slowed == speed.looks == alone.looks
    assert speed.slower_by is None
