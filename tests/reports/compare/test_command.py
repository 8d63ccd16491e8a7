"""`nox -s compare`: its exit codes, its forms, and what it refuses."""

import json
import shutil
from pathlib import Path

import pytest

from reports.__main__ import main as session
from suite.errors import ReportError, StoreError, UsageError
from tests.fixtures.results.generated_machines import elsewhere, with_settings
from tests.fixtures.results.generated_results import write_results
from tests.reports.compare.test_comparison import measured, results


@pytest.fixture
def before(tmp_path: Path) -> str:
    return str(write_results(results(), tmp_path / "before"))


def test_it_ends_with_the_exit_code_and_prints_each_verdict(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = str(write_results(results(factor=1.05), tmp_path / "slower"))
    other = str(write_results(elsewhere(results(), asset_sha256="00" * 32), tmp_path / "other"))
    assert session("compare", [before, before]) == 0
    assert "Before in s" in capsys.readouterr().out
    assert session("compare", [before, slower]) == 1
    assert "cartpole-strong/rsl_rl-kitless-cpu-n128-1x1: slower, by more than 2.0%" in capsys.readouterr().out
    assert session("compare", [before, slower, "--threshold", "10"]) == 0
    assert session("compare", [before, other]) == 2
    assert f"  - asset_sha256: {'ab' * 32} before, {'00' * 32} after" in capsys.readouterr().out


def test_it_compares_the_campaigns_of_two_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version, factor in (("1", 1.0), ("2", 1.05)):
        write_results(results(), tmp_path / version / "desk")
        write_results(results(factor=factor), tmp_path / version / "rack")
    assert session("compare", [str(tmp_path / "1"), str(tmp_path / "2"), "--json"]) == 1
    configurations = json.loads(capsys.readouterr().out)["configurations"]
    verdicts = {(own["configuration"].partition("/")[0], own["word"]) for own in configurations}
    assert verdicts == {("desk", "unchanged"), ("rack", "slower")}


def test_many_differences_are_counted_and_json_has_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = []
    for value in (1, 2):
        settings = {f"a{number}": value for number in range(40)}
        folders.append(str(write_results(with_settings(results(), **settings), tmp_path / str(value))))
    assert session("compare", folders) == 2
    assert "  - and 28 more" in capsys.readouterr().out
    assert session("compare", [*folders, "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == 2
    assert len(document["configurations"][0]["refused"]) == 40


def test_of_many_configurations_of_one_side_the_first_are_named_and_json_has_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(7):
        write_results(results(), tmp_path / "1" / f"desk-{number}")
    write_results(results(), tmp_path / "2" / "desk-0")
    folders = [str(tmp_path / "1"), str(tmp_path / "2")]
    assert session("compare", folders) == 0
    assert "desk-6/cartpole-strong/rsl_rl-kitless-cpu-n128-1x1" in capsys.readouterr().out
    write_results(results(), tmp_path / "1" / "desk-7")
    assert session("compare", folders) == 0
    output = capsys.readouterr().out
    assert ("and 2 more" in output, "desk-7" in output) == (True, False)
    assert session("compare", [*folders, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["only_before"]) == 14


def test_a_slower_release_of_one_campaign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    releases = [measured(), measured("1.6.0", factor=1.2), measured(warp="1.18.0", factor=2.0)]
    assert session("compare", ["--across", "versions.newton", str(write_results(releases, tmp_path))]) == 1
    output = capsys.readouterr().out
    assert "newton-1-6-0: slower," in output
    assert "as declared, versions.newton: 1.6.1 before, 1.6.0 after" in output
    assert "warp-lang-1-18-0" not in output


def test_mistakes_have_other_exit_codes_than_incomparable(before: str, tmp_path: Path) -> None:
    for arguments in (
        [before],
        [before, before, "--across", "task"],
        [before, before, "--threshold", "-1"],
        [before, str(tmp_path / "nothing")],
        [before, before, "--out", str(tmp_path / "file")],
        [before, "--changed", "--markdown"],
        [before, before, "--changed"],
    ):
        assert session("compare", arguments) == UsageError.exit_code
    (tmp_path / "empty").mkdir()
    assert session("compare", [before, str(tmp_path / "empty")]) == StoreError.exit_code


def test_a_run_whose_samples_are_gone_is_not_slower(before: str, tmp_path: Path) -> None:
    """A traceback has exit code 1, which means slower."""
    after = tmp_path / "after"
    shutil.copytree(before, after)
    path = next((after / "cases").rglob("*.json"))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["labscale"]["runs"][0]["ranks"][0]["samples"]["iteration_time_s"] = []
    path.write_text(json.dumps(document), encoding="utf-8")
    assert session("compare", [before, str(after)]) == StoreError.exit_code


@pytest.mark.parametrize("form", ["--json", "--markdown"])
def test_a_file_that_cannot_be_written_is_not_slower(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    for out, reason in ((tmp_path / "no" / "file", "No such file"), (tmp_path, "Is a directory")):
        assert session("compare", [before, before, form, "--out", str(out)]) == ReportError.exit_code
        assert f"{out} cannot be written: {reason}" in capsys.readouterr().err
    assert session("compare", [before, before, form, "--out", str(tmp_path / "file")]) == 0
    assert (tmp_path / "file").read_text(encoding="utf-8")
