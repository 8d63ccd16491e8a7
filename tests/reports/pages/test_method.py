"""Method and limits: what a version lacks, of whose runs each number is, and what failed with its message."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.figures.tables import runs_of
from reports.pages import method
from reports.sets.version import Version, read_version
from reports.verification.first import read_weaknesses
from suite.schema.record import OVERFLOW_CHECK, CheckResult, CheckVerdict
from tests.fixtures.results.committed_results import committed_version, newest_version
from tests.fixtures.results.generated_results import full_results, smoke_results, write_results


def line(of: Version, words: str) -> str:
    (line,) = (line for line in method.limits(of).text.splitlines() if words in line)
    return line


def test_runs_that_were_asked_for_dropped_contacts_are_counted() -> None:
    assert re.search(" 0 of [0-9]+ runs.$", line(committed_version(), "dropped contacts"))
    assert re.search(" [1-9][0-9]* of [0-9,]+ runs.* none", line(newest_version(), "dropped contacts"))


@pytest.mark.parametrize(
    ("verdict", "answer"), [("ok", "none of them."), ("warning", "none of them."), ("failure", " 1 of them.")]
)
def test_a_run_of_two_processes_is_one_and_the_worst_decides(
    tmp_path: Path, verdict: CheckVerdict, answer: str
) -> None:
    result = next(result for result in smoke_results() if result.case.nproc_per_node > 1)
    (record, *others) = result.rounds
    verdicts: tuple[CheckVerdict, CheckVerdict] = ("ok", verdict)
    checks = [CheckResult(name=OVERFLOW_CHECK, feature="physics", verdict=v, found="", fault=None) for v in verdicts]
    ranks = tuple(replace(rank, validity=(check,)) for rank, check in zip(record.ranks, checks, strict=True))
    write_results([replace(result, rounds=(replace(record, ranks=ranks), *others))], tmp_path)
    limit = line(read_version(tmp_path, name=""), "dropped contacts")
    assert " 1 of 1 run" in limit
    assert limit.endswith(answer)


def test_failed_runs_stand_with_their_message_once_and_skipped_ones_apart(tmp_path: Path) -> None:
    failures = method.failures(newest_version()).text
    skipped = sum(outcome == "skipped" for outcome in runs_of(newest_version()).every["outcome"])
    assert failures.count("the ranks ended with different parameters") == 1
    assert "\tcrashed\t" in failures
    assert f"Skipped, {skipped} runs: " in failures
    write_results(full_results()[:1], tmp_path)
    assert method.failures(read_version(tmp_path, name="")).text == "No run failed."


def test_every_known_weakness_stands_with_its_reason(tmp_path: Path) -> None:
    text = method.weaknesses(committed_version()).text
    assert "h200-x4: missing in 35 of 35 completed rounds" in text
    listed = read_weaknesses(committed_version().folder)
    assert all(weakness.why in text and weakness.what in text for weakness in listed)
    write_results(full_results()[:1], tmp_path)
    assert method.weaknesses(read_version(tmp_path, name="")).text == "None is known."
