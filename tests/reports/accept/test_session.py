"""The session ``accept`` of nox: with results it judges, without it measures first."""

import importlib.util
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from reports.accept.command import main, parser
from suite.errors import UsageError
from suite.files.paths import ROOT

BENCH = ["suite", "bench", "--matrix", "accept", "--device", "cuda", "--no-report"]


@cache  # nox refuses to register a session twice
def noxfile() -> Any:
    spec = importlib.util.spec_from_file_location("ours", ROOT / "noxfile.py")
    assert spec is not None
    assert spec.loader is not None
    ours = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ours)
    return ours


def started(posargs: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the session starts with these arguments: each ``python -m`` without these two words."""
    ours = noxfile()
    monkeypatch.setattr(ours, "install", lambda *_: None)
    commands: list[list[str]] = []

    def run(*words: str, **_: object) -> None:
        assert words[:2] == ("python", "-m")
        commands.append(list(words[2:]))

    ours.accept.func(SimpleNamespace(posargs=list(posargs), run=run))
    return commands


@pytest.mark.parametrize(
    "posargs",
    [
        ["runs/full"],
        ["--baseline", "h200", "runs/full"],
        ["runs/full", "--baseline=h200"],
        ["--published=there", "runs/full"],
        ["--help"],
        ["--baselin", "h200"],
        ["--baseline"],
    ],
)
def test_it_only_judges_results_that_are_named_and_refuses_what_is_wrong(
    posargs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert started(posargs, monkeypatch) == [["reports", "accept", *posargs]]


@pytest.mark.parametrize("posargs", [[], ["--baseline", "h200"], ["--baseline=h200", "--published", "there"]])
def test_without_results_it_checks_its_options_and_measures_first(
    posargs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = ["reports", "accept", "runs/accept", *posargs]
    assert started(posargs, monkeypatch) == [["reports", "accept", *posargs], BENCH, judged]


def test_a_model_that_nobody_published_is_refused_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--baseline", "h200"]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["--baseline", "h2000"]) == UsageError.exit_code
    assert "--baseline h2000: nobody has published it. Allowed are " in capsys.readouterr().err


def test_it_knows_every_option_that_has_a_value() -> None:
    options = {option for action in parser()._actions if action.nargs != 0 for option in action.option_strings}
    assert options == {"--baseline", "--published"}
