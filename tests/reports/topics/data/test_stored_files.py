"""Files of sets, as the page counts and offers them."""

import shutil
from pathlib import Path

import pytest

from reports.figures import tables
from reports.figures.tables import FILE
from reports.sets.version import Version, read_version
from reports.topics.data.downloads import files, stored_files
from reports.topics.data.page import answer, listing
from reports.verification.hashes import SUMS, write_hashes
from tests.fixtures.results.committed_results import RESULTS, committed_version


@pytest.fixture
def version(tmp_path: Path) -> Path:
    """A set with figures and then with hashes."""
    folder = tmp_path / "2026.12"
    shutil.copytree(RESULTS.parent / "2026.12" / "h200-torchrl-camera-ray", folder / "own")
    (folder / "own" / SUMS).unlink(missing_ok=True)
    (folder / "report.toml").write_text('[[set]]\nfolder = "own"\n')
    tables.write(folder)
    write_hashes(folder / "own")
    return folder


def offered(version: Version) -> set[str]:
    return {name for group in files(version).values() for name in group}


def test_the_answer_counts_what_has_samples_and_neither_hashes_nor_tables(version: Path) -> None:
    read = read_version(version, name=version.name)
    (own,) = stored_files(read)
    counted = [path for path in (version / "own").rglob("*") if path.is_file() and path.name != SUMS]
    assert {*own.files.values()} == {*counted}
    assert answer(read).text.startswith(f"{len(counted)} files (")


def test_hashes_and_tables_are_offered_with_the_others(version: Path) -> None:
    read = read_version(version, name=version.name)
    assert {f"own/{SUMS}", "runs.csv", "runs.parquet", "iterations.parquet", "checks.parquet", FILE} < offered(read)
    assert {f"{one.name}/{name}" for one in stored_files(read) for name in one.files} < offered(read)
    assert all(name in listing(read).text for name in offered(read))


def test_what_env_check_said_beside_the_sets_is_offered_and_not_counted_with_samples() -> None:
    version = committed_version()
    assert version.env_checks
    assert {f"env_check/{one.name}.json" for one in version.env_checks} < offered(version)
    assert not any(one.name == "env_check" for one in stored_files(version))
