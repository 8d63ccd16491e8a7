"""What the verifier asks of the times of one rank."""

import pytest

from reports.verification.samples.rank_samples import check_between

ITERATION_S = 0.5


def found(gaps_s: list[float]) -> list[str]:
    """What is found in iterations of ``ITERATION_S`` with these gaps after each but the last."""
    starts_s = [0.0]
    for gap_s in gaps_s:
        starts_s.append(starts_s[-1] + ITERATION_S + gap_s)
    findings = check_between("case.json", "round 0, rank 0", starts_s, [ITERATION_S] * len(starts_s))
    return [str(finding) for finding in findings]


def test_what_a_library_sets_up_after_the_first_iteration_may_take_long() -> None:
    assert found([0.4, 0.01, 0.01]) == []


@pytest.mark.parametrize("gaps_s", [[0.01, 0.4, 0.01], [0.0, -0.2, 0.0]])
def test_time_that_is_missing_or_too_much_later_is_found(gaps_s: list[float]) -> None:
    (finding,) = found(gaps_s)
    assert "the share of its time between iterations" in finding


def test_two_iterations_leave_no_time_to_compare() -> None:
    assert found([0.4]) == []
