"""Files of sets, as the page counts and offers them."""

import re
import shutil
from pathlib import Path

import pytest

from reports.export.downloads import TABLES, files, stored_files
from reports.figures import tables
from reports.pages.data import answer, citation, downloads, less_evidence, listing, run_logs
from reports.sets.version import read_version
from reports.verification.hashes import SUMS, write_hashes
from suite.records.folders import RUN_LOG
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


def test_files_of_a_set_are_counted_listed_with_their_machine_and_offered(version: Path) -> None:
    read = read_version(version, name=version.name)
    (own,) = stored_files(read)
    files_with_samples = [path for path in (version / "own").rglob("*") if path.is_file() and path.name != SUMS]
    assert {*own.files.values()} == {*files_with_samples}
    assert answer(read).text.startswith(f"{len(files_with_samples)} files (")
    _, row = listing(read).text.splitlines()
    assert row.split("\t") == ["own", "1 x H200, 16 vCPU, 28 Nov 2026", str(len(own.files)), "own"]
    links = re.findall(r'href="data/([^"]+)"', listing(read).markup + downloads().markup)
    assert links == [f"own/{SUMS}", *TABLES]
    assert {*links, *(f"{own.name}/{name}" for name in own.files)} <= files(read).keys()


def test_a_run_log_is_offered_and_is_not_witnessed_without_an_address(version: Path) -> None:
    assert run_logs(read_version(version, name=version.name)).text == "No run log, so not witnessed: 1 set."
    (version / "own" / RUN_LOG).write_text("{}\n")
    read = read_version(version, name=version.name)
    assert f"own/{RUN_LOG}" in files(read)
    assert "not witnessed" in run_logs(read).text
    address = "https://example.org/commit/1"
    (version / "report.toml").write_text(f'[[set]]\nfolder = "own"\nwitness = "{address}"\n')
    assert f'href="{address}"' in run_logs(read_version(version, name=version.name)).markup


def test_an_archived_set_is_said_to_have_less_evidence_and_a_version_without_one_says_nothing(version: Path) -> None:
    assert less_evidence(read_version(version, name="v")).text == ""
    assert "4 x H200, 21 Nov 2026: the first campaign: " in less_evidence(committed_version()).text


def test_bibtex_has_the_version_and_its_year() -> None:
    assert citation(committed_version()).text.endswith(
        "@misc{labscale-2026.11,\n  author = {{The labscale authors}},\n"
        "  title = {How {Isaac Lab} training scales, report 2026.11},\n"
        "  version = {2026.11},\n  year = {2026}\n}"
    )
