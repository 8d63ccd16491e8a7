"""The command ``verify``: sets, versions, hashes, known weaknesses, and what it prints."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from reports.__main__ import main as session
from reports.export import downloads
from reports.sets.version import read_version
from reports.verification import command as program
from reports.verification.finding import RESTORE
from reports.verification.first import read_weaknesses
from reports.verification.hashes import SUMS, write_hashes
from suite.campaign.runs.upstream import medians_of_rank_0
from suite.errors import ResultsDiffer, StoreError, UsageError
from suite.records.folders import set_folders
from suite.records.store import load_results
from tests.fixtures.results.damaged_results import (
    COMMITTED,
    RUN,
    VERSION,
    Damage,
    copy_without_hashes,
    damage,
    findings,
    put,
)  # fmt: skip

OPEN: Final = VERSION / "h200-open-rsl"  # has no known weakness but that it has no plan
MISSING: Final = (
    "round 0: imports_torch or start_s or collection_time_s or learning_time_s",
    "missing in a process, or in an iteration of it",
)
CASE: Final = "cases/cartpole-open/rsl_rl-kitless-n4096-1x1.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_without_hashes(OPEN, tmp_path / "set")


@pytest.fixture
def with_pairs(tmp_path: Path) -> Path:
    """Pairs by today's rule, by the code that stores them."""
    folder = copy_without_hashes(VERSION / "h200-x2-pairs-2", tmp_path / "set")
    results = load_results(folder)
    records = {(result.case.case_id, record.round): record for result in results for record in result.completed}
    pairs = json.loads((folder / "upstream.json").read_text())
    for pair in pairs:
        ours_s, library_s = medians_of_rank_0(records[pair["configuration_id"], pair["run"]])
        pair |= {"ours_s": ours_s, "library_s": library_s, "theirs_iterations_s": [pair["theirs_s"]]}
    (folder / "upstream.json").write_text(json.dumps(pairs))
    return folder


@pytest.fixture
def version(tmp_path: Path) -> Path:
    """A version of one set whose plan is missing, which is listed."""
    shutil.copytree(OPEN, tmp_path / "2026.11" / "theirs")
    (tmp_path / "2026.11" / "report.toml").write_text('[[set]]\nfolder = "theirs"\ncontributed_by = "Lab"\n')
    (tmp_path / "2026.11" / "weaknesses.toml").write_text(weakness("plan.json", "missing in 1 set"))
    write_hashes(tmp_path / "2026.11")
    return tmp_path / "2026.11"


def weakness(what: str, got: str, where: str = ".") -> str:
    return f'[[weakness]]\nwhere = "{where}"\nwhat = "{what}"\ngot = "{got}"\nwhy = "It was not stored."\n'


def test_every_result_in_git_is_what_its_samples_say() -> None:
    verified = program.verify_folder(COMMITTED)
    assert [str(finding) for finding in verified.findings] == []
    assert verified.cases > 300
    assert verified.published_cases > 450
    assert verified.samples > 37_000
    assert verified.hashed_files >= 33
    assert [folder for folder in set_folders(COMMITTED) if not (folder / SUMS).is_file()] == []


def test_the_files_that_the_pages_offer_are_what_their_samples_say(tmp_path: Path) -> None:
    version = read_version(COMMITTED / "2026.11", name="2026.11")
    downloads.write(version, tmp_path)
    verified = program.verify_folder(tmp_path / "data")
    assert [str(finding) for finding in verified.findings] == []
    assert verified.published_cases == 300
    assert len(verified.known_weaknesses) == len(read_weaknesses(VERSION))


def test_a_set_of_a_version_has_the_known_weaknesses_of_the_version() -> None:
    verified = program.verify_folder(VERSION / "h200-x4-pairs")
    assert verified.findings == ()
    assert {finding.what for finding in verified.known_weaknesses} >= {"the reason why no further round ran"}


# --- known weaknesses ---


def test_only_a_weakness_in_the_very_words_is_known(version: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert session("verify", [str(version)]) == 0
    assert "1 known weakness, listed in weaknesses.toml with the reason." in capsys.readouterr().out
    listed = (version / "weaknesses.toml").read_text()
    (version / "weaknesses.toml").write_text(listed.replace("1 set", "2 sets"))
    write_hashes(version)
    said = [(finding.where, finding.got) for finding in findings(version)]
    assert said == [(".", "missing in 1 set"), ("weaknesses.toml", "not found any more")]


def test_samples_that_contradict_each_other_are_no_weakness(version: Path) -> None:
    """Whoever forges samples could else list what is found."""
    damage(version / "theirs" / CASE, put(f"{RUN}/exit_code", 1))
    listed = weakness("round 0: exit_code", "1", where=f"theirs/{CASE}")
    (version / "weaknesses.toml").write_text((version / "weaknesses.toml").read_text() + listed)
    for folder in (version / "theirs", version):
        write_hashes(folder)
    assert "round 0: exit_code" in [finding.what for finding in findings(version)]
    assert "not found any more" not in [finding.got for finding in findings(version)]


@pytest.mark.parametrize(
    "text", ['[[weakness]]\nwhat = "a"\n', "[[weakness", weakness("a", " "), "\xff", "weakness = 5"]
)
def test_a_list_of_weaknesses_needs_all_of_each(version: Path, text: str) -> None:
    (version / "weaknesses.toml").write_bytes(text.encode("latin-1"))
    write_hashes(version)
    assert "refused" in {finding.where: finding.got for finding in findings(version)}["weaknesses.toml"]


# --- hashes ---


@pytest.mark.parametrize(
    ("change", "where", "said"),
    [
        (lambda v: (v / "new.txt").write_text("new"), "new.txt", "not in SHA256SUMS"),
        (lambda v: (v / "env_check").mkdir() or (v / "env_check" / "a.json").touch(), "env_check/a.json", "not in"),
        (lambda v: (v / "theirs" / "run.log").touch(), "theirs/run.log", "not in SHA256SUMS"),
        (lambda v: (v / "report.toml").write_text("# none\n"), "report.toml", ""),
        (lambda v: (v / "theirs" / CASE).unlink(), f"theirs/{CASE}", "missing"),
        (lambda v: (v / SUMS).unlink(), SUMS, "missing"),
        (lambda v: (v / "theirs" / SUMS).unlink(), f"theirs/{SUMS}", "missing"),
    ],
)
def test_hashes_of_a_version_cover_every_file(version: Path, change: Any, where: str, said: str) -> None:
    change(version)
    assert any(finding.where == where and finding.got.startswith(said) for finding in findings(version))


def test_hashes_are_written_of_sets_first(version: Path) -> None:
    for path in version.rglob(SUMS):
        path.unlink()
    assert session("verify", [str(version), "--write-hashes"]) == 0
    assert findings(version) == []
    assert f"theirs/{SUMS}" in (version / SUMS).read_text()


def test_hashes_of_what_is_wrong_are_not_written(version: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sums = (version / SUMS).read_text()
    damage(version / "theirs" / CASE, put("benchmarks/0/stats/median", 0.05))
    assert session("verify", [str(version), "--write-hashes"]) == ResultsDiffer.exit_code
    assert "No hashes were written" in capsys.readouterr().err
    assert (version / SUMS).read_text() == sums


def test_hashes_find_what_changes_no_figure(folder: Path) -> None:
    write_hashes(folder)
    assert findings(folder) == []
    done = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
    assert done.returncode == 0
    (folder / CASE).write_text((folder / CASE).read_text() + "\n")
    assert [finding.what for finding in findings(folder)] == ["its SHA-256 in SHA256SUMS"]
    (folder / SUMS).write_text((folder / SUMS).read_text()[:-10] + "\n0123\n")
    assert {finding.got for finding in findings(folder)} >= {"missing", f"not in {SUMS}"}


@pytest.mark.parametrize("line", ["word", "0123  /etc/passwd", "0123  ../other.json"])
def test_lines_of_hashes_that_name_nothing_of_the_set_are_missing(folder: Path, line: str) -> None:
    (folder / SUMS).write_text(f"{line}\n")
    (finding,) = (finding for finding in findings(folder) if finding.got == "missing")
    assert finding.where == line.rsplit(maxsplit=1)[-1]


def test_hashes_that_cannot_be_written_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / SUMS).mkdir()
    assert session("verify", [str(folder), "--write-hashes"]) == StoreError.exit_code
    assert f"{folder / SUMS} cannot be written: Is a directory" in capsys.readouterr().err


# --- files of a set ---


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("labscale/schema_version", 99), "schema_version is 99"),
        (lambda document: document.pop("labscale"), "it has no labscale"),
        (lambda document: document["labscale"]["runs"][1].pop("reason"), "runs.1.reason"),
        (put("labscale/runs", []), "has no runs"),
        (put(f"{RUN}/wall_time_s", float("nan")), "runs.0.wall_time_s"),
        (put(f"{RUN}/ranks", []), "its ranks are []"),
        (put(f"{RUN}/started_utc", "2026-11-21T10:00:00"), "its started_utc is"),  # of which zone?
    ],
)
def test_a_file_that_no_report_can_read_is_refused(folder: Path, change: Damage, words: str) -> None:
    damage(folder / CASE, change)
    (got,) = (finding.got for finding in findings(folder) if (finding.where, finding.what) == (CASE, "the file"))
    assert words in got
    assert session("verify", [str(folder)]) == ResultsDiffer.exit_code


@pytest.mark.parametrize(("asked", "ranks"), [("2.11", 0), ("2.11.0", 0), ("2.11.1", 3)])
def test_packages_asked_for_are_installed_whatever_zeros_end_the_version(folder: Path, asked: str, ranks: int) -> None:
    damage(folder / CASE, put("labscale/configuration/with_packages", [f"torch=={asked}"]))
    assert [finding.got for finding in findings(folder) if "versions.torch" in finding.what] == ["2.11.0"] * ranks


@pytest.mark.parametrize(
    ("change", "what", "got"),
    [
        (put("commit_info/id", "0" * 40), "commit_info.id", "0" * 40),
        (put("labscale/runs/1/run", 7), "the numbers of the rounds[1]", "2"),
        (put(f"{RUN}/ranks/0/phases_s", {}), *MISSING),
        (put(f"{RUN}/ranks/0/samples/start_s/3", None), *MISSING),
        (put(f"{RUN}/ranks/0/samples/learning_time_s/3", None), *MISSING),
        (lambda document: document.pop("machine_info"), "the field machine_info", "missing"),
    ],
)
def test_what_is_missing_is_named(folder: Path, change: Damage, what: str, got: str) -> None:
    damage(folder / CASE, change)
    assert [finding.got for finding in findings(folder) if (finding.where, finding.what) == (CASE, what)] == [got]


@pytest.mark.parametrize("name", [CASE, "plan.json", "upstream.json", "runs.log"])
@pytest.mark.parametrize("text", [" \n", "[" * 100_000, "\xff", "1"])
def test_a_file_that_is_none_is_named(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="latin-1")
    named = [finding for finding in findings(folder) if finding.where == name]
    assert named[0].what == "the file"
    assert RESTORE in str(named[0])


def test_a_file_under_another_name_is_named(folder: Path) -> None:
    shutil.copy(folder / CASE, folder / CASE.replace("4096", "8192"))
    assert "the file's name" in {finding.what for finding in findings(folder)}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (put("1/ours_s", 0.05), "[1].ours_s"),
        (put("1/library_s", 0.05), "[1].library_s"),
        (put("1/theirs_s", -1.0), "1.theirs_s"),
        (put("1/run", 7), "[1]: round 7 of"),
    ],
)
def test_damage_in_a_pair_is_named(with_pairs: Path, change: Damage, what: str) -> None:
    damage(with_pairs / "upstream.json", change)
    (finding,) = findings(with_pairs)
    assert finding.where == "upstream.json"
    assert what in str(finding)


# --- what it prints ---


def test_the_program_says_what_differs_and_how_many_it_looked_at(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder / "cases", folder / "report" / "data" / "results" / "cases")  # for download: no other cases
    assert session("verify", [str(folder.parent)]) == 0
    said = capsys.readouterr().out
    assert "8 configurations, 24 runs" in said
    assert "Without SHA256SUMS nothing shows whether the samples themselves are as they were measured" in said
    damage(folder / CASE, put("benchmarks/0/stats/median", 0.05))
    assert session("verify", [str(folder.parent)]) == ResultsDiffer.exit_code
    said = capsys.readouterr().out
    assert f"set/{CASE}: benchmarks[0].stats.median is 0.05, expected 0." in said
    assert said.endswith("hashed files: 1 fault found.\n")
    assert session("verify", [str(folder), "--write-hashes"]) == ResultsDiffer.exit_code
    assert not (folder / "SHA256SUMS").exists()
    assert session("verify", [str(folder), "--json"]) == ResultsDiffer.exit_code
    printed = capsys.readouterr().out
    verified = json.loads(printed[printed.index("{\n") :])
    assert verified["findings"][0]["got"] == "0.05"
    assert verified.keys() >= {"cases", "rounds", "samples", "hashed_files", "findings"}


def test_nothing_to_verify_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert session("verify", [str(tmp_path)]) == UsageError.exit_code
    assert "nothing to verify" in capsys.readouterr().err
