"""Environments of nox sessions, made by the real noxfile and a real nox: one package, and a command that looks."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from suite.files.paths import ROOT

COMMAND = """
import os, sys, packaging
print(sys.flags.utf8_mode, sorted(name for name in os.environ if name.startswith("PYTHON")))
"""
PIN = re.compile(r"^packaging==.*?(?=^[a-z])", re.MULTILINE | re.DOTALL)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "labscale"
    (root / "suite").mkdir(parents=True)
    (root / "suite" / "__main__.py").write_text(COMMAND)
    (root / "containers" / "pins").mkdir(parents=True)
    pin = PIN.search((ROOT / "containers/pins/suite.txt").read_text())
    assert pin
    (root / "containers/pins/suite.txt").write_text(pin[0])
    shutil.copy(ROOT / "noxfile.py", root)
    return root


def start(checkout: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.Popen(
        [sys.executable, "-m", "nox", "-s", "plan", *words],
        cwd=checkout, env={**os.environ, "PATH": path, **variables}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def run(checkout: Path, *words: str, **variables: str) -> tuple[int, str]:
    process = start(checkout, *words, **variables)
    output = process.communicate(timeout=120)[0]
    return process.returncode, output


def test_a_damaged_environment_is_named_and_made_anew(checkout: Path) -> None:
    assert run(checkout)[0] == 0
    environment = checkout / ".nox" / "plan"
    settings = environment / "pyvenv.cfg"
    older = re.sub(r"^(version\S*) = .*", r"\1 = 3.11.7", settings.read_text(), flags=re.MULTILINE)
    (package,) = environment.glob("lib/*/site-packages/packaging")
    for damage, why in (
        ((package / "__init__.py").unlink, "has lost packaging/__init__.py."),
        (partial(shutil.rmtree, package), "has lost packaging."),
        (partial(settings.write_text, older), "has Python 3.11, 3.12 is needed."),
    ):
        damage()
        exit_code, output = run(checkout)
        assert (exit_code, f"{environment} {why}" in output, "pip install" in output) == (0, True, True)
    exit_code, output = run(checkout)
    assert (exit_code, "made anew" in output, "pip install" in output) == (0, False, False)


def test_two_first_starts_make_one_environment(checkout: Path) -> None:
    both = [start(checkout), start(checkout)]
    output = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum("pip install" in text for text in output) == 1


def test_a_command_starts_with_plain_python_variables_and_utf8(checkout: Path) -> None:
    variables = {"PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "ignore", "PYTHONPATH": ".", "LC_ALL": "C"}
    exit_code, output = run(checkout, **variables)
    assert (exit_code, "1 ['PYTHONPATH', 'PYTHONUTF8']" in output) == (0, True), output


@pytest.mark.parametrize(
    ("folder", "words", "why"),
    [
        ("a:b", (), "a:b has ':' in its path"),
        ("a", ("--envdir", "c:d"), "c:d/plan has ':' in its path"),
        ("a", ("--no-venv",), "Leave --no-venv and --venv-backend out."),
    ],
)
def test_what_cannot_be_an_environment_is_refused(
    checkout: Path, folder: str, words: tuple[str, ...], why: str
) -> None:
    exit_code, output = run(checkout.rename(checkout.with_name(folder)), *words)
    assert (exit_code, why in output) == (12, True), output


def test_another_python_is_refused_before_anything_is_installed(checkout: Path) -> None:
    noxfile = checkout / "noxfile.py"
    noxfile.write_text(noxfile.read_text().replace('PYTHON: Final = "3.12"', 'PYTHON: Final = "3.13"'))
    exit_code, output = run(checkout)
    assert (exit_code, "pip install" in output) == (12, False)
    assert f"Python 3.13 is needed, {sys.version.split()[0]} was found ({sys.executable})" in output
