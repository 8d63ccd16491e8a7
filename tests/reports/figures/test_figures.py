"""Figures: each follows from its declaration, compares equal work alone, and is stored as it was computed."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from reports.data.columns import WORK
from reports.figures.kinds import Declaration, evaluated
from reports.figures.tables import FILE, computed, content, main, read_figures, runs_of
from reports.sets.version import read_version
from suite.errors import ReportError
from tests.fixtures.results.committed_results import committed_version, newest_version
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, on_gpus, write_results


@pytest.fixture
def version(tmp_path: Path) -> Path:
    results = [make_result(make_case(), 0.5, 1.0, 2.0), make_result(make_case(world_size=2), 0.55, 0.5, 0.605)]
    write_results(on_gpus(results), tmp_path / "gpus")
    write_results(results, tmp_path / "cpus")
    return tmp_path


def rows_of(version: Path) -> dict[str, dict[str, Any]]:
    assert main([str(version)]) == 0
    return {name: dict(row) for name, row in read_figures(version).items()}


def test_a_configuration_has_its_time_its_runs_and_its_share_of_ideal(version: Path) -> None:
    rows = rows_of(version)
    times = (row for name, row in rows.items() if name.startswith("gpus/") and name.endswith("/iteration_s"))
    on_one, on_two = times
    assert (on_one["runs"], on_one["value"]) == (3, pytest.approx(1.0))
    (speedup,) = (row for name, row in rows.items() if name.endswith("/over_gpus"))
    (kept,) = (row for name, row in rows.items() if name.endswith("/share_kept"))
    assert speedup["value"] == pytest.approx(1.0 / 0.55)
    assert kept["value"] == pytest.approx(1.0 / 0.55 / 2)
    assert (speedup["of"], speedup["over"]) == (on_two["of"], on_one["of"])
    assert kept["status"] in {"clear", "within noise"}


def test_no_speed_of_a_cpu_is_compared(version: Path) -> None:
    assert not [row for name, row in rows_of(version).items() if name.startswith("cpus/") and row["over"]]


def test_runs_that_shared_their_gpu_have_completed_without_a_time(tmp_path: Path) -> None:
    cases = [make_case(num_envs_global=size, device="cuda", only_learning=True) for size in (128, 256)]
    crashed = failed_result(make_case(world_size=2, only_learning=True), outcome="crashed", reason="x")
    write_results([*(make_result(case, 0.5, 0.6) for case in cases), crashed], tmp_path / "gpu")
    known = runs_of(read_version(tmp_path, name="v"))
    assert known.completed["configuration"].to_list() == [cases[0].case_id] * 2 + [cases[1].case_id] * 2
    assert known.every["iteration_s"].null_count() == known.every["power_w"].null_count() == 5
    assert known.completed["peak_memory_gb"].to_list() == [2.5] * 4
    rows = {name: row for name, row in rows_of(tmp_path).items() if name.startswith("gpu/")}
    assert [rows[f"gpu/{case.case_id}/last_reward"]["runs"] for case in cases] == [2, 2]
    assert not [name for name, row in rows.items() if row["over"] or row["column"].endswith("_s")]


def test_figures_in_git_are_those_of_the_report() -> None:
    """Whoever changes a rule of figures writes the file anew: ``python -m reports.figures.tables VERSION``."""
    for version in (committed_version(), newest_version()):
        assert content(computed(version), "csv") == (version.folder / FILE).read_bytes()


def test_a_pair_differs_in_what_is_named_and_the_ratio_inverts() -> None:
    committed = runs_of(committed_version())
    pairs = list(committed.pairs())
    assert {pair.change.column for pair in pairs} >= {"gpus", "environments_per_gpu", "library", "physics", "is_tuned"}
    for pair in pairs:
        may = {pair.change.column, *pair.change.entails}
        assert pair.of[pair.change.column] != pair.over[pair.change.column]
        assert all(
            pair.of[column.name] == pair.over[column.name] for column in WORK if column.name not in may | {"seed"}
        )
    pair = next(pair for pair in pairs if pair.change.column == "physics")
    ratio, inverse = committed.ratio(pair.of, pair.over), committed.ratio(pair.over, pair.of)
    assert ratio.value * inverse.value == pytest.approx(1)
    assert ratio.interval is not None
    assert inverse.interval == pytest.approx((1 / ratio.interval[1], 1 / ratio.interval[0]))


def test_kinds_without_a_run_say_nothing() -> None:
    committed, nobody = runs_of(committed_version()), {"set": "none"}
    for kind in ("mean", "average", "median", "least", "most", "count", "slope"):
        figure = evaluated(Declaration(id="x", kind=kind, column="iteration_s", of=nobody), committed)
        assert (figure.value, figure.runs) == (None, 0)


def test_statistics_of_a_column_are_those_of_its_runs(version: Path) -> None:
    stored = runs_of(read_version(version, name="v"))
    of = {"set": "gpus", "gpus": "1"}
    values = {
        kind: evaluated(Declaration(id="x", kind=kind, column="iteration_s", of=of), stored).value
        for kind in ("mean", "average", "median", "least", "most", "count")
    }
    assert values == pytest.approx(
        {"mean": 1.0, "average": 3.5 / 3, "median": 1.0, "least": 0.5, "most": 2.0, "count": 3}
    )


def test_a_spreadsheet_runs_nothing_of_a_table() -> None:
    table = pl.DataFrame({"task": ['=HYPERLINK("https://example.org")', "Ant"]})
    assert b"\n\"'=HYPERLINK" in content(table, "csv")
    assert b"\nAnt" in content(table, "csv")


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("id,kind\n1,2,3,4\n")
    with pytest.raises(ReportError, match=FILE):
        read_figures(tmp_path)
