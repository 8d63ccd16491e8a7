"""Cases of one campaign that differ in a version, compared with each other."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.topics.history.command import main
from reports.topics.history.within import pairs_across
from suite.errors import UsageError
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, write_results

SHIPPED = make_case()
QUIET = (1.0, 1.002, 1.004, 0.998, 1.001)


def measured(newton: str = "1.6.1", warp: str = "1.17.0", *, factor: float = 1.0) -> CaseResult:
    """A case with these versions, ``factor`` times as slow; those that are pinned are as shipped."""
    others = {"newton": (newton, "1.6.1"), "warp-lang": (warp, "1.17.0")}
    packages = tuple(f"{name}=={version}" for name, (version, pinned) in others.items() if version != pinned)
    case = SHIPPED
    if packages:
        name = "-".join(packages).replace("==", "-").replace(".", "-")
        case = replace(case, case_id=f"{case.case_id}-{name}", division="open", with_packages=packages)
    result = make_result(case, *(factor * time_s for time_s in QUIET))
    versions = {"versions.newton": newton, "versions.warp-lang": warp}
    rounds = tuple(
        replace(
            record,
            ranks=tuple(replace(rank, settings={**rank.settings, **versions}) for rank in record.ranks),
        )
        for record in result.rounds
    )
    return replace(result, rounds=rounds)


def ids(results: Sequence[CaseResult], *across: str) -> list[str]:
    return [after.case.case_id.removeprefix(SHIPPED.case_id) for _, after in pairs_across(results, across)]


def test_each_case_stands_beside_the_one_with_the_pinned_versions() -> None:
    results = [measured("1.6.0"), measured(), measured(warp="1.18.0")]
    assert ids(results, "versions.newton") == ["-newton-1-6-0"]
    assert ids(results, "versions.*") == ["-newton-1-6-0", "-warp-lang-1-18-0"]
    ((before, after),) = pairs_across(results, ["versions.newton"])
    assert (before.rounds, after.rounds) == (results[1].rounds, results[0].rounds)
    assert before.case == after.case


def test_other_work_is_no_pair_and_said() -> None:
    other = measured("1.6.0")
    larger = replace(other, case=replace(other.case, num_envs=other.case.num_envs * 2))
    with pytest.raises(UsageError, match=r"No two of these 2 cases differ in versions\.newton .*Name a folder"):
        pairs_across([measured(), larger], ["versions.newton"])


def run(tmp_path: Path, results: list[CaseResult], *arguments: str) -> int:
    folder = write_results(results, tmp_path / "releases")
    return main([*arguments, str(folder)])


def test_a_slower_release_is_a_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = [measured(), measured("1.6.0", factor=1.2), measured(warp="1.18.0", factor=2.0)]
    assert run(tmp_path, results, "--across", "versions.newton") == 1
    said = capsys.readouterr().out
    assert f"{SHIPPED.case_id}-newton-1-6-0: regression: slower, beyond 2.0%" in said
    assert "  as declared, versions.newton: '1.6.1' before, '1.6.0' after" in said
    assert "warp-lang-1-18-0" not in said


def test_what_differs_besides_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [measured(), measured("1.6.0", "1.18.0")], "--across", "versions.newton") == 2
    assert "incomparable: differs in versions.warp-lang" in capsys.readouterr().out


def test_a_release_that_does_not_run_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = failed_result(measured("1.7.0").case, outcome="crashed", reason="KeyError: 'path_particle_map'")
    assert run(tmp_path, [measured(), broken], "--across", "versions.newton") == 1
    assert "newton-1-7-0: failed: " in capsys.readouterr().out


def test_one_folder_needs_a_fact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [measured()]) == 11
    assert "Give a second one to compare it with, or --across NAME, such as versions.newton" in capsys.readouterr().err
    assert run(tmp_path / "again", [measured()], "--changed", "--markdown") == 11
    assert "--changed needs BEFORE and AFTER" in capsys.readouterr().err
