"""Real training, once for every test that looks at it: each RL library on the CPU, with one rank and with two.

rl_games and rsl_rl train in the campaign of ``tests.own_task_runs``. skrl, which no shipped matrix has, trains here,
with two ranks only, and from an asset root of another name.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from suite.campaign.folder import Folder
from suite.install.worker import Worker
from suite.schema.record import Case, Environment, RunRecord
from tests.own_task_runs import OwnTasks
from tests.real_runs import cartpole, cases_of, launch_of, matrix_of, train

SERIES: Final = {  # of the campaign
    "rl_games-1x1": "camera",
    "rl_games-1x2": "camera",
    "rsl_rl-1x1": "manager",
    "rsl_rl-1x2": "changed",
}
RUNS: Final = (*SERIES, "skrl-1x2")
SKRL: Final = matrix_of(cartpole("skrl", topologies=("1x2",)))


@dataclass(frozen=True, kw_only=True)
class Trained:
    case: Case
    run_dir: Path
    record: RunRecord


TrainedRun = Callable[[str], Trained]


@pytest.fixture(scope="session")
def trained_run(
    own_tasks: OwnTasks, worker: Worker, environment: Environment, tmp_path_factory: pytest.TempPathFactory
) -> TrainedRun:
    """Give a run of ``RUNS`` by its name."""

    @cache
    def run(name: str) -> Trained:
        if name in SERIES:
            topology = name.rpartition("-")[2]
            (result,) = (
                found
                for found in own_tasks.results.values()
                if (found.case.series, found.case.topology) == (SERIES[name], topology)
            )
            run_dir = Folder(root=own_tasks.out).run_dir(result.case, 0)
            return Trained(case=result.case, run_dir=run_dir, record=result.rounds[0])
        folder = tmp_path_factory.mktemp("worker")
        (case,) = cases_of(SKRL, folder)
        assert worker.asset_root is not None
        assets = folder / "assets-elsewhere"
        assets.symlink_to(worker.asset_root)
        launch = launch_of(replace(worker, asset_root=assets), case, folder / "r0")
        return Trained(case=case, run_dir=folder / "r0", record=train(launch, environment))

    return run
