"""What *Limits* says of dropped contacts: only of runs that were asked, and of each what it answered."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.sets.version import Version, read_version
from reports.topics.trust import limits_page as limits
from suite.schema.record import OVERFLOW_CHECK, CheckResult, CheckVerdict
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import smoke_results, write_results
from tests.fixtures.results.version_2026_12 import version


def line(of: Version) -> str:
    (line,) = (line for line in limits.uncertain(of).text.splitlines() if "dropped contacts" in line)
    return line


def test_runs_that_were_asked_are_named_with_their_size() -> None:
    assert "was not looked at in any run" in line(committed_version())
    assert "in 26 runs" in line(version())
    assert "It did not in Isaac-Ant with 1,024 environments on a GPU, Isaac-Ant with 65,536 environ" in line(version())


@pytest.mark.parametrize(("verdict", "answer"), [("ok", "It did not in"), ("failure", "It did in")])
def test_a_run_of_two_ranks_is_one_and_its_worst_rank_decides(
    tmp_path: Path, verdict: CheckVerdict, answer: str
) -> None:
    result = next(result for result in smoke_results() if result.case.nproc_per_node > 1)
    (record, *others) = result.rounds
    verdicts: tuple[CheckVerdict, CheckVerdict] = ("ok", verdict)
    ranks = tuple(
        replace(
            rank, validity=(CheckResult(name=OVERFLOW_CHECK, feature="physics", verdict=word, found="", fault=None),)
        )
        for rank, word in zip(record.ranks, verdicts, strict=True)
    )
    write_results([replace(result, rounds=(replace(record, ranks=ranks), *others))], tmp_path)
    text = line(read_version(tmp_path, name=""))
    assert "was looked at in 1 run;" in text
    assert f"{answer} {result.case.task} with {result.case.num_envs:,} environments on a GPU." in text
