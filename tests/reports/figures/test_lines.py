"""Curves of a task: the most GPUs, and of several the newest, whichever version has them."""

import pytest

from reports.figures.lines import figure, over_environments, over_gpus, rows_of, tasks
from reports.sets.version import Version, read_version
from tests.fixtures.results.committed_results import RESULTS, committed_version


@pytest.fixture(scope="module")
def newest() -> Version:
    return read_version(RESULTS.parent / "2026.12", name="2026.12", older=[committed_version()])


def test_a_curve_that_only_an_older_version_has_is_not_lost(newest: Version) -> None:
    ends = {(line.label, line.rows[-1]["gpus"]): line.version.name for line in over_gpus(newest, "Cartpole")}
    assert ends["rl_games, 8,192 in total", 4] == "2026.12"
    assert ends["rsl_rl, 8,192 in total", 4] == "2026.11"
    (hand, _) = over_gpus(newest, "Shadow Hand with camera")
    assert hand.rows[-1]["gpus"] == 4


def test_points_of_a_curve_differ_in_nothing_but_what_varies(newest: Version) -> None:
    for task in tasks(newest):
        for lines, varied in (
            (over_gpus(newest, task), "gpus"),
            (over_environments(newest, task), "environments_per_gpu"),
        ):
            for line in lines:
                numbers = [row[varied] for row in line.rows]
                assert numbers == sorted(set(numbers))
                assert len({(row["set"], row["library"], row["physics"], row["steps"]) for row in line.rows}) == 1


def test_a_curve_has_the_figures_of_its_own_version(newest: Version) -> None:
    for line in over_gpus(newest, "Ant"):
        kept, ratio = (line.figure(line.rows[-1], name) for name in ("share_kept", "over_gpus"))
        assert kept is not None
        assert ratio is not None
        gpus = line.rows[-1]["gpus"] / line.base["gpus"]
        assert kept["value"] == pytest.approx(ratio["value"] / gpus, rel=1e-6)


def test_runs_that_are_to_start_are_no_figures_of_a_task(newest: Version) -> None:
    sets = {row["set"] for task in tasks(newest) for row in rows_of(newest, task)}
    assert not {name for name in sets if "start-up" in name}
    assert all(figure(newest, row, "frames_per_s") for task in tasks(newest) for row in rows_of(newest, task))
