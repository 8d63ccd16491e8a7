"""Results in the formats of other tools, from committed results: every value again in the file that they read."""

import ast
import csv
import json
from pathlib import Path

import pytest

from reports import export
from reports.analysis import CaseRow
from reports.result_sets import read_version
from suite.errors import ReportError
from tests.generated_results import full_results, write_results

RESULTS = Path(__file__).resolve().parents[1] / "reports" / "results" / "2026.11"
SET = RESULTS / "h200-x4"


@pytest.fixture(scope="module")
def rows() -> dict[str, CaseRow]:
    return {row.case_id: row for row in read_version(SET, name="").sets[0].campaign.rows}


def exported(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert export.main([str(SET), "--format", name]) == 0
    return capsys.readouterr().out


def test_github_action_benchmark_reads_one_value_a_case(
    rows: dict[str, CaseRow], capsys: pytest.CaptureFixture[str]
) -> None:
    entries = json.loads(exported("github", capsys))
    assert {entry["name"]: entry["value"] for entry in entries} == {name: row.total_fps for name, row in rows.items()}
    assert {entry["unit"] for entry in entries} == {"frames/s"}
    with_range = {entry["name"] for entry in entries if "range" in entry}
    assert with_range == {name for name, row in rows.items() if row.rounds_completed >= 3}


def test_bencher_has_bounds_around_every_value_with_an_interval(
    rows: dict[str, CaseRow], capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = json.loads(exported("bencher", capsys))
    assert metrics.keys() == rows.keys()
    for name, row in rows.items():
        for measure in metrics[name].values():
            assert ("lower_value" in measure) == (row.iteration_time_interval_s is not None)
            if "lower_value" in measure:
                assert measure["lower_value"] <= measure["value"] <= measure["upper_value"]


def test_csv_has_units_in_its_names_and_nothing_where_nothing_was_measured(
    rows: dict[str, CaseRow], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = list(csv.DictReader(exported("csv", capsys).splitlines()))
    assert {line["case_id"]: float(line["total_fps"]) for line in lines} == pytest.approx(
        {name: row.total_fps for name, row in rows.items()}
    )
    assert {line["joules_per_million_frames"] for line in lines} == {""}
    assert float(lines[0]["step_fps"]) > float(lines[0]["step_inference_fps"]) > float(lines[0]["total_fps"])


def test_a_reframe_test_has_the_measured_values_as_references(
    rows: dict[str, CaseRow], capsys: pytest.CaptureFixture[str]
) -> None:
    tree = ast.parse(exported("reframe", capsys))
    assigned = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert assigned["REFERENCES"] == {name: round(row.total_fps) for name, row in rows.items() if row.total_fps}
    assert 0 < assigned["ALLOWED_LOSS"] < 1
    assert [node.name for node in tree.body if isinstance(node, ast.ClassDef)] == ["LabscaleCase"]


def test_cases_without_a_measurement_are_left_out(tmp_path: Path) -> None:
    version = read_version(write_results(full_results(), tmp_path), name="")
    assert len(json.loads(export.github_action_benchmark(version))) == len(full_results()) - 1


def test_a_file_is_written_and_what_cannot_be_done_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    assert export.main([str(RESULTS), "--format", "bencher", "--out", str(out)]) == 0
    assert all(name.startswith("h200-x4: ") for name in json.loads(out.read_text()))
    assert export.main([str(SET), "--format", "csv", "--out", str(tmp_path / "no" / "folder.csv")]) != 0
    write_results(full_results(), tmp_path / "v" / "a")
    write_results(full_results(), tmp_path / "v" / "b")
    assert export.main([str(tmp_path / "v"), "--format", "reframe"]) == ReportError.exit_code
    assert "references of one system" in capsys.readouterr().err
