"""A folder of results that may not be read is named by every program that reads results; nothing else is blamed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reports.compare import command as compare_command
from reports.export import command as export
from reports.site import build, publish
from reports.verification import command as verify
from reports.verification.hashes import write_hashes
from suite import __main__ as suite_command
from suite.errors import CampaignError, ReportError, StoreError, UsageError, WorkerEnvironmentError
from tests.fixtures.results.generated_results import smoke_results, write_results
from tests.fixtures.stand_ins.denied_folders import deny

Program = Callable[[list[str]], int]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_results(smoke_results(), tmp_path / "results" / "1" / "desk")


def check(folder: Path, program: Program, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert program(arguments) in {ReportError.exit_code, StoreError.exit_code}
    said = capsys.readouterr().err
    assert said == f"{folder} cannot be read: Permission denied. Check the path and its permissions.\n"


@pytest.mark.parametrize("name", ["cases", "."])
def test_a_folder_that_cannot_be_read_is_named(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    denied, out = results / name, str(tmp_path / "out")
    sound = shutil.copytree(results, tmp_path / "sound")
    deny(monkeypatch, denied)
    commands: list[tuple[Program, list[str]]] = [
        (export.main, [str(results), "--format", "bencher"]),
        (export.main, [str(results), "--format", "bencher", "--out", out]),
        (verify.main, [str(results)]),
        (verify.main, [str(results.parent), "--write-hashes"]),
        (compare_command.main, [str(sound), str(results)]),
        (build.main, [str(results), "--out", out]),
        (publish.main, ["--results", str(results.parent.parent), "--out", out]),
    ]
    for program, arguments in commands:
        check(denied, program, arguments, capsys)
    assert not Path(out).exists()


def test_results_that_are_not_there_end_every_command_alike(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere, out = str(tmp_path / "nowhere"), str(tmp_path / "out")
    commands: list[tuple[Program, list[str]]] = [
        (export.main, [nowhere, "--format", "bencher"]),
        (verify.main, [nowhere]),
        (compare_command.main, [nowhere, str(results)]),
        (compare_command.main, [str(results), nowhere]),
        (build.main, [nowhere, "--out", out]),
        (publish.main, ["--results", nowhere, "--out", out]),
        (suite_command.main, ["store", nowhere]),
    ]
    for program, arguments in commands:
        assert program(arguments) == UsageError.exit_code
        assert f"got '{nowhere}', where there is nothing; allowed is a folder of results" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert build.main([str(tmp_path / "empty"), "--out", out]) == StoreError.exit_code
    assert not Path(out).exists()


@pytest.mark.parametrize("name", ["mine", "mine/below"])
def test_a_folder_of_somebody_else_is_named_by_what_would_write_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "mine").mkdir()
    deny(monkeypatch, tmp_path / "mine")
    out = str(tmp_path / name)
    for program, arguments, code, said in (
        (
            suite_command.main,
            ["bench", "--out", out],
            CampaignError.exit_code,
            f"The results folder {out} cannot be read",
        ),
        (suite_command.main, ["store", out], StoreError.exit_code, f"{out} cannot be read"),
    ):
        assert program(arguments) == code
        assert capsys.readouterr().err.startswith(f"{said}: Permission denied. ")


def test_a_python_of_somebody_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deny(monkeypatch, tmp_path)
    python = tmp_path / "python"
    assert suite_command.main(["plan", "--worker-python", str(python)]) == WorkerEnvironmentError.exit_code
    assert capsys.readouterr().err.startswith(f"The worker's Python {python} does not run: Permission denied. ")


def test_what_env_check_said_is_not_left_out_where_it_cannot_be_read(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_version = results.parent / "env_check"
    of_version.mkdir()
    deny(monkeypatch, of_version)
    out = tmp_path / "out"
    check(of_version, publish.main, ["--results", str(results.parent.parent), "--out", str(out)], capsys)
    assert not out.exists()


def test_sets_that_cannot_be_read_are_named_where_changes_are_looked_for(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = results.parent.parent
    before = shutil.copytree(versions, tmp_path / "before")
    deny(monkeypatch, results)
    check(results, compare_command.main, [str(before), str(versions), "--changed", "--markdown"], capsys)


def test_a_file_that_cannot_be_hashed_is_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = min((results / "cases").rglob("*.json"))
    write_hashes(results)
    case.unlink()
    case.symlink_to(case)  # nobody can open it
    assert verify.main([str(results)]) == ReportError.exit_code
    assert f"{case} cannot be read: Too many levels of symbolic links" in capsys.readouterr().err
