"""Forgeries of samples by somebody who makes every hash and figure fit: each is found, or listed as not to be found."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fixtures.results.damaged_results import COMMITTED, fit_figures, sentences, write_all_hashes
from tests.fixtures.results.forgeries import FORGERIES, NOWHERE, SETS
from tests.fixtures.results.learning_results import write_learning


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version of three real sets and of one for learning, in a git repository that knows the commits of this one."""
    root = tmp_path_factory.mktemp("real")
    version = root / "reports" / "results" / "2026.12"
    for name in SETS:
        shutil.copytree(COMMITTED / "2026.12" / name, version / name)
    write_learning(version)
    (version / "report.toml").write_text("".join(f'[[set]]\nfolder = "{name}"\n' for name in SETS))
    write_all_hashes(version)
    subprocess.run(["git", "init", "--quiet", "--template=", root], check=True)
    asked = ["git", "-C", str(COMMITTED), "rev-parse", "--path-format=absolute", "--git-path", "objects"]
    objects = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    alternates = root / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    alternates.write_text(objects)
    return version


@pytest.fixture
def version(real: Path, tmp_path: Path) -> Path:
    shutil.copytree(real.parents[2], tmp_path, dirs_exist_ok=True)
    return tmp_path / "reports" / "results" / "2026.12"


def test_the_real_sets_have_no_fault(real: Path) -> None:
    assert sentences(real) == []


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found_or_known_not_to_be(version: Path, name: str) -> None:
    file, change, words = FORGERIES[name]
    if file:
        document = json.loads((version / file).read_text())
        change(document)
        fit_figures(document)
        (version / file).write_text(json.dumps(document))
    else:
        change(version)
    write_all_hashes(version)
    named = sentences(version)
    assert (not named) == (words == NOWHERE), named
    assert words == NOWHERE or any(words in sentence for sentence in named), named
