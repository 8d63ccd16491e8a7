"""Files of sets and of imported bundles: counted on the page, as figures, and by the verifier."""

import shutil
from pathlib import Path

import pytest

from reports.sets.version import Version, read_version
from reports.site import figure_files
from reports.topics.data.downloads import files
from reports.topics.data.page import answer, listing
from reports.topics.data.stored_files import data_figures, stored_files
from reports.topics.others import import_command
from reports.verification import first
from reports.verification.hashes import SUMS, write_hashes
from reports.verification.samples.stored_version import PAGE_FIGURES
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
    figure_files.write(folder)
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
    size = sum(path.stat().st_size for path in counted)
    assert data_figures(read)["all"] == {"sets": 1, "imported": 1, "files": len(counted), "bytes": size}


def test_hashes_and_tables_are_offered_with_the_others(version: Path) -> None:
    read = read_version(version, name=version.name)
    assert {f"own/{SUMS}", f"theirs/{SUMS}", "cases.csv", PAGE_FIGURES} < offered(read)
    assert {f"{one.name}/{name}" for one in stored_files(read) for name in one.files} < offered(read)
    assert all(name in listing(read).text for name in offered(read))


def test_the_verifier_finds_the_files_itself_and_names_a_change(version: Path, tmp_path: Path) -> None:
    def findings() -> list[str]:
        found = map(str, first.verify(tmp_path).findings)
        return [said for said in found if f"{PAGE_FIGURES}: data: " in said]

    assert findings() == []
    (bundle,) = (version / "theirs").rglob("*.json")
    bundle.write_text(bundle.read_text() + "\n")
    assert f"data: theirs.bytes_of.{bundle.relative_to(version / 'theirs')} is " in "".join(findings())
    shutil.rmtree(version / "theirs")
    assert "data: the list of what it says is ['all', 'own', 'theirs'], expected ['all', 'own']" in "".join(findings())


def test_what_env_check_said_beside_the_sets_is_offered_and_not_counted_with_samples() -> None:
    version = committed_version()
    found = data_figures(version)
    reports = found["env_check"]
    assert reports["files"] == len(version.env_checks) > 0
    assert {f"env_check/{one.name}.json" for one in version.env_checks} < offered(version)
    assert found["all"]["files"] == sum(len(one.files) for one in stored_files(version))
