import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.topics.history.command import main
from reports.topics.history.comparison import CaseComparison, Comparison, compare
from suite.errors import ReportError, StoreError, UsageError
from suite.schema.record import CaseResult, Outcome, RunRecord
from tests.fixtures.results.generated_results import failed_result, make_case, make_record, make_result, write_results

QUIET = (1.0, 1.002, 1.004, 0.998, 1.001)
NOISY = (1.0, 1.2, 0.8, 1.1, 0.9)


def results(times_s: Sequence[float] = QUIET, *, factor: float = 1.0) -> list[CaseResult]:
    """Two cases, each ``factor`` times ``times_s``."""
    cases = [make_case(world_size=ranks) for ranks in (1, 2)]
    return [make_result(case, *(factor * time_s / case.world_size for time_s in times_s)) for case in cases]


def next_day(found: list[CaseResult]) -> list[CaseResult]:
    """The same, not interleaved with anything, so that nothing can be paired."""
    return changed(
        found, lambda record: replace(record, started_utc=(record.started_utc or "").replace("-21T", "-22T"))
    )


def changed(found: list[CaseResult], change: Callable[[RunRecord], RunRecord]) -> list[CaseResult]:
    return [replace(result, rounds=tuple(change(record) for record in result.rounds)) for result in found]


def elsewhere(found: list[CaseResult], **where: object) -> list[CaseResult]:
    """The same on a machine that differs in ``where``."""
    return changed(
        found,
        lambda record: replace(record, environment=replace(record.environment, **where)),  # type: ignore[arg-type]
    )


def words(comparison: Comparison) -> set[str]:
    return {case.word for case in comparison.cases}


def first(comparison: Comparison) -> CaseComparison:
    return comparison.cases[0]


def test_identical_sets_are_unchanged() -> None:
    found = compare(results(), results())
    assert (words(found), found.exit_code) == ({"unchanged"}, 0)
    change = first(found).change
    assert change is not None
    assert change.value == 0
    assert (found.only_before, found.only_after) == ((), ())


def test_five_per_cent_slower_is_a_regression() -> None:
    found = compare(results(), next_day(results(factor=1.05)))
    assert (words(found), found.exit_code) == ({"regression"}, 1)
    change = first(found).change
    assert change is not None
    assert change.interval is not None
    assert change.value == pytest.approx(0.05)
    assert 0.04 < change.interval[0] < 0.05 < change.interval[1] < 0.06


def test_five_per_cent_faster_is_an_improvement() -> None:
    found = compare(results(factor=1.05), results())
    assert (words(found), found.exit_code) == ({"improvement"}, 0)
    assert first(found).reason == "faster, beyond 2.0%"


def test_a_change_within_wide_noise_is_none() -> None:
    found = compare(results(NOISY), next_day(results(NOISY, factor=1.05)))
    assert (words(found), found.exit_code) == ({"within noise"}, 0)
    assert "the rounds of one set differ as much; more rounds would tell" in first(found).reason


def test_a_change_must_be_beyond_the_threshold() -> None:
    found = compare(results(), results(factor=1.05), threshold=0.1)
    assert (words(found), found.exit_code) == ({"unchanged"}, 0)


def test_an_interval_that_leaves_the_margin_on_one_side_is_within_noise() -> None:
    """One end of the interval and the change itself are within the margin; the other end is not."""
    found = compare(results((1.0, 1.0, 1.0)), results((1.0, 1.01, 1.02)), threshold=0.02)
    change = first(found).change
    assert change is not None
    assert change.interval is not None
    assert change.interval[0] >= -0.02
    assert (abs(change.value) < 0.02, change.interval[1] > 0.02) == (True, True)
    assert words(found) == {"within noise"}
    assert "it may be more or less than 2.0%" in first(found).reason


def test_two_rounds_are_too_few_however_slow() -> None:
    found = compare(results(QUIET[:2]), results(factor=3.0))
    assert (words(found), found.exit_code) == ({"too few runs"}, 0)
    assert "2 and 5 rounds completed, and an interval needs 3" in first(found).reason


def test_a_case_that_fails_now_is_worse() -> None:
    failed = failed_result(make_case(), outcome="oom", reason="out of memory")
    found = compare(results()[:1], [failed])
    assert (words(found), found.exit_code) == ({"failed"}, 1)
    assert compare([failed], results()[:1]).exit_code == 0
    assert words(compare([failed], [failed])) == {"too few runs"}


def with_crashes(completed: int, crashed: int) -> CaseResult:
    case = make_case()
    return CaseResult(
        case=case,
        rounds=tuple(
            make_record(case, index=index, outcome="completed" if index < completed else "crashed", reason="x")
            for index in range(completed + crashed)
        ),
    )


@pytest.mark.parametrize(
    ("before", "after", "word", "exit_code", "said"),
    [
        ((3, 0), (1, 9), "failed", 1, "most rounds do not complete any more; 9 of 10 rounds failed after, 0 of 3"),
        ((3, 0), (3, 7), "failed", 1, "7 of 10 rounds failed after, 0 of 3 rounds before"),
        ((4, 0), (3, 1), "unchanged", 0, "within 2.0%; 1 of 4 rounds failed after, 0 of 4 rounds before"),
        ((3, 7), (3, 7), "unchanged", 0, "within 2.0%"),
        ((3, 7), (10, 0), "unchanged", 0, "within 2.0%"),
    ],
)
def test_rounds_that_fail_now_are_not_passed_over(
    before: tuple[int, int], after: tuple[int, int], word: str, exit_code: int, said: str
) -> None:
    """Nine of ten rounds that crashed were too few for an interval, and that was exit code 0."""
    found = compare([with_crashes(*before)], [with_crashes(*after)])
    (case,) = found.cases
    assert (case.word, found.exit_code) == (word, exit_code)
    assert said in case.reason
    assert ("failed after" in case.reason) is ("failed after" in said)


@pytest.mark.parametrize("outcome", ["skipped", "lost"])
def test_a_case_that_had_no_place_does_not_fail_and_is_not_compared(outcome: Outcome) -> None:
    found = compare(results()[:1], [failed_result(make_case(), outcome=outcome, reason="needs 2 GPUs, available: 0")])
    assert (words(found), found.exit_code) == ({"incomparable"}, 2)
    assert found.cases[0].reason.endswith("needs 2 GPUs, available: 0")


def test_cases_of_one_side_are_named_and_nothing_in_common_is_incomparable() -> None:
    one, two = results()
    assert compare([one, two], [one]).only_before == (two.case.case_id,)
    assert compare([one], [one, two]).only_after == (two.case.case_id,)
    assert compare([one], [two]).exit_code == 2


# --- the command -------------------------------------------------------------------------------------------------


@pytest.fixture
def before(tmp_path: Path) -> str:
    return str(write_results(results(), tmp_path / "before"))


def test_the_command_ends_with_the_exit_code(before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slower = str(write_results(results(factor=1.05), tmp_path / "slower"))
    other = str(write_results(elsewhere(results(), asset_sha256="00" * 32), tmp_path / "other"))
    assert main([before, before]) == 0
    said = capsys.readouterr().out
    assert re.search(r"Case +Before in s +After in s +Change", said)  # a unit in brackets would be a style to rich
    assert main([before, slower]) == 1
    assert "cartpole-strong/rsl_rl-kitless-cpu-n128-1x1: regression: slower" in capsys.readouterr().out
    assert main([before, slower, "--threshold", "10"]) == 0
    assert main([before, other]) == 2
    assert f"  asset_sha256: '{'ab' * 32}' before, '{'00' * 32}' after" in capsys.readouterr().out


def test_the_command_says_everything_as_json(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([before, before, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == 0
    assert [case["word"] for case in document["cases"]] == ["unchanged", "unchanged"]
    assert document["cases"][0]["change"]["value"] == 0


def test_mistakes_have_other_exit_codes_than_incomparable(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([before]) == UsageError.exit_code
    assert main([before, before, "--across", "task"]) == UsageError.exit_code
    assert main([before, before, "--threshold", "-1"]) == UsageError.exit_code
    assert main([before, str(tmp_path / "nothing")]) == UsageError.exit_code
    assert "where there is nothing" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main([before, str(tmp_path / "empty")]) == StoreError.exit_code
    assert "contains no results" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main([before, str(tmp_path / "file")]) == StoreError.exit_code
    assert f"{tmp_path / 'file'} is a file, and results are folders." in capsys.readouterr().err


def test_a_round_whose_samples_are_gone_is_no_regression(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """This was once a traceback, whose exit code 1 means a regression."""
    after = tmp_path / "after"
    shutil.copytree(before, after)
    path = next((after / "cases").rglob("*.json"))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["labscale"]["runs"][0]["ranks"][0]["samples"]["iteration_time_s"] = []
    path.write_text(json.dumps(document), encoding="utf-8")
    assert main([before, str(after)]) == StoreError.exit_code
    assert (
        "is not valid: of run 0, rank 0 has 12 samples of start_s and 0 of iteration_time_s. Move"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("form", ["--json", "--markdown"])
def test_a_file_that_cannot_be_written_is_no_regression(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    for out, reason in ((tmp_path / "no" / "file", "No such file"), (tmp_path, "Is a directory")):
        assert main([before, before, form, "--out", str(out)]) == ReportError.exit_code
        said = capsys.readouterr().err
        assert said.startswith(f"{out} cannot be written: {reason}")
        assert "choose another with --out" in said


def test_a_file_needs_a_format(before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "comparison"
    assert main([before, before, "--out", str(out)]) == UsageError.exit_code
    assert "allowed are --json and --markdown" in capsys.readouterr().err
    assert not out.exists()
    assert main([before, before, "--markdown", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8")
