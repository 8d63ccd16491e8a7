"""Results in the formats of other tools, from committed results: every value again in the file that they read."""

import ast
import json
import re
from pathlib import Path

import polars as pl
import pytest

from reports.export import command as export
from reports.sets.version import read_version
from suite.errors import ReportError, StoreError, UsageError
from suite.records.store import load_results
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.results.generated_results import full_results, make_case, make_result, write_results

SET = RESULTS / "h200-x4"


@pytest.fixture(scope="module")
def speeds() -> dict[str, export.Speed]:
    return {speed.name: speed for speed in export.speeds(read_version(SET, name=""))}


def exported(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert export.main([str(SET), "--format", name]) == 0
    return capsys.readouterr().out


def test_github_action_benchmark_reads_one_value_a_configuration(
    speeds: dict[str, export.Speed], capsys: pytest.CaptureFixture[str]
) -> None:
    entries = json.loads(exported("github", capsys))
    assert {entry["name"]: entry["value"] for entry in entries} == {
        name: speed.frames_per_s["value"] for name, speed in speeds.items()
    }
    assert {entry["unit"] for entry in entries} == {"frames/s"}
    # As its reader (extractRangeInfo) takes a range apart: from two characters on, and what follows is a number.
    ranges = [re.search(r"(?:\+-|±)\s*(\d.+)", entry["range"]) for entry in entries if "range" in entry]
    assert all(match is not None and float(match[1]) > 0 for match in ranges)
    assert len({entry["name"] for entry in entries}) == len(entries)
    for entry in entries:
        kept = speeds[entry["name"]].share_kept
        shares = re.findall(r", ([\d.]+) of the ideal speed", entry["extra"])
        assert shares == ([f"{kept['value']:.3f}"] if kept else [])


def test_bencher_follows_its_published_schema(
    speeds: dict[str, export.Speed], capsys: pytest.CaptureFixture[str]
) -> None:
    """https://bencher.dev/bmf.json, stricter: no other keys, finite numbers, names within its lengths."""
    metrics = json.loads(exported("bencher", capsys), parse_constant=pytest.fail)
    assert metrics.keys() == speeds.keys()
    for name, measures in metrics.items():
        assert 0 < len(name) <= 1024
        assert measures.keys() == {"total-fps", "iteration-time-s"}
        for measure in measures.values():
            bounds = {"lower_value", "upper_value"} if speeds[name].iteration_s["low"] is not None else set()
            assert measure.keys() == {"value", *bounds}
            assert all(type(number) is float and number > 0 for number in measure.values())
            assert not bounds or measure["lower_value"] <= measure["value"] <= measure["upper_value"]


def test_tables_are_written_into_a_folder(tmp_path: Path) -> None:
    for suffix, read in (("csv", pl.read_csv), ("parquet", pl.read_parquet)):
        folder = tmp_path / suffix
        assert export.main([str(SET), "--format", suffix, "--out", str(folder)]) == 0
        assert {path.name for path in folder.iterdir()} == {
            f"{name}.{suffix}" for name in ("runs", "iterations", "checks", "figures")
        }
        assert len(read(folder / f"runs.{suffix}")) == sum(len(result.rounds) for result in load_results(SET))
    assert export.main([str(SET), "--format", "csv"]) == UsageError.exit_code  # without --out


def test_a_reframe_test_has_the_measured_values_as_references(
    speeds: dict[str, export.Speed], capsys: pytest.CaptureFixture[str]
) -> None:
    tree = ast.parse(exported("reframe", capsys))
    assigned = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert assigned["REFERENCES"] == {
        name: {"total_fps": round(speed.frames_per_s["value"]), "gpus": speed.row["gpus"]}
        for name, speed in speeds.items()
    }
    assert 0 < assigned["ALLOWED_LOSS"] < 1
    assert assigned["MATRIX"] == "full"
    assert [node.name for node in tree.body if isinstance(node, ast.ClassDef)] == ["LabscaleConfiguration"]


def test_a_reframe_test_of_cases_that_its_matrix_lacks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = make_case("cartpole-strong", num_envs_global=512, variant="fixed_updates")
    write_results([make_result(case, 0.5)], tmp_path)
    assert export.main([str(tmp_path), "--format", "reframe"]) == ReportError.exit_code
    assert f"The matrix full has no configuration {case.case_id}" in capsys.readouterr().err
    assert export.main([str(tmp_path), "--format", "reframe", "--matrix", "smoke"]) == 0
    text = capsys.readouterr().out
    assert 'MATRIX = "smoke"' in text
    assert '"gpus": 0' in text
    assert export.main([str(tmp_path), "--format", "bencher", "--matrix", "smoke"]) == UsageError.exit_code


def test_several_versions_are_no_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert export.main([str(RESULTS.parent), "--format", "bencher"]) == StoreError.exit_code
    message = capsys.readouterr().err
    assert message.startswith(f"{RESULTS.parent} is not one set of results; below it there are 2026.11/")
    assert "Move" not in message


def test_several_sets_have_their_names_and_no_system_for_reframe(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_results(full_results(), tmp_path / "v" / name)
    out = tmp_path / "figures.json"
    assert export.main([str(tmp_path / "v"), "--format", "bencher", "--out", str(out)]) == 0
    sets = [name.partition(": ")[0] for name in json.loads(out.read_text())]
    num_measured = len(full_results()) - 1  # without the case that was skipped
    assert sorted(sets) == ["a"] * num_measured + ["b"] * num_measured
    assert export.main([str(tmp_path / "v"), "--format", "reframe"]) == ReportError.exit_code
    nowhere = str(tmp_path / "no" / "file.json")
    assert export.main([str(SET), "--format", "bencher", "--out", nowhere]) == ReportError.exit_code
