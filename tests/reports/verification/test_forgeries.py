"""Forgeries of samples by somebody who makes every hash and figure fit: each is found, or listed as not to be found."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.fixtures.results.damaged_results import COMMITTED, fit_figures, sentences, write_all_hashes
from tests.fixtures.results.forgeries import IN_A_CASE, IN_A_VERSION, SETS

NOT_TO_BE_FOUND: Final = frozenset({
    "clock of a run alone shifted", "completed run called failed and cut", "exchanged rewards",
    "fingerprint of a curve of one case", "higher rewards", "less peak memory", "mean utilisation by little",
    "neighbours' share by little", "other kernel count", "power, energy and readings halved",
    "probes scaled by little", "shorter start-up", "steal",
})  # fmt: skip
# What some rules say, so that another rule that happens to find the same forgery does not do for them.
WORDS: Final = {
    "scaled run": "in a turn of",
    "scaled run alone": "energy_j over the window",
    "copied run": "up to order and a factor",
    "copied rank": "up to order and a factor",
    "permuted copy": "up to order and a factor",
    "smoothed copy": "varying as those of",
    "noise copy": "varying as those of",
    "case a month earlier": "before its commit",
    "fewer iterations": "iterations of the curve",
    "turn column": "the numbers of its turns",
    "turns longer": "iterations of turn 1",
    "neighbour not named": "the neighbours of",
    "dropped neighbour": "neighbours in turns",
    "power and energy halved": "power_w over the window",
    "readings of a shorter run": "its times",
    "packages everywhere": "versions.torch of its ranks",
    "rounds at the same time": "at the same time as",
    "longer iteration": "until the next began",
    "dropped run, not renumbered": "the numbers of the rounds",
    "hidden throttling": "throttled_share",
    "case under another name": "the file's name",
}


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version of three real sets, in a git repository that knows the commits of this one."""
    root = tmp_path_factory.mktemp("real")
    version = root / "reports" / "results" / "2026.12"
    for name in SETS:
        shutil.copytree(COMMITTED / "2026.12" / name, version / name)
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


@pytest.mark.parametrize("name", [*IN_A_CASE, *IN_A_VERSION])
def test_a_forgery_is_found_or_known_not_to_be(version: Path, name: str) -> None:
    if name in IN_A_CASE:
        file, change = IN_A_CASE[name]
        document = json.loads((version / file).read_text())
        change(document)
        fit_figures(document)
        (version / file).write_text(json.dumps(document))
    else:
        IN_A_VERSION[name](version)
    write_all_hashes(version)
    named = sentences(version)
    assert (not named) == (name in NOT_TO_BE_FOUND), named
    assert any(WORDS.get(name, "") in sentence for sentence in named) or name in NOT_TO_BE_FOUND, named


def test_every_name_is_of_a_forgery() -> None:
    assert {*IN_A_CASE, *IN_A_VERSION} >= NOT_TO_BE_FOUND | WORDS.keys()
