"""Curves of a task: the most GPUs, and of several the newest, whichever version has them."""

from reports.figures.lines import figure, over_environments, over_gpus, rows_of, tasks
from tests.fixtures.results.committed_results import newest_version


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
