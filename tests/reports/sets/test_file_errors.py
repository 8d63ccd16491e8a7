"""A folder of results that may not be read is named by every program that reads results; nothing else is blamed."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from reports.__main__ import main as session
from reports.verification.hashes import write_hashes
from suite import __main__ as suite_command
from suite.errors import CampaignError, LabscaleError, ReportError, StoreError, UsageError, WorkerEnvironmentError
from tests.fixtures.results.generated_results import smoke_results, write_results
from tests.fixtures.stand_ins.denied_folders import deny

type Command = tuple[Callable[[list[str]], int], list[str]]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_results(smoke_results(), tmp_path / "results" / "1" / "desk")


def readers(results: Path, sound: Path, out: str) -> list[Command]:
    """Every command that reads results, with those of ``results`` and, beside them, ``sound`` ones."""
    return [
        (partial(session, "export"), [str(results), "--format", "bencher"]),
        (partial(session, "export"), [str(results), "--format", "bencher", "--out", out]),
        (partial(session, "verify"), [str(results)]),
        (partial(session, "compare"), [str(sound), str(results)]),
        (partial(session, "compare"), [str(results), str(sound)]),
        (partial(session, "report"), [str(results), "--out", out]),
    ]


def check_named(folder: Path, command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    program, arguments = command
    assert program(arguments) in {ReportError.exit_code, StoreError.exit_code}
    assert capsys.readouterr().err.startswith(f"{folder} cannot be read: Permission denied. ")


@pytest.mark.parametrize("name", ["cases", "."])
def test_a_folder_that_cannot_be_read_is_named(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    versions, out = results.parent.parent, str(tmp_path / "out")
    before = shutil.copytree(versions, tmp_path / "before")
    deny(monkeypatch, results / name)
    commands: list[Command] = [
        *readers(results, before / "1" / "desk", out),
        (partial(session, "verify"), [str(results.parent), "--write-hashes"]),
        (partial(session, "publish"), ["--results", str(versions), "--out", out]),
    ]
    for command in commands:
        check_named(results / name, command, capsys)
    if name == ".":  # changes are looked for among whole sets
        command = partial(session, "compare"), [str(before), str(versions), "--changed", "--markdown"]
        check_named(results, command, capsys)
    assert not Path(out).exists()


def test_what_env_check_said_is_not_left_out_where_it_cannot_be_read(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    of_version, out = results.parent / "env_check", tmp_path / "out"
    of_version.mkdir()
    deny(monkeypatch, of_version)
    command = partial(session, "publish"), ["--results", str(results.parent.parent), "--out", str(out)]
    check_named(of_version, command, capsys)
    assert not out.exists()


def test_results_that_are_not_there_end_every_command_alike(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere, out = tmp_path / "nowhere", str(tmp_path / "out")
    commands: list[Command] = [
        *readers(nowhere, results, out),
        (partial(session, "publish"), ["--results", str(nowhere), "--out", out]),
        (suite_command.main, ["store", str(nowhere)]),
    ]
    for program, arguments in commands:
        assert program(arguments) == UsageError.exit_code
        assert f"got '{nowhere}'" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert session("report", [str(tmp_path / "empty"), "--out", out]) == StoreError.exit_code
    assert not Path(out).exists()


@pytest.mark.parametrize(
    ("command", "name", "error"),
    [
        ("bench --out", "mine", CampaignError),
        ("bench --out", "mine/below", CampaignError),
        ("store", "mine", StoreError),
        ("store", "mine/below", StoreError),
        ("plan --worker-python", "mine/python", WorkerEnvironmentError),
    ],
)
def test_a_path_of_somebody_else_is_named_by_what_would_use_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    name: str,
    error: type[LabscaleError],
) -> None:
    (tmp_path / "mine").mkdir()
    deny(monkeypatch, tmp_path / "mine")
    assert suite_command.main([*command.split(), str(tmp_path / name)]) == error.exit_code
    message = capsys.readouterr().err
    assert f"{tmp_path / name} " in message
    assert "Permission denied. " in message


def test_a_file_that_cannot_be_hashed_is_named(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = min((results / "cases").rglob("*.json"))
    write_hashes(results)
    case.unlink()
    case.symlink_to(case)  # nobody can open it
    assert partial(session, "verify")([str(results)]) == ReportError.exit_code
    assert f"{case} cannot be read: Too many levels of symbolic links" in capsys.readouterr().err
