"""What is said of cores: on generated rounds of known iterations."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from suite.schema.record import RankRecord, RunRecord
from suite.statistics.core_speed import (
    MIN_AT_FULL_SPEED,
    SLOWED,
    FullSpeed,
    at_full_speed,
    core_speed,
    fastest_probes_s,
    fastest_rank_probes_s,
)
from suite.statistics.reduce import counted_iterations, round_time_s
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
    found = core_speed([record], fastest_probes_s([record]))
    assert found is not None
    assert found.slowed_share == pytest.approx(0.5, abs=0.05)
    assert (found.unslowed_iteration_s, found.slowed_iteration_s) == (1.0, 1.4)
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


def timed(times_s: Sequence[float], *probes_s: Sequence[float | None]) -> RunRecord:
    """A round in which every fourth iteration is marked, with these probes of each rank."""
    case = replace(CASE, nproc_per_node=len(probes_s), num_envs=128 // len(probes_s), iterations=len(times_s))
    record = make_record(case, iteration_time_s=[1.0] * len(probes_s))
    marked = tuple(float(index % 4 == 2) for index in range(len(times_s)))
    ranks = tuple(
        replace(
            rank, samples={"iteration_time_s": tuple(times_s), "marked": marked, "core_probe_time_s": tuple(column)}
        )
        for rank, column in zip(record.ranks, probes_s, strict=True)
    )
    return replace(record, ranks=ranks)


def full(*records: RunRecord) -> FullSpeed | None:
    return at_full_speed(records, fastest_rank_probes_s(records))


def test_iterations_between_fast_probes_make_the_figure_at_full_core_speed() -> None:
    """A probe after every iteration; the core is slow in 12 of every 20 iterations, which take longer."""
    record = timed(([1.0] * 8 + [1.4] * 12) * 4, ([FAST_S] * 8 + [SLOW_S] * 12) * 4)
    counted = counted_iterations(record)
    assert round_time_s(record) == pytest.approx((18 * 1.0 + 30 * 1.4) / 48)  # of 16 to 79 without the marked ones
    fast = [index for index in counted if 1 <= index % 20 < 8]  # the first of each stretch had a slow probe before it
    assert full(record) == FullSpeed(counted=len(counted), iterations=len(fast), iteration_s=1.0)


def test_the_iteration_in_which_a_core_changes_its_speed_is_left_out() -> None:
    """One slow probe spoils the iteration before it and the one after it."""
    spoilt = [FAST_S] * 40
    spoilt[21] = SLOW_S
    quiet, changed = full(timed([1.0] * 40, [FAST_S] * 40)), full(timed([1.0] * 40, spoilt))
    assert quiet is not None
    assert changed is not None
    assert quiet.iterations == quiet.counted
    assert changed.iterations == changed.counted - 1  # iteration 22 is marked and does not count anyway
    spoilt[21], spoilt[24] = FAST_S, SLOW_S
    again = full(timed([1.0] * 40, spoilt))
    assert again is not None
    assert again.iterations == again.counted - 2  # 24 and 25


def test_every_rank_must_have_had_a_fast_core_by_its_own_fastest_probe() -> None:
    """Rank 1 sits on a core that is always slower; only its own probes say when it is at full speed."""
    own = ([SLOW_S] * 8 + [1.5 * SLOW_S] * 12) * 4
    record = timed(([1.0] * 8 + [1.4] * 12) * 4, [FAST_S] * 80, own)
    counted = counted_iterations(record)
    fast = [index for index in counted if 1 <= index % 20 < 8]
    assert full(record) == FullSpeed(counted=len(counted), iterations=len(fast), iteration_s=1.0)
    faster_elsewhere = timed([1.0] * 40, [FAST_S] * 40, [FAST_S] * 40)
    known = at_full_speed([record], fastest_rank_probes_s([record, faster_elsewhere]))
    assert known == FullSpeed(counted=len(counted), iterations=0, iteration_s=None)


@pytest.mark.parametrize(("fast", "iterations"), [(12, MIN_AT_FULL_SPEED), (11, MIN_AT_FULL_SPEED - 1)])
def test_too_few_iterations_at_full_speed_have_no_figure_but_a_count(fast: int, iterations: int) -> None:
    found = full(timed([1.0] * 40, [SLOW_S] * (40 - fast) + [FAST_S] * fast))
    assert found is not None
    assert found.iterations == iterations
    assert found.iteration_s == (1.0 if iterations == MIN_AT_FULL_SPEED else None)
