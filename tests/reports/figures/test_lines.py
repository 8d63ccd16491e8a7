"""Curves of a task: the most GPUs, of several one with intervals, and then the newest, whichever version has them."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.figures.lines import figure, over_environments, over_gpus, rows_of, tasks
from reports.sets.version import read_version
from tests.fixtures.results.committed_results import newest_version
from tests.fixtures.results.generated_results import make_case, make_result, on_gpus, write_results


def test_a_curve_that_only_an_older_version_has_is_not_lost() -> None:
    ends = {(line.label, line.rows[-1]["gpus"]): line.version.name for line in over_gpus(newest_version(), "Cartpole")}
    assert ends["rl_games, 8,192 in total", 4] == "2026.12"
    assert ends["rsl_rl, 8,192 in total", 4] == "2026.11"
    (hand, _) = over_gpus(newest_version(), "Shadow Hand with camera")
    assert hand.rows[-1]["gpus"] == 4


def test_points_of_a_curve_differ_in_nothing_but_what_varies() -> None:
    for task in tasks(newest_version()):
        for lines, varied in (
            (over_gpus(newest_version(), task), "gpus"),
            (over_environments(newest_version(), task), "environments_per_gpu"),
        ):
            for line in lines:
                numbers = [row[varied] for row in line.rows]
                assert numbers == sorted(set(numbers))
                assert len({(row["set"], row["library"], row["physics"], row["steps"]) for row in line.rows}) == 1


def test_runs_that_are_to_start_are_no_figures_of_a_task() -> None:
    newest = newest_version()
    rows = [row for task in tasks(newest) for row in rows_of(newest, task)]
    assert not {row["set"] for row in rows if "start-up" in row["set"]}
    assert all(figure(newest, row, "frames_per_s") for row in rows)


@pytest.mark.parametrize(("runs_of_newer", "shown"), [(1, "older"), (3, "newer")])
def test_a_newer_curve_without_intervals_hides_none_that_has_some(
    tmp_path: Path, runs_of_newer: int, shown: str
) -> None:
    for name, number, hour in (("older", 3, 10), ("newer", runs_of_newer, 11)):
        cases = [make_case(world_size=gpus, num_envs_global=128 * gpus, scaling="weak") for gpus in (1, 2)]
        results = on_gpus([make_result(case, *(1.0, 1.1, 0.9)[:number]) for case in cases])
        started = [
            replace(
                result, rounds=tuple(replace(run, started_utc=f"2026-11-21T{hour}:00:00Z") for run in result.rounds)
            )
            for result in results
        ]
        write_results(started, tmp_path / name)
    (line,) = over_gpus(read_version(tmp_path, name="v"), "Cartpole")
    assert line.base["set"] == shown
