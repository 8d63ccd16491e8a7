"""Tables of stored results: a row for each run and each iteration, null where nothing was measured."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from reports.data.columns import RUN_COLUMNS, WORK
from reports.data.frames import runs
from reports.figures.tables import runs_of
from reports.sets.version import Version, read_version
from suite.statistics.reduce import round_time_s
from tests.fixtures.results.committed_results import committed_version, newest_version
from tests.fixtures.results.generated_results import make_case, make_result, write_results


def stored_runs() -> pl.DataFrame:
    """The table of every run of 2026.11, made once by each test process."""
    return runs_of(committed_version()).every


def test_every_stored_run_is_a_row_and_its_time_is_that_of_the_statistics() -> None:
    table, sets = stored_runs(), committed_version().sets
    stored = [record for own in sets for result in own.campaign.with_twins for record in result.rounds]
    own = table.filter(~pl.col("is_alone"))
    assert len(own) == len(stored)
    times_s = [round_time_s(record) for record in stored if record.counts]
    assert own["iteration_s"].drop_nulls().to_list() == times_s
    assert set(table.filter(pl.col("outcome") != "completed")["iteration_s"].to_list()) <= {None}


def test_every_column_has_a_name_of_its_own_and_a_meaning() -> None:
    names = [column.name for column in RUN_COLUMNS]
    assert stored_runs().columns == names
    assert len(set(names)) == len(names)
    assert all(column.meaning for column in RUN_COLUMNS)
    assert {column.unit for column in RUN_COLUMNS if column.name.endswith("_s") and "per_s" not in column.name} == {"s"}


def test_no_start_is_judged_by_a_time_that_means_nothing(tmp_path: Path) -> None:
    results = [
        make_result(make_case(variant=name, only_learning=name == "learning"), 0.5, 0.5, 9.0)
        for name in ("alone", "learning")
    ]
    table = runs(read_version(write_results(results, tmp_path), name="v")).sort("variant", "run")
    assert table["start"].to_list() == ["warm", "warm", "cold", None, None, None]


def test_machines_are_not_compared_by_runs_of_which_nobody_knows_whether_they_were_alone() -> None:
    table = stored_runs()
    unknown = table.filter(pl.col("others_share").is_null() & pl.col("iteration_s").is_not_null())
    assert len(unknown) > 0
    assert unknown["one_gpu_training"].null_count() == len(unknown)


@pytest.mark.parametrize("version", [committed_version, newest_version])
def test_machines_are_compared_by_runs_of_equal_work_alone(version: Callable[[], Version]) -> None:
    trainings = runs_of(version()).every.filter(pl.col("one_gpu_training").is_not_null()).group_by("one_gpu_training")
    # The time of an iteration of one training does not depend on these; MPS was measured.
    apart = {"seed", "series", "scaling", "size", "variant", "minibatch_rule", "iterations", "mps"}
    work = [column.name for column in WORK if column.name not in apart]
    numbers = trainings.agg(pl.col(work).n_unique()).select(work)
    assert len(numbers) > 9
    assert {name: most for name, most in numbers.max().row(0, named=True).items() if most != 1} == {}
