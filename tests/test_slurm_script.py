"""sbatch scripts against golden files, which bash has to accept."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from suite.launch import apptainer
from suite.launch.slurm_script import NodeCheck, SlurmOptions, render
from suite.schema import Launch
from tests.test_plan import ANT, launch_of

GOLDEN: Final = Path(__file__).parent / "golden"
NODES: Final = launch_of(replace(ANT, nnodes=2, case_id="ant/rl_games-kitless-n4096-2x2", num_envs_global=4096))
ASKED: Final = SlurmOptions(partition="gpu", account="robots", time="1:00:00", more=("constraint=h200&ib", "mem=0"))
IN_IMAGE: Final = apptainer.render(
    NODES,
    apptainer.ApptainerOptions(
        image=Path("/images/kitless.sif"), project_root=Path("/project"), asset_root=Path("/assets")
    ),
)

CHECK: Final = NodeCheck(
    argv=("python", "-m", "suite", "env_check", "--json"),
    env={"APPTAINERENV_A": "a b"},
    compare=("python", "-m", "suite.node_comparison"),
    is_binding=True,
)


@pytest.mark.parametrize(
    ("golden", "launch", "options", "prefix"),
    [
        ("slurm_one_node_cpu.sbatch", launch_of(replace(ANT, device="cpu")), SlurmOptions(), ""),
        ("slurm_two_nodes_cuda.sbatch", NODES, ASKED, ""),
        ("slurm_two_nodes_apptainer.sbatch", IN_IMAGE, SlurmOptions(), apptainer.VARIABLE_PREFIX),
    ],
)
def test_the_script_of_a_round(golden: str, launch: Launch, options: SlurmOptions, prefix: str) -> None:
    script = render(
        launch,
        options,
        name="labscale-0123456789ab",
        variable_prefix=prefix,
        node_check=CHECK,
        sampler=("python", "-m", "suite.telemetry", "/a folder"),
    )
    assert script == (GOLDEN / golden).read_text(encoding="utf-8")
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_time_the_job_outlasts_the_case() -> None:
    launch = launch_of(replace(ANT, timeout_s=901.0))
    assert "#SBATCH --time=21\n" in render(launch, SlurmOptions(), name="labscale-0")


def test_what_the_user_asks_comes_last() -> None:
    """sbatch takes the last of two."""
    lines = render(NODES, SlurmOptions(more=("nodes=4", "oversubscribe")), name="labscale-0").splitlines()
    directives = [line for line in lines if line.startswith("#SBATCH")]
    assert directives[-2:] == ["#SBATCH --nodes=4", "#SBATCH --oversubscribe"]


def test_a_percent_sign_in_a_path_is_no_pattern_of_slurm() -> None:
    script = render(replace(NODES, run_dir="/out/50%j"), SlurmOptions(), name="labscale-0")
    assert "#SBATCH --output=/out/50%%j/logs/torchrun.log\n" in script
    assert "cd /out/50%j || exit\n" in script


def test_nodes_that_differ_may_be_let_through() -> None:
    binding, lenient = (
        render(NODES, SlurmOptions(), name="labscale-0", node_check=replace(CHECK, is_binding=is_binding))
        for is_binding in (True, False)
    )
    assert binding.replace(" || exit 97", "") == lenient
