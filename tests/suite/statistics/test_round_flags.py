"""Flags on the rounds of a case: two groups, a drift; and that a usual case has none."""

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from suite.schema.observations import Spread, TelemetrySummary
from suite.schema.record import CheckResult, CheckVerdict, RunRecord
from suite.statistics.round_flags import bimodal, drifting, flags, trend_p_value
from tests.fixtures.results.generated_results import make_case, make_record


def test_what_ranks_warn_of_is_a_flag_for_each_kind_of_fault() -> None:
    def of(verdict: CheckVerdict, found: str, fault: str | None) -> CheckResult:
        return CheckResult(name="some_check", feature="gpus", verdict=verdict, found=found, fault=fault)

    def round_with(number: int, *checks: CheckResult) -> RunRecord:
        record = make_record(make_case(), index=number)
        return replace(record, ranks=(replace(record.ranks[0], validity=checks), *record.ranks[1:]))

    misplaced, late = of("warning", "it is on GPU 0", "on_other"), of("warning", "it is late", "late")
    fine = of("ok", "all is well", None)
    assert flags([round_with(0, fine), round_with(1)]) == ()
    assert flags([round_with(0, misplaced, fine), round_with(1), round_with(2, misplaced, late)]) == (
        "runs 0, 2: rank 0 says of some_check: it is on GPU 0",
        "run 2: rank 0 says of some_check: it is late",
    )


@pytest.mark.parametrize("size", [5, 10])
def test_a_normal_series_is_seldom_called_bimodal(size: int) -> None:
    generator = random.Random(size)  # noqa: S311  (the same numbers every time)
    flagged = sum(bimodal([1 + 0.05 * generator.gauss(0, 1) for _ in range(size)]) is not None for _ in range(1000))
    assert flagged < 30


@pytest.mark.parametrize("size", [4, 5])
def test_the_p_value_is_that_of_all_permutations(size: int) -> None:
    """Counted by hand: how many of all orders are at least as far from no trend, on either side."""

    def inversions(order: tuple[int, ...]) -> int:
        return sum(a > b for a, b in itertools.combinations(order, 2))

    orders = list(itertools.permutations(range(size)))
    pairs = size * (size - 1) // 2
    for order in orders:
        extreme = min(inversions(order), pairs - inversions(order))
        as_far = sum(inversions(other) <= extreme for other in orders)
        assert trend_p_value(order) == pytest.approx(min(1.0, 2 * as_far / len(orders)))


@pytest.mark.parametrize(
    ("times_s", "flag"),
    [
        ([1.0, 1.101, 1.001, 1.1, 0.999, 1.102], "bimodal: 3 runs around 1 s and 3 around 1.101 s (+10.1%)"),
        ([1.0, 1.009, 1.0, 1.009, 1.0, 1.009], None),  # a gap that does not matter
        ([1.0] * 6, None),
        ([1.0, 1.01, 1.02, 1.03, 1.04], "drifting: +3.9% from the first run to the last"),
        ([1.10, 1.08, 1.09, 1.05, 1.03, 1.0], "drifting: -"),
        ([1.0, 1.001, 1.002, 1.003, 1.004], None),  # a trend that does not matter
        ([1.0, 1.05, 0.95, 1.05, 1.0], None),  # a change without order
    ],
)
def test_groups_and_drifts_are_told_if_they_matter(times_s: list[float], flag: str | None) -> None:
    flagged = " ".join(filter(None, (bimodal(times_s), drifting(times_s))))
    assert flag in flagged if flag else not flagged


@pytest.mark.parametrize(
    ("column", "percents", "named"),
    [
        ("host_stolen_percent", (0.1, 0.5, None, 3.0), "15.0%"),  # of the 20 % that was wanted
        ("host_others_percent", (0.7, 49.4, None, 5.1), "49%"),
    ],
)
def test_rounds_whose_machine_was_short_of_cpu_time_are_named(
    column: str, percents: tuple[float | None, ...], named: str
) -> None:
    def seen(percent: float | None) -> TelemetrySummary:
        stolen = percent is not None and column == "host_stolen_percent"
        value: Any = Spread(min=0.0, mean=percent or 0.0, max=50.0) if stolen else percent
        summary = TelemetrySummary(
            window_start_unix_s=0.0, window_s=10.0, rate_hz=5.0, num_samples=50,
            host_cpu_percent=Spread(min=10.0, mean=20.0, max=50.0),
        )  # fmt: skip
        return replace(summary, **{column: value})

    records = [make_record(make_case(), index=index, iteration_time_s=1.0) for index in range(4)]
    watched = [replace(record, telemetry=seen(value)) for record, value in zip(records, percents, strict=True)]
    (flag,) = flags(watched)
    assert flag.startswith("runs 1, 3: ")
    assert named in flag
    assert flags(watched[:1]) == flags(watched[2:3]) == flags(records) == ()
