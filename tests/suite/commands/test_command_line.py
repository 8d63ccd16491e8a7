"""Wrong options of the sessions that are not ``python -m suite``: one exit code, and what to do."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reports.accept import command as accept
from reports.compare import command as compare_command
from reports.export import command as export
from reports.figures import learning_references
from reports.site import build, publish
from reports.submit import command as submit
from reports.verification import command as verify
from suite import __main__ as suite_command
from suite.errors import UsageError
from suite.launch.images import pins_command
from tests.fixtures.runs.command_parsers import parsers

type Main = Callable[[Sequence[str]], int]

SESSIONS: dict[str, Main] = {
    "report": build.main,
    "publish": publish.main,
    "export": export.main,
    "verify": verify.main,
    "submit": submit.main,
    "accept": accept.main,
    "compare": compare_command.main,
    "learning_references": learning_references.main,
    "pins": pins_command.main,
}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders ``a`` and ``b`` in the folder one is in: what is wrong is the option."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.usefixtures("results")
def test_a_wrong_option_ends_as_the_readme_says(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """argparse ends with 2, which of ``compare`` means cases that cannot be compared."""
    valid = {
        "export": ["a", "--format", "csv"],
        "compare": ["a", "b"],
        "report": ["a"],
        "submit": ["a"],
        "accept": ["a"],
        "learning_references": ["a", "--at", "20"],
    }
    assert SESSIONS[session]([*valid.get(session, ()), "--helf"]) == UsageError.exit_code
    said = capsys.readouterr().err
    assert said == f"unrecognized arguments: --helf. Did you mean '--help'?\nSee: nox -s {session} -- --help\n"


@pytest.mark.parametrize("session", [*SESSIONS, "plan", "bench", "store", "watch", "build", "bundle", "env_check"])
def test_help_shows_the_command_as_it_is_typed(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        SESSIONS[session](["--help"]) if session in SESSIONS else suite_command.main([session, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: nox -s {session} -- ")


@pytest.mark.parametrize("command", parsers())
def test_no_option_takes_an_empty_value_or_one_of_two_lines(command: str) -> None:
    for action in parsers()[command]._actions:
        if action.nargs == 0 or action.choices:
            continue
        read = action.type
        assert callable(read), f"{action.dest} takes any text"
        for value in ("", "a\nb", "gpu01\n,gpu02"):
            with pytest.raises((argparse.ArgumentTypeError, ValueError)):
                read(value)
