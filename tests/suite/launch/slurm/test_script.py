"""sbatch scripts against golden files, which bash has to accept."""

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from suite.errors import UsageError
from suite.launch import apptainer
from suite.launch.slurm.script import NodeCheck, SlurmOptions, batch_script, without
from suite.schema.record import Launch
from tests.fixtures.runs.real_runs import is_running, wait_until
from tests.suite.matrix.test_plan import ANT
from tests.suite.matrix.test_rendered_launch import launch_of

GOLDEN: Final = Path(__file__).parents[3] / "golden" / "slurm"
NODES: Final = launch_of(replace(ANT, nnodes=2, case_id="ant/rl_games-kitless-n4096-2x2", num_envs_global=4096))
DEFAULTS: Final = SlurmOptions()
ASKED: Final = SlurmOptions(
    partition="gpu", account="robots", time="1:00:00", sbatch_option=("constraint=h200&ib", "mem=0")
)
IN_IMAGE: Final = apptainer.apptainer_launch(
    NODES,
    apptainer.ApptainerOptions(
        image=Path("/images/kitless.sif"), project_root=Path("/project"), asset_root=Path("/assets")
    ),
)
CHECK: Final = NodeCheck(
    argv=("python", "-m", "suite", "env_check", "--json"),
    env={"APPTAINERENV_A": "a b"},
    compare=("python", "-m", "suite.launch.nodes.facts", "compare"),
    is_binding=True,
)


def script_of(launch: Launch, options: SlurmOptions = DEFAULTS, **changes: Any) -> str:
    return batch_script(launch, options, **{"name": "labscale-0", "sampler": ("true",), **changes})


@pytest.mark.parametrize(
    ("golden", "launch", "options", "prefix"),
    [
        ("one_node_cpu.sbatch", launch_of(replace(ANT, device="cpu")), SlurmOptions(), ""),
        ("two_nodes_cuda.sbatch", NODES, ASKED, ""),
        ("two_nodes_apptainer.sbatch", IN_IMAGE, SlurmOptions(), apptainer.VARIABLE_PREFIX),
    ],
)
def test_the_script_of_a_round(golden: str, launch: Launch, options: SlurmOptions, prefix: str) -> None:
    script = script_of(
        launch,
        options,
        name="labscale-0123456789ab",
        variable_prefix=prefix,
        node_check=CHECK,
        sampler=("python", "-m", "suite.launch.telemetry_sampler", "/a folder"),
    )
    assert script == (GOLDEN / golden).read_text(encoding="utf-8")
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_torchrun_left_is_ended_though_slurm_ends_the_step_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm's SIGTERM reaches ``grep``, which looks for processes of the round."""
    programs = {
        "srun": 'while [[ $1 == --* ]]; do shift; done\nexec "$@"',
        "grep": 'kill -TERM $$\nPATH=${PATH#*:} exec grep "$@"',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "slurm").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "1")
    leaves = "setsid sh -c 'echo $$ >left; kill -STOP $$' & until [ -s left ]; do sleep 0.05; done; exit 3"
    launch = replace(launch_of(replace(ANT, device="cpu")), argv=("bash", "-c", leaves), run_dir=str(tmp_path))
    done = subprocess.run(["bash", "-c", script_of(launch, name=f"labscale-{os.getpid()}")], check=False)
    assert done.returncode == 3
    left = int((tmp_path / "left").read_text())
    try:
        wait_until(lambda: not is_running(left), timeout_s=5, what="it ends")
    finally:
        with suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)


@pytest.mark.parametrize(
    ("launch", "options", "about", "directives"),
    [
        (NODES, SlurmOptions(gpu_type="rtx_3090"), "gpu", ["gpus-per-node=rtx_3090:2"]),
        (NODES, SlurmOptions(gpu_type="rtx_3090", gres=True), "gpu", ["gres=gpu:rtx_3090:2"]),
        (NODES, SlurmOptions(gres=True), "gpu", ["gres=gpu:2"]),
        (NODES, SlurmOptions(), "gpu", ["gpus-per-node=2"]),
        (launch_of(replace(ANT, timeout_s=901.0)), SlurmOptions(), "time=", ["time=21"]),  # it outlasts the case
        (NODES, SlurmOptions(sbatch_option=("nodes=4",)), "nodes=", ["nodes=2", "nodes=4"]),  # sbatch takes the last
        (NODES, SlurmOptions(sbatch_option=("oversubscribe",)), "oversub", ["oversubscribe"]),
        (replace(NODES, run_dir="/50%j"), SlurmOptions(), "output=", ["output=/50%%j/logs/torchrun.log"]),
    ],
)
def test_options_of_sbatch(launch: Launch, options: SlurmOptions, about: str, directives: list[str]) -> None:
    lines = script_of(launch, options).splitlines()
    asked = [line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH")]
    assert [line for line in asked if about in line] == directives


def test_what_would_leave_its_line_is_refused() -> None:
    with pytest.raises(UsageError, match="'partition=gpu"):
        script_of(NODES, SlurmOptions(partition="gpu\nrm x"))
    with pytest.raises(UsageError, match="'output=/a"):
        script_of(replace(NODES, run_dir="/a\nb"))


def test_threads_are_those_of_the_case_or_a_share_of_the_nodes_cores() -> None:
    """Torch took what an open case says, and OpenMP, MKL and USD what the node has."""

    def threads(cpu_threads: int | None) -> list[str]:
        launch = launch_of(replace(ANT, division="open", cpu_threads=cpu_threads))
        script = script_of(launch)
        return [line for line in script.splitlines() if "threads" in line]

    shared, *_ = threads(None)
    assert shared.startswith("threads=$((SLURM_CPUS_ON_NODE / ")
    first, exported = threads(3)
    assert (first, exported.split()[:2]) == ("threads=3", ["export", "OMP_NUM_THREADS=$threads"])


@pytest.mark.parametrize(
    ("users", "excluded"),
    [
        ((), "exclude=n2,n3"),
        (("exclude=n9", "mem=0", "exclude=n[5-6]"), "exclude=n[5-6],n2,n3"),
        (("exclude=./bad_nodes",), "exclude=./bad_nodes"),
    ],
)
def test_dead_nodes_are_left_out_with_those_of_the_user(users: tuple[str, ...], excluded: str) -> None:
    options = without(SlurmOptions(sbatch_option=users), ("n2", "n3")).sbatch_option
    assert [option for option in options if option.startswith("exclude=")][-1] == excluded
    assert set(users) <= set(options)


def test_nodes_that_differ_may_be_let_through() -> None:
    binding, lenient = (
        script_of(NODES, node_check=replace(CHECK, is_binding=is_binding)) for is_binding in (True, False)
    )
    assert binding.replace(" || exit 97", "") == lenient
