"""A few attempts on every target of ``nox -s fuzz``, with seeds that stay; and that it finds what is wrong."""

import random
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from suite.errors import StoreError
from tests.fuzz import __main__ as command
from tests.fuzz import target as fuzz_target
from tests.fuzz.target import Target, attempt_once
from tests.fuzz.targets import TARGETS

ATTEMPTS: Final = 100


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_mutated_input_ends_in_a_traceback_or_hangs(target: Target) -> None:
    for seed in range(ATTEMPTS):
        finding = attempt_once(target, seed)
        assert finding is None, f"seed {seed}, input in {finding.folder}:\n{finding.traceback}"


@pytest.fixture
def kept_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep everything that fuzzing writes inside the test's folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def breaks(_rng: random.Random, folder: Path) -> None:
    (folder / "input").write_text("what did it")
    raise KeyError("gone")


def recurses(rng: random.Random, folder: Path) -> None:
    recurses(rng, folder)


def hangs(_rng: random.Random, _folder: Path) -> None:
    while True:
        try:
            random.random()  # noqa: S311
        except Exception:  # noqa: BLE001, S112 - as code under test might
            continue


def refuses(_rng: random.Random, folder: Path) -> None:
    (folder / "input").write_text("refused")
    raise StoreError("not like this")


@pytest.mark.usefixtures("kept_here")
@pytest.mark.parametrize(
    ("attempt", "said"), [(breaks, "KeyError: 'gone'"), (recurses, "RecursionError"), (hangs, "no end after")]
)
def test_what_breaks_or_hangs_is_found(
    attempt: Callable[[random.Random, Path], None], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz_target, "LIMIT_S", 0.2)
    finding = attempt_once(Target(name="broken", attempt=attempt), 7)
    assert finding is not None
    assert (finding.target, finding.seed, said in finding.traceback) == ("broken", 7, True)
    assert len(finding.traceback.splitlines()) <= 2 * fuzz_target.MOST_LINES + 1


@pytest.mark.usefixtures("kept_here")
@pytest.mark.parametrize("code", [0, 11])
def test_what_is_refused_as_it_should_be_is_no_finding(code: int) -> None:
    assert attempt_once(Target(name="refuses", attempt=refuses), 0) is None
    assert attempt_once(Target(name="ends", attempt=lambda _rng, _folder: sys.exit(code)), 0) is None
    assert attempt_once(Target(name="ends", attempt=lambda _rng, _folder: sys.exit(2)), 0) is not None


@pytest.mark.usefixtures("kept_here")
def test_the_command_says_what_to_run_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It limits the memory of its process, which is this one here."""
    monkeypatch.setattr(command, "TARGETS", (Target(name="broken", attempt=breaks),))
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    assert command.main(["--seed", "3"]) == 1
    said = capsys.readouterr().err
    assert "KeyError: 'gone'" in said
    assert said.endswith("Again: nox -s fuzz -- --target broken --seed 3\n")
    kept = Path(said.partition("the input is in ")[2].partition(".\n")[0])
    assert (kept / "input").read_text() == "what did it"
    assert command.main(["--target", "brokem"]) == 11
    assert "allowed are broken, or a pattern" in capsys.readouterr().err
