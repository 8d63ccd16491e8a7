"""Committed sets of results, damaged: each damage has to be named, and nothing else."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from reports import verify as program
from reports.verification.finding import RESTORE
from reports.verification.hashes import SUMS, write_hashes
from suite.errors import ResultsDiffer, StoreError, UsageError
from suite.records import store
from suite.statistics.aa_noise import twin_pairs, write_noise
from tests.fixtures.results.damaged_results import (
    CASE,
    COMMITTED,
    PAIRS,
    VERSION,
    Damage,
    column,
    copy_without_hashes,
    damage,
    findings,
    rounds,
    set_item,
)
from tests.fixtures.results.generated_results import make_case, make_result, write_results


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_without_hashes(PAIRS, tmp_path / "set")


def test_every_result_in_git_is_what_its_samples_say() -> None:
    verified = program.verify(COMMITTED)
    assert [str(finding) for finding in verified.findings] == []
    assert verified.cases > 300
    assert verified.samples > 37_000
    assert verified.hashed_files >= 33
    assert [folder for folder in program.set_folders(COMMITTED) if not (folder / SUMS).is_file()] == []


def test_a_set_of_a_version_must_have_its_hashes(tmp_path: Path) -> None:
    copy = shutil.copytree(PAIRS, tmp_path / "v" / "theirs")
    (copy.parent / "report.toml").write_text('[[set]]\nfolder = "theirs"\ncontributed_by = "Lab"\n')
    assert findings(copy) == []
    (copy / SUMS).unlink()
    assert [(one.where, one.got) for one in findings(copy)] == [(SUMS, "missing")]
    assert program.main([str(copy.parent), "--write-hashes"]) == 0
    sums = (copy / SUMS).read_text()
    (copy / SUMS).write_text(sums.replace(sums[:8], "0" * 8, 1))
    assert [finding.what for finding in findings(copy)] == ["its SHA-256"]


def test_a_torn_file_is_named(folder: Path) -> None:
    text = (folder / CASE).read_text()
    (folder / CASE).write_text(text[: len(text) // 2])
    said = next(str(one) for one in findings(folder) if one.where == CASE)
    assert "corrupt, not JSON" in said
    assert "run again" not in said  # whoever verifies what others published has nothing to run
    assert said.endswith(RESTORE)


@pytest.mark.parametrize("name", ["rl_games.step_inference_fps", "rl_games.total_fps"])
def test_what_no_labscale_writes_is_named(folder: Path, name: str) -> None:
    damage(folder / CASE, lambda stored: column(stored, name).__setitem__(3, 0.0))
    (found,) = (one for one in findings(folder) if "cannot be checked to its end" in one.got)
    assert found.where == CASE
    assert program.main([str(folder)]) == ResultsDiffer.exit_code


def test_a_round_without_ranks_and_a_file_cut_short_are_named(folder: Path) -> None:
    damage(folder / CASE, lambda d: rounds(d)[0].update(ranks=[]))
    (folder / "upstream.json").write_text("[{")
    found = {finding.where: finding.what for finding in findings(folder)}
    assert found == {CASE: "round 0", "upstream.json": "the file"}


def test_a_line_of_hashes_that_was_cut_is_named(folder: Path) -> None:
    sums = write_hashes(folder)
    sums.write_bytes(sums.read_bytes()[:-10] + b"\n0123\n\xff")
    assert {finding.got for finding in findings(folder)} >= {"missing", f"not in {SUMS}"}


def test_a_file_under_another_name_and_a_case_twice_are_named(folder: Path) -> None:
    other = folder / "cases" / "ant-weak" / "rl_games-kitless-n4096-1x4.json"
    shutil.copy(folder / CASE, other)
    found = [finding.what for finding in findings(folder)]
    assert "the file's name" in found
    assert "the case ant-weak/rl_games-kitless-n2048-1x2" in found


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: set_item(d[3], "ours_s", 0.05), "[3].ours_s"),
        (lambda d: set_item(d[3], "library_s", 0.05), "[3].library_s"),
        (lambda d: set_item(d[3], "round", 7), "round 7 of"),
    ],
)
def test_damage_in_a_pair_is_named(folder: Path, change: Damage, what: str) -> None:
    damage(folder / "upstream.json", change)
    (finding,) = findings(folder)
    assert finding.where == "upstream.json"
    assert what in finding.what


def test_hashes_find_what_changes_no_figure(folder: Path) -> None:
    write_hashes(folder)
    assert findings(folder) == []
    done = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
    assert done.returncode == 0
    (folder / CASE).write_text((folder / CASE).read_text() + "\n")
    assert [finding.what for finding in findings(folder)] == ["its SHA-256"]
    (folder / CASE).unlink()
    missing = [finding for finding in findings(folder) if finding.where == CASE]
    assert [finding.got for finding in missing] == ["missing"]
    shutil.copy(PAIRS / CASE, folder / CASE)
    shutil.copy(PAIRS / CASE, folder / "cases" / "ant-weak" / "new.json")
    assert "not in SHA256SUMS" in {finding.got for finding in findings(folder)}


def test_a_noise_budget_follows_from_the_twins(tmp_path: Path) -> None:
    case = make_case()
    twin = replace(case, case_id=f"{case.case_id}-aa")
    results = [make_result(case, 1.0, 1.1, 1.2), make_result(twin, 1.0, 1.2, 1.3)]
    write_results(results[:1], tmp_path)
    path = tmp_path / "a_a" / f"{twin.case_id}.json"
    path.parent.mkdir(parents=True)
    (tmp_path / "cases" / f"{case.case_id}.json").rename(tmp_path / "kept.json")
    for result, place in zip(results, (tmp_path / "cases" / f"{case.case_id}.json", path), strict=True):
        store.write_case(result, place)
    write_noise(twin_pairs(results), tmp_path / "noise.json")
    assert findings(tmp_path) == []
    damage(tmp_path / "noise.json", lambda d: d.update(noise_budget=0.001))
    assert [finding.what for finding in findings(tmp_path)] == ["noise_budget"]


def test_the_verdict_of_an_interference_test_follows_from_its_rounds(tmp_path: Path) -> None:
    copy = copy_without_hashes(VERSION / "h200-x2-envs", tmp_path / "set")
    assert findings(copy) == []
    damage(copy / "packing.json", lambda d: d.update(difference=0.001))
    assert [(finding.where, finding.what) for finding in findings(copy)] == [("packing.json", ".difference")]
    (test,) = store.load_results(copy / "interference")
    path = copy / "interference" / f"{test.case.case_id}.json"
    path.unlink()
    store.write_case(replace(test, rounds=test.rounds[:11]), path)
    assert [finding.got for finding in findings(copy)] == ["11"]
    path.unlink()
    assert [finding.got for finding in findings(copy)] == ["0"]


def test_the_program_says_what_differs_and_how_many_it_looked_at(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder / "cases", folder / "report" / "data" / "results" / "cases")  # for download: no other cases
    assert program.main([str(folder.parent)]) == 0
    said = capsys.readouterr().out
    assert "9 cases, 26 rounds" in said
    assert "Without SHA256SUMS nothing tells whether the samples themselves are as they were measured" in said
    damage(folder / CASE, lambda d: set_item(d["benchmarks"][0]["stats"], "median", 0.05))
    assert program.main([str(folder.parent)]) == ResultsDiffer.exit_code
    said = capsys.readouterr().out
    assert f"set/{CASE}: stats.median is 0.05, expected 0.0905" in said
    assert said.endswith("hashed files: 1 fault found.\n")
    assert program.main([str(folder), "--write-hashes"]) == ResultsDiffer.exit_code
    assert not (folder / "SHA256SUMS").exists()
    assert program.main([str(folder), "--json"]) == ResultsDiffer.exit_code
    printed = capsys.readouterr().out
    assert json.loads(printed[printed.index("{\n") :])["findings"][0]["got"] == "0.05"


def test_hashes_that_cannot_be_written_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / SUMS).mkdir()
    assert program.main([str(folder), "--write-hashes"]) == StoreError.exit_code
    assert f"{folder / SUMS} cannot be written: Is a directory" in capsys.readouterr().err


def test_nothing_to_verify_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([str(tmp_path)]) == UsageError.exit_code
    assert "nothing to verify" in capsys.readouterr().err
