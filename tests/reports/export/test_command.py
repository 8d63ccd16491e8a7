"""Results in the formats of other tools: what those read, and what cannot be exported."""

import json
from pathlib import Path

import polars as pl
import pytest

from reports.__main__ import main as session
from suite.errors import ReportError, StoreError, UsageError
from suite.records.store import load_results
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.results.generated_results import full_results, make_case, make_result, write_results

SET = RESULTS / "h200-x4"
GOLDEN = Path(__file__).parents[2] / "golden" / "export"


@pytest.mark.parametrize("name", ["github", "bencher", "reframe"])
def test_an_export_is_as_it_was_looked_at(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """github-action-benchmark takes a range apart after its sign; Bencher's schema is https://bencher.dev/bmf.json."""
    of_rl_games = [result for result in full_results() if result.case.rl_library == "rl_games"]
    assert session("export", [str(write_results(of_rl_games, tmp_path)), "--format", name]) == 0
    assert capsys.readouterr().out == (GOLDEN / f"{name}.txt").read_text()


def test_tables_are_written_into_a_folder(tmp_path: Path) -> None:
    for suffix, read in (("csv", pl.read_csv), ("parquet", pl.read_parquet)):
        folder = tmp_path / suffix
        assert session("export", [str(SET), "--format", suffix, "--out", str(folder)]) == 0
        assert {path.name for path in folder.iterdir()} == {
            f"{name}.{suffix}" for name in ("runs", "iterations", "checks", "figures")
        }
        assert len(read(folder / f"runs.{suffix}")) == sum(len(result.rounds) for result in load_results(SET))
    assert session("export", [str(SET), "--format", "csv"]) == UsageError.exit_code  # without --out


def test_a_reframe_test_of_cases_that_its_matrix_lacks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = make_case("cartpole-strong", num_envs_global=512, variant="fixed_updates")
    write_results([make_result(case, 0.5)], tmp_path)
    assert session("export", [str(tmp_path), "--format", "reframe"]) == ReportError.exit_code
    assert f"The matrix full has no configuration {case.case_id}" in capsys.readouterr().err
    assert session("export", [str(tmp_path), "--format", "reframe", "--matrix", "smoke"]) == 0
    text = capsys.readouterr().out
    assert 'MATRIX = "smoke"' in text
    assert '"gpus": 0' in text
    assert session("export", [str(tmp_path), "--format", "bencher", "--matrix", "smoke"]) == UsageError.exit_code


def test_several_versions_are_no_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert session("export", [str(RESULTS.parent), "--format", "bencher"]) == StoreError.exit_code
    message = capsys.readouterr().err
    assert message.startswith(f"{RESULTS.parent} is not one set of results; below it there are 2026.11/")
    assert "Move" not in message


def test_several_sets_have_their_names_and_no_system_for_reframe(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_results(full_results(), tmp_path / "v" / name)
    out = tmp_path / "figures.json"
    assert session("export", [str(tmp_path / "v"), "--format", "bencher", "--out", str(out)]) == 0
    sets = [name.partition(": ")[0] for name in json.loads(out.read_text())]
    num_measured = len(full_results()) - 1  # without the case that was skipped
    assert sorted(sets) == ["a"] * num_measured + ["b"] * num_measured
    assert session("export", [str(tmp_path / "v"), "--format", "reframe"]) == ReportError.exit_code
    nowhere = str(tmp_path / "no" / "file.json")
    assert session("export", [str(SET), "--format", "bencher", "--out", nowhere]) == ReportError.exit_code
