"""What worked, told from records: each part has its own evidence, and nothing that failed has only good marks."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from suite.records.worked import Part, State, what_worked
from suite.schema.record import CaseResult, CheckResult, CheckVerdict, Outcome, RankRecord, RunRecord
from tests.fixtures.results.generated_results import failed_result, make_case, make_record, make_result

ONE, TWO = (make_case("shadow-horizontal", world_size=ranks, scaling="weak") for ranks in (1, 2))


def check(feature: str, verdict: CheckVerdict = "ok") -> CheckResult:
    return CheckResult(name=feature, feature=feature, verdict=verdict, found="x", fault=None)


def checked(record: RunRecord, *checks: CheckResult) -> RunRecord:
    return replace(record, ranks=tuple(replace(rank, validity=checks) for rank in record.ranks))


def parts_of(*records: RunRecord) -> dict[Part, State]:
    (worked,) = what_worked([CaseResult(case=record.case, rounds=(record,)) for record in records])
    return dict(worked.parts)


def with_last_rank(record: RunRecord, **changes: object) -> RunRecord:
    *others, last = record.ranks
    changed: RankRecord = replace(last, **changes)  # type: ignore[arg-type]
    return replace(record, ranks=(*others, changed))


def states(physics: State, rendering: State, learning: State, gradients: State) -> dict[Part, State]:
    return {
        "physics": physics,
        "rendering": rendering,
        "trains": learning,
        "equal gradients": gradients,
    }


def test_everything_works() -> None:
    records = [checked(make_record(case), check("physics"), check("cameras")) for case in (ONE, TWO)]
    assert parts_of(*records) == states("works", "works", "works", "works")
    (worked,) = what_worked([CaseResult(case=record.case, rounds=(record,)) for record in records])
    assert (worked.ranks, worked.failed) == ((1, 2), ())


def test_a_task_without_a_camera_draws_nothing_and_one_rank_exchanges_nothing() -> None:
    assert parts_of(checked(make_record(ONE), check("physics"))) == states("works", "none", "works", "none")


@pytest.mark.parametrize(
    ("checks", "part"),
    [
        ((check("physics", "failure"), check("cameras")), "physics"),
        ((check("physics"), check("cameras", "failure")), "rendering"),
        ((check("physics"), check("cameras"), check("learning", "failure")), "trains"),
    ],
)
def test_a_check_that_failed_fails_its_part_alone(checks: Sequence[CheckResult], part: Part) -> None:
    good = checked(make_record(ONE), check("physics"), check("cameras"))
    bad = replace(checked(make_record(ONE), *checks), outcome="invalid", reason="x")
    for records in ((bad,), (good, bad), (bad, good)):
        assert [name for name, state in parts_of(*records).items() if state == "failed"] == [part]


def test_ranks_that_ended_with_different_parameters() -> None:
    bad = replace(with_last_rank(make_record(TWO), parameters_sha256="00" * 32), outcome="invalid", reason="x")
    assert parts_of(bad)["equal gradients"] == "failed"
    assert parts_of(bad)["trains"] == "works"


@pytest.mark.parametrize("outcome", ["crashed", "oom", "hung", "timeout", "lost", "invalid"])
def test_what_did_not_complete_never_has_good_marks_only(outcome: Outcome) -> None:
    result = failed_result(TWO, outcome=outcome, reason="made up")
    (worked,) = what_worked([result])
    assert worked.parts["trains"] == "failed"
    assert (worked.ranks, worked.failed) == ((), result.rounds)


def test_controls_and_what_was_never_tried_have_no_row() -> None:
    control = make_result(replace(ONE, workload="environment_step"), 0.5)
    skipped = failed_result(make_case("ant-weak", world_size=4), outcome="skipped", reason="needs 4 cores")
    assert what_worked([control, skipped]) == ()
