"""Files of sets and of imported bundles, as the page counts and offers them."""

import shutil
from pathlib import Path

import pytest

from reports.sets import figures_file
from reports.sets.figures_file import FILE
from reports.sets.version import Version, read_version
from reports.topics.data.downloads import files
from reports.topics.data.page import answer, listing
from reports.topics.data.stored_files import stored_files
from reports.topics.others import import_command
from reports.verification.hashes import SUMS, write_hashes
from suite.files.paths import ROOT
from tests.fixtures.results.committed_results import RESULTS, committed_version

BUNDLE = ROOT / "tests" / "golden" / "isaaclab_1.4" / "upstream-seed42.json"


@pytest.fixture
def version(tmp_path: Path) -> Path:
    """A set and an imported bundle, with figures and then with hashes."""
    folder = tmp_path / "2026.12"
    shutil.copytree(RESULTS.parent / "2026.12" / "h200-torchrl-camera-ray", folder / "own")
    assert import_command.main([str(BUNDLE), "--out", str(folder / "theirs")]) == 0
    for name in ("own", "theirs"):
        (folder / name / SUMS).unlink(missing_ok=True)
    (folder / "report.toml").write_text('[[set]]\nfolder = "own"\n')
    figures_file.write(folder)
    for name in ("own", "theirs"):
        write_hashes(folder / name)
    return folder


def offered(version: Version) -> set[str]:
    return {name for group in files(version).values() for name in group}


def test_the_answer_counts_what_has_samples_and_neither_hashes_nor_tables(version: Path) -> None:
    read = read_version(version, name=version.name)
    own, theirs = stored_files(read)
    assert len(theirs.files) == 1
    paths = [path for name in ("own", "theirs") for path in (version / name).rglob("*") if path.is_file()]
    counted = [path for path in paths if path.name != SUMS]
    assert len(counted) == len(paths) - 2
    assert {*own.files.values(), *theirs.files.values()} == {*counted}
    said = answer(read).text
    assert said.startswith(f"{len(counted)} files (")
    assert "of 1 set and 1 folder of imported bundles." in said


def test_hashes_and_tables_are_offered_with_the_others(version: Path) -> None:
    read = read_version(version, name=version.name)
    assert {f"own/{SUMS}", f"theirs/{SUMS}", "cases.csv", FILE} < offered(read)
    assert {f"{one.name}/{name}" for one in stored_files(read) for name in one.files} < offered(read)
    assert all(name in listing(read).text for name in offered(read))


def test_what_env_check_said_beside_the_sets_is_offered_and_not_counted_with_samples() -> None:
    version = committed_version()
    assert version.env_checks
    assert {f"env_check/{one.name}.json" for one in version.env_checks} < offered(version)
    assert not any(one.name == "env_check" for one in stored_files(version))
