"""A run whose MuJoCo Warp dropped contacts or constraints is invalid; one at a limit of iterations is warned about."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from suite.install.worker import Worker
from suite.schema.record import OVERFLOW_CHECK, CheckResult, Environment, RunRecord
from tasks.rank.overflow import Overflow
from tests.fixtures.runs.real_runs import cases_of, launch_of, matrix_of, train

ANT: Final = """
[[series]]
name = "ant"
title = "Ant, 16 environments"
scaling = "weak"
task = "Isaac-Ant"
rl_libraries = ["rsl_rl"]
num_envs = 16
topologies = ["1x1"]
iterations = 3
"""


def trained(worker: Worker, environment: Environment, folder: Path, *overrides: str) -> RunRecord:
    (case,) = cases_of(matrix_of(ANT), folder)
    return train(launch_of(worker, replace(case, overrides=overrides), folder / "r0"), environment)


def of_buffers(record: RunRecord) -> CheckResult:
    (check,) = (check for check in record.ranks[0].validity if check.name == OVERFLOW_CHECK)
    return check


@pytest.mark.worker
def test_a_task_as_it_ships_drops_nothing(worker: Worker, environment: Environment, tmp_path: Path) -> None:
    record = trained(worker, environment, tmp_path)
    assert (record.outcome, record.reason) == ("completed", None)
    assert of_buffers(record).verdict in ("ok", "warning")  # the solver may end at its limit of iterations


@pytest.mark.worker
@pytest.mark.parametrize(("capacity", "flag"), [("njmax", "NEFC (njmax)"), ("nconmax", "PHASE (nconmax)")])
def test_a_buffer_that_is_too_small_makes_the_run_invalid(
    capacity: str, flag: str, worker: Worker, environment: Environment, tmp_path: Path
) -> None:
    record = trained(worker, environment, tmp_path, f"env.sim.physics.solver_cfg.{capacity}=1")
    check = of_buffers(record)
    assert record.outcome == "invalid"
    assert check.fault == "contacts_or_constraints_dropped"
    assert f"{flag} in 16 of 16 worlds" in check.found
    assert f"increase {capacity} of" in check.found


FLAGS: Final = {1: "NEFC", 8: "NARROWPHASE", 256: "EPA_HORIZON", 512: "ITERATIONS", 1024: "LS_ITERATIONS"}


@pytest.mark.parametrize(
    ("iterations", "verdict", "fault", "found"),
    [
        ([[0, 0], [0, 0]], "ok", None, ("2 worlds",)),
        (
            [[512, 0], [1536, 0]],
            "warning",
            "iteration_limit_reached",
            ("ITERATIONS in 1 of 2", "LS_ITERATIONS in 1 of 2"),
        ),
        (  # a reset clears what a world noted
            [[512, 512], [9, 0], [0, 1], [0, 0]],
            "failure",
            "contacts_or_constraints_dropped",
            ("(njmax) in 2 of 2", "(nconmax) in 1 of 2", "iteration 1 on", "increase njmax and nconmax"),
        ),
        ([[0, 256]], "failure", "contacts_or_constraints_dropped", ("EPA_HORIZON in 1 of 2", "iteration 0 on")),
    ],
)
def test_what_worlds_note_in_training_is_judged_after_it(
    iterations: list[list[int]], verdict: str, fault: str | None, found: tuple[str, ...]
) -> None:
    words = np.array([0, 0])
    overflow = Overflow(words, FLAGS)
    for noted in iterations:
        words[:] = noted
        overflow.collect()
    check = overflow.check()
    assert (check.verdict, check.fault) == (verdict, fault)
    assert all(part in check.found for part in found), check.found
