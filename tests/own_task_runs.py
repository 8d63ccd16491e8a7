"""One campaign of tasks that the catalog does not know, through the command line, which several tests look at.

Two of them are Isaac Lab's, one is registered by the extension in ``tests/small_extension``, which is copied here into
a git repository of its own, as a user has it.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.records.store import load_results
from suite.schema.record import CaseResult
from tests.real_runs import MARK, cartpole, marked_processes, matrix_of

EXTENSION: Final = Path(__file__).parent / "small_extension"
BOTH: Final = ("1x1", "1x2")
OVERRIDES: Final = (
    "env.sim.physics.solver_cfg.iterations=50", "env.scene.robot.init_state.pos=[0.0,0.0,2.5]",
    "agent.algorithm.gamma=0.9",
)  # fmt: skip
MATRIX: Final = matrix_of(
    cartpole(
        "rl_games", name="camera", task="Isaac-Cartpole-Camera-Direct", topologies=BOTH, iterations=3, num_envs=2,
        num_steps_per_env=8, minibatch_size=16,
    ),
    cartpole("rsl_rl", name="manager", task="Isaac-Cartpole", topologies=("1x1",), iterations=3, num_envs=64),
    cartpole(
        "rsl_rl", name="changed", task="Isaac-Cartpole", topologies=("1x2",), iterations=3, num_envs=64,
        overrides=OVERRIDES,
    ),
    cartpole("rsl_rl", name="swing-up", task="Small-Swing-Up", topologies=BOTH, iterations=2, num_envs=8),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OwnTasks:
    out: Path
    matrix: Path
    package: Path
    commit: str
    said_before: str  # by `plan`
    said: str  # by `bench`
    exit_code: int
    said_after: str

    @property
    def results(self) -> dict[str, CaseResult]:
        return {result.case.case_id: result for result in load_results(self.out)}


def suite(*arguments: str | Path, mark: Path) -> subprocess.CompletedProcess[str]:
    """Run labscale's command line; what it says on both streams is in ``stdout``."""
    return subprocess.run(
        [sys.executable, "-m", "suite", *arguments],
        cwd=ROOT, env={**os.environ, "COLUMNS": "240", MARK: str(mark)}, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip


def repository_of(extension: Path, folder: Path) -> tuple[Path, str]:
    """A copy of the extension as a git repository, and its commit."""
    copy = folder / "my-extension"
    shutil.copytree(extension, copy)

    def git(*arguments: str) -> str:
        settings = ("-c", "user.name=A User", "-c", "user.email=user@example.org")
        return subprocess.run(
            ["git", "-C", copy, *settings, *arguments], capture_output=True, text=True, check=True
        ).stdout.strip()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "My task")
    return copy, git("rev-parse", "HEAD")


@pytest.fixture(scope="session")
def own_tasks(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> OwnTasks:
    """``plan``, ``bench`` and ``plan`` again, on the CPU."""
    assert worker.python.exists()  # installed, and its kernels compiled, before
    folder = tmp_path_factory.mktemp("own-task")
    package, commit = repository_of(EXTENSION, folder)
    matrix, out = folder / "mine.toml", folder / "out"
    matrix.write_text(MATRIX, encoding="utf-8")
    asked = ("--matrix", matrix, "--out", out, "--device", "cpu", "--worker-package", package)
    before = suite("plan", *asked, mark=out)
    bench = suite("bench", *asked, mark=out)
    assert marked_processes(out) == []
    after = suite("plan", *asked, mark=out)
    assert (before.returncode, after.returncode) == (0, 0), before.stdout + after.stdout
    return OwnTasks(
        out=out,
        matrix=matrix,
        package=package,
        commit=commit,
        said_before=before.stdout,
        said=bench.stdout,
        exit_code=bench.returncode,
        said_after=after.stdout,
    )
