"""Figures: each follows from its declaration, compares equal work alone, and is stored as it was computed."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from reports.figures.kinds import Declaration, evaluated
from reports.figures.tables import COLUMNS, FILE, computed, content, main, read_figures, rows_by_id, runs_of
from reports.sets.version import read_version
from suite.errors import ReportError
from tests.fixtures.results.committed_results import committed_version, newest_version
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, write_results


def test_runs_that_shared_their_gpu_have_completed_without_a_time(tmp_path: Path) -> None:
    cases = [make_case(num_envs_global=size, device="cuda", only_learning=True) for size in (128, 256)]
    crashed = failed_result(make_case(world_size=2, only_learning=True), outcome="crashed", reason="x")
    write_results([*(make_result(case, 0.5, 0.6) for case in cases), crashed], tmp_path / "gpu")
    known = runs_of(read_version(tmp_path, name="v"))
    assert known.completed["configuration"].to_list() == [cases[0].case_id] * 2 + [cases[1].case_id] * 2
    assert known.every["iteration_s"].null_count() == known.every["power_w"].null_count() == 5
    assert known.completed["peak_memory_gb"].to_list() == [2.5] * 4
    assert main([str(tmp_path)]) == 0
    rows = {name: row for name, row in read_figures(tmp_path).items() if name.startswith("gpu/")}
    assert [rows[f"gpu/{case.case_id}/last_reward"]["runs"] for case in cases] == [2, 2]
    assert not [name for name, row in rows.items() if row["over"] or row["column"].endswith("_s")]


def test_figures_in_git_are_those_of_the_report() -> None:
    """Whoever changes a rule of figures writes the file anew: ``python -m reports.figures.tables VERSION``."""
    for version in (committed_version(), newest_version()):
        assert content(computed(version), "csv") == (version.folder / FILE).read_bytes()


def test_more_gpus_than_ran_bring_a_reward_as_if_the_last_doubling_went_on() -> None:
    rows, line = read_figures(newest_version().folder), "h200-x4/ant-weak/rl_games-kitless-n"

    def value(name: str) -> float:
        return float(rows[line + name]["value"])

    fewer_frames = value("1024-1x1/16/fewer_frames")
    faster = value("4096-1x4/over_gpus") * (value("4096-1x4/over_gpus") / value("2048-1x2/over_gpus")) ** 2
    assert value("1024-1x1/16/sooner_predicted") == pytest.approx(fewer_frames * faster)


def test_the_command_writes_them(tmp_path: Path) -> None:
    write_results([make_result(make_case(), 0.5, 1.0, 2.0)], tmp_path / "one")
    assert main([str(tmp_path)]) == 0
    (time_s,) = (row for name, row in read_figures(tmp_path).items() if name.endswith("/iteration_s"))
    assert (time_s["value"], time_s["runs"]) == (pytest.approx(1.0), 3)


def test_kinds_without_a_run_say_nothing() -> None:
    committed, nobody = runs_of(committed_version()), {"set": "none"}
    for kind in ("mean", "average", "median", "least", "most", "count", "slope"):
        (figure,) = evaluated([Declaration(id="x", kind=kind, column="iteration_s", of=nobody)], committed)
        assert (figure.value, figure.runs) == (None, 0)


def test_a_spreadsheet_runs_nothing_of_a_table() -> None:
    table = pl.DataFrame({"task": ['=HYPERLINK("https://example.org")', "Ant"]})
    assert b"\n\"'=HYPERLINK" in content(table, "csv")
    assert b"\nAnt" in content(table, "csv")


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (["a,mean,b,c,d,s,x,1,2,3,clear"], "value"),
        (["a,mean,b,c,d,s,,1,2,3,clear"], "value"),
        (["a,mean,b,c,d,s,1,1,,3,clear"], "interval"),
        (["a,mean,b,c,d,s,1,1,2,3,clear"] * 2, "an id"),
        (["1,2,3,4", "1,2,3,4,5,6,7,8,9,10,11,12"], ""),
    ],
)
def test_a_file_that_is_no_table_is_named(tmp_path: Path, rows: Sequence[str], fault: str) -> None:
    (tmp_path / FILE).write_text("\n".join([",".join(COLUMNS), *rows]))
    with pytest.raises(ReportError, match=rf"{FILE} .*{fault}.*tables") as refused:
        read_figures(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_figure_that_a_table_lacks_is_named() -> None:
    version = newest_version()
    with pytest.raises(ReportError, match=rf"{FILE} has no figure total/nothing"):
        rows_by_id(version)["total/nothing"]
