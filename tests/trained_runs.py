"""Real training, once for every test that looks at it: each RL library on the CPU, with one rank and with two.

skrl trains with two ranks only: it is the library that no shipped matrix has.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from suite.provision import Worker
from suite.schema import Case, Environment, RunRecord
from tests.real_runs import cartpole, cases_of, launch_of, matrix_of, train

MATRIX: Final = matrix_of(
    cartpole("rl_games", topologies=("1x1", "1x2"), minibatch_size=1024),
    cartpole("rsl_rl", "skrl", topologies=("1x1", "1x2")),
)
RUNS: Final = ("rl_games-1x1", "rl_games-1x2", "rsl_rl-1x1", "rsl_rl-1x2", "skrl-1x2")


@dataclass(frozen=True, kw_only=True)
class Trained:
    case: Case
    run_dir: Path
    record: RunRecord


TrainedRun = Callable[[str], Trained]


@pytest.fixture(scope="session")
def trained_run(worker: Worker, environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    """Give a run of ``RUNS`` by its name; it is trained when it is first asked for."""

    @cache
    def run(name: str) -> Trained:
        folder = tmp_path_factory.mktemp("worker")
        library, _, topology = name.rpartition("-")
        (case,) = (case for case in cases_of(MATRIX, folder) if (case.rl_library, case.topology) == (library, topology))
        launch = launch_of(worker, case, folder / "r0")
        return Trained(case=case, run_dir=folder / "r0", record=train(launch, environment))

    return run
