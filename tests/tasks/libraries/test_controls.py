"""The controls: parts of training alone, run for real on the CPU.

The third, ``all_reduce``, runs on two hosts in ``tests.suite.launch.nodes.test_ssh``.
"""

import pytest

from suite.schema.record import OVERFLOW_CHECK, RankRecord
from tests.fixtures.runs.camera_cartpole import CAMERA_CARTPOLE, catalog_with_camera
from tests.fixtures.runs.real_runs import cartpole
from tests.fixtures.runs.trained_runs import TrainSeries

pytestmark = pytest.mark.worker


def share(rank: RankRecord, column: str) -> float:
    """A column's part of the third iteration, the first whose sections are timed."""
    return (rank.samples[column][2] or 0) / (rank.samples["iteration_time_s"][2] or 0)


def test_stepping_alone_learns_nothing_and_spends_its_time_in_the_environment(train_series: TrainSeries) -> None:
    series = cartpole("rsl_rl", task="Isaac-Ant", workload="environment_step", num_envs=16, iterations=4)
    record = train_series(series).record
    assert record.workload is not None
    assert record.workload["workload"] == "environment_step"
    (rank,) = record.ranks
    assert 0.9 < share(rank, "environment_step_time_s") <= 1
    assert set(rank.samples["all_reduce_calls"]) == {None, 0.0}
    (overflow,) = (check for check in rank.validity if check.name == OVERFLOW_CHECK)
    assert overflow.verdict in ("ok", "warning"), "a task as it ships drops nothing; a solver may end at its limit"


def test_drawing_alone_draws_every_picture_of_a_rollout_and_steps_no_physics(train_series: TrainSeries) -> None:
    series = cartpole(
        "rsl_rl", task=CAMERA_CARTPOLE, workload="rendering", num_envs=4, num_steps_per_env=6, iterations=4
    )
    (rank,) = train_series(series, catalog=catalog_with_camera()).record.ranks
    assert set(rank.samples["control.pictures"]) == {6.0 * 4}
    assert rank.samples["simulate_time_s"] == rank.samples["environment_step_time_s"] == (None,) * 4
    assert 0.5 < share(rank, "render_time_s") <= 1
    assert {check.verdict for check in rank.validity if check.feature == "cameras"} == {"ok"}
