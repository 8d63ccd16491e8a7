"""Tables of stored results: a row for each run and each iteration, null where nothing was measured."""

from pathlib import Path

import polars as pl

from reports.data.columns import IMPORTS, RUN_COLUMNS
from reports.data.frames import runs
from reports.figures.tables import runs_of, tables
from reports.sets.version import read_version
from suite.statistics.reduce import round_time_s
from tests.fixtures.results.committed_results import RESULTS, committed_version
from tests.fixtures.results.generated_results import full_results, make_case, make_result, write_results


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


def test_a_repeat_has_the_configuration_of_its_baseline() -> None:
    table = runs(read_version(RESULTS / "h200-x4-rsl", name="v"))
    repeats = table.filter(pl.col("is_repeat"))
    assert len(repeats) > 0
    assert set(repeats["configuration"]) <= set(table.filter(~pl.col("is_repeat"))["configuration"])


def test_iterations_and_checks_belong_to_runs() -> None:
    parts, keys = tables(committed_version()), ["set", "configuration", "is_repeat", "is_alone", "run"]
    table, iterations = parts["runs"], parts["iterations"]
    for part in (iterations, parts["checks"]):
        assert part.select(keys).unique().join(table.select(keys), on=keys, how="anti").is_empty()
    last = iterations.group_by(*keys, "process").agg(pl.col("iteration").max() + 1).join(table, on=keys)
    assert (last["iteration"] <= last["iterations"]).all()


def test_a_run_that_never_began_has_no_figure(tmp_path: Path) -> None:
    table = runs(read_version(write_results(full_results(), tmp_path), name="v"))
    skipped = table.filter(pl.col("outcome") == "skipped")
    assert len(skipped) > 0
    assert (
        skipped.select("started_utc", "iteration_s", "power_w", "last_reward").null_count().row(0)
        == (len(skipped),) * 4
    )


def test_no_start_is_judged_by_a_time_that_means_nothing(tmp_path: Path) -> None:
    results = [
        make_result(make_case(variant=name, only_learning=name == "learning"), 0.5, 0.5, 9.0)
        for name in ("alone", "learning")
    ]
    table = runs(read_version(write_results(results, tmp_path), name="v")).sort("variant", "run")
    assert table["start"].to_list() == ["warm", "warm", "cold", None, None, None]


def test_runs_of_different_campaigns_whose_iterations_do_the_same_have_equal_work() -> None:
    table = stored_runs()
    longer = table.filter(pl.col("work").is_in(table.filter(pl.col("set") == "h200-ant-sweep")["work"].to_list()))
    assert longer["set"].n_unique() > 1
    same = ["task", "library", "physics", "environments", "gpus", "steps", "minibatch_size", "is_tuned"]
    assert longer.group_by("work").agg(pl.col(same).n_unique()).select(same).max().row(0) == (1,) * len(same)


def test_machines_are_not_compared_by_runs_of_which_nobody_knows_whether_they_were_alone() -> None:
    table = stored_runs()
    unknown = table.filter(pl.col("others_share").is_null() & pl.col("iteration_s").is_not_null())
    assert len(unknown) > 0
    assert unknown["one_gpu_training"].null_count() == len(unknown)


def test_versions_are_those_that_a_process_saw() -> None:
    result_set = committed_version().sets[1]
    record = result_set.campaign.results[0].completed[0]
    own = stored_runs().filter(
        pl.col("set") == result_set.name, pl.col("configuration") == record.case.case_id, pl.col("run") == 0
    )
    settings = record.ranks[0].settings
    assert f"torch=={settings['versions.torch']} " in own["versions"][0]
    assert own["imports_s"][0] == max(sum(rank.phases_s[name] for name in IMPORTS) for rank in record.ranks)
