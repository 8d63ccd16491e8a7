"""The session ``accept`` of nox: with results it judges, without it measures first."""

import importlib.util
import subprocess
from argparse import Namespace
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports.__main__ import main as session
from reports.accept.command import parser
from suite.__main__ import main as command_line
from suite.commands import campaigns
from suite.errors import UsageError
from suite.files.paths import ROOT
from suite.options.command_line import Parser
from tests.fixtures.results.generated_machines import MODEL, write_published


@cache  # nox refuses to register a session twice
def noxfile() -> Any:
    spec = importlib.util.spec_from_file_location("ours", ROOT / "noxfile.py")
    assert spec is not None
    assert spec.loader is not None
    ours = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ours)
    return ours


def test_the_session_hands_all_its_words_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = noxfile()
    monkeypatch.setattr(ours, "install", lambda *_: None)
    commands: list[tuple[str, ...]] = []
    posargs = ["--baseline", "h200", "runs/full"]
    ours.accept.func(SimpleNamespace(posargs=posargs, run=lambda *words, **_: commands.append(words)))
    assert commands == [("python", "-m", "suite", "accept", *posargs)]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[object]]:
    """What ``accept`` has done: the words that the judge got, and the matrix and device that were measured."""
    done: list[Sequence[object]] = []

    def judge(words: Sequence[str], **_: object) -> SimpleNamespace:
        done.append(words[4:])
        has_results = not all(word.startswith("--") for word in words[4:])
        return SimpleNamespace(returncode=1 if has_results else UsageError.exit_code * ("--baseline=h2000" in words))

    def measure(arguments: Namespace, _: object) -> None:
        done.append((arguments.matrix, arguments.device, arguments.with_report))

    monkeypatch.setattr(subprocess, "run", judge)
    monkeypatch.setattr(campaigns, "bench", measure)
    return done


def test_results_that_are_named_are_judged_alone(steps: list[Sequence[object]], tmp_path: Path) -> None:
    assert command_line(["accept", "--baseline", "h200", str(tmp_path)]) == 1
    assert steps == [[str(tmp_path), "--baseline=h200"]]


def test_without_results_it_checks_its_options_and_measures_first(steps: list[Sequence[object]]) -> None:
    assert command_line(["accept", "--baseline=h200"]) == 1
    measured = ("accept", "cuda", False)
    assert steps == [["--baseline=h200"], measured, [str(ROOT / "runs" / "accept"), "--baseline=h200"]]
    steps.clear()
    assert command_line(["accept", "--baseline=h2000"]) == UsageError.exit_code
    assert steps == [["--baseline=h2000"]]


def test_a_model_that_nobody_published_is_refused_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published = ["--published", str(write_published(tmp_path))]
    assert session("accept", [*published, "--baseline", "accelerator"]) == 0
    assert capsys.readouterr() == ("", "")
    assert session("accept", [*published, "--baseline", "h2000"]) == UsageError.exit_code
    assert f"Allowed are {MODEL}" in capsys.readouterr().err


def test_both_command_lines_have_the_same_options() -> None:
    own = Parser(prog="")
    campaigns.ACCEPT_COMMAND.add_arguments(own)
    assert own._option_string_actions.keys() == parser()._option_string_actions.keys()
