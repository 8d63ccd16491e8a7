from dataclasses import replace
from pathlib import Path

import pytest

from reports.sets import interference
from reports.sets.interference import ORDER, judged, verdict
from suite.errors import StoreError
from suite.schema.case_suffixes import PROBE_SUFFIX
from suite.schema.record import RunRecord
from tests.fixtures.results.generated_results import make_case, make_record

RESULTS = Path(__file__).resolve().parents[3] / "reports" / "results" / "2026.11"
CASE = "cartpole-strong/rl_games-kitless-n8192-1x1"
QUIET = (1.0, 1.002, 0.999, 1.001, 1.0, 0.998)
NOISY = (1.0, 1.04, 1.0, 1.04, 1.0, 1.04)  # its halves differ by 4 %


def test_equal_times_allow_packing() -> None:
    found = verdict(CASE, QUIET, QUIET, [3] * 6)
    assert found.packed
    assert (found.difference, found.interval) == (0.0, (0.0, 0.0))
    assert found.tolerance == 0.01
    assert str(found).startswith(f"Cases run side by side: {CASE} takes +0.0% longer beside others (+0.0% to +0.0% at")


@pytest.mark.parametrize(
    ("factor", "packed"), [(1.009, True), (0.991, True), (1.011, False), (1.1, False), (0.9, False)]
)
def test_on_a_quiet_host_the_precision_of_a_median_decides(factor: float, packed: bool) -> None:
    found = verdict(CASE, (1.0,) * 6, (factor,) * 6)
    assert found.packed is packed
    assert found.difference == pytest.approx(factor - 1)
    assert found.noise_budget == 0.0
    assert str(found).startswith("Cases run side by side: " if packed else "One after another: ")


def test_on_a_noisy_host_its_own_noise_decides() -> None:
    shifted = [time_s * change for time_s, change in zip(NOISY, (1.03, 1.03, 1.03, 1.02, 0.99, 1.03), strict=True)]
    found = verdict(CASE, NOISY, shifted)
    assert found.noise_budget == pytest.approx(0.04)
    assert found.difference == pytest.approx(0.03)
    assert found.packed
    assert not verdict(CASE, QUIET, shifted).packed


def test_a_shift_that_every_pair_shows_is_no_noise() -> None:
    found = verdict(CASE, NOISY, [1.03 * time_s for time_s in NOISY])
    assert found.difference is not None
    assert found.tolerance is not None
    assert found.difference < found.tolerance
    assert not found.packed
    assert "and that in all pairs" in found.reason


def test_a_difference_that_is_not_sure_does_not_allow_packing() -> None:
    """An uncertain difference proves nothing, so cases run one after another."""
    found = verdict(CASE, (1.0,) * 6, (0.9, 1.1, 1.1, 1.1, 0.9, 1.1))
    assert found.interval == pytest.approx((-0.1, 0.1))
    assert not found.packed


def rounds(*times_s: float) -> list[RunRecord]:
    """The first of a test, in the order in which they run."""
    case = replace(make_case("cartpole-strong"), case_id=CASE + PROBE_SUFFIX)
    return [make_record(case, index=index, iteration_time_s=time_s) for index, time_s in enumerate(times_s)]


@pytest.mark.parametrize(
    ("beside_s", "is_settled"),
    [
        ((1.1, 1.2, 1.3), True),
        ((1.1, 1.2, 0.9), False),  # one pair says otherwise
        ((1.002, 1.002, 1.002), False),  # less than means anything
        ((0.5, 0.5, 0.5), False),  # a gain is looked at to the end
    ],
)
def test_half_of_the_test_can_refuse_and_never_allow(beside_s: tuple[float, ...], is_settled: bool) -> None:
    first, second, third = beside_s
    times_s = (1.0, first, second, 1.0, 1.0, third)
    assert list(ORDER[:6]) == [False, True, True, False, False, True]
    assert interference.is_settled(rounds(*times_s)) is is_settled
    assert not any(interference.is_settled(rounds(*times_s[:number])) for number in range(6))
    found = judged(rounds(*times_s))
    assert found.interval is None
    assert not (is_settled and found.packed)
    if is_settled:
        assert "takes +20.0% longer beside others (in each of the first 3 pairs), more than the" in found.reason


def test_the_test_ends_with_its_last_round_and_with_one_that_fails() -> None:
    assert interference.is_settled(rounds(*(1.0,) * 12))
    assert not interference.is_settled(rounds(*(1.0,) * 11))
    failed = make_record(rounds(1.0)[0].case, index=1, outcome="crashed", reason="a fault")
    assert interference.is_settled([*rounds(1.0), failed])
    assert judged([*rounds(1.0), failed]).reason == "round 1 of the interference test is crashed: a fault"
    with pytest.raises(ValueError, match="zip"):
        judged(rounds(*(1.0,) * 11))


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"packed": true, "reason": "x", "colour": "red"}'])
def test_a_damaged_verdict_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "packing.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=r"packing\.json is not readable: .*Take it anew from"):
        interference.read(path)
