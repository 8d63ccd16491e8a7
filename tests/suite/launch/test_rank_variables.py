"""Which variables of a shell reach a rank, by every launcher, and stand in its record."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from reports.__main__ import main as reports_main
from suite.__main__ import main as suite_main
from suite.campaign.runs.run import render as render_run
from suite.campaign.state import Campaign
from suite.errors import UsageError
from suite.install.worker import Worker
from suite.launch import apptainer, containers
from suite.launch.nodes import node
from suite.launch.slurm.script import SlurmOptions, batch_script
from suite.options.command_line import forget_inner_variables
from suite.schema.rank_protocol import of_rank, recorded, travelling
from suite.schema.record import Environment, Launch
from tests.suite.campaign.test_folder import SMOKE, planned

TRAVELS = (
    "NCCL_IB_DISABLE", "NCCL_ALGO", "NCCL_SHM_DISABLE", "NCCL_NVLS_ENABLE", "NCCL_P2P_DISABLE", "NCCL_SOCKET_IFNAME",
    "NVSHMEM_DISABLE_NVLS", "TORCH_SYMM_MEM_DISABLE_MULTICAST",
    "GLOO_SOCKET_IFNAME", "UCX_TLS", "FI_PROVIDER", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS",
    "TORCH_NCCL_BLOCKING_WAIT", "PYTORCH_CUDA_ALLOC_CONF", "ATEN_CPU_CAPABILITY", "OMP_PROC_BIND", "KMP_AFFINITY",
    "MKL_CBWR", "XLA_FLAGS", "NVIDIA_TF32_OVERRIDE", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "CUBLAS_WORKSPACE_CONFIG",
)  # fmt: skip
STAYS = ("LD_PRELOAD", "VK_ICD_FILENAMES", "__EGL_VENDOR_LIBRARY_FILENAMES")
PLACES = (
    "PATH", "HOME", "LANG", "LC_ALL", "CUDA_VISIBLE_DEVICES", "https_proxy", "XDG_RUNTIME_DIR", "PYTHONPATH",
    "OMP_NUM_THREADS",
)  # fmt: skip
DROPPED = (
    "PYTHONMALLOC", "PYTHONHOME", "PYTHONDEVMODE", "PYTHONOPTIMIZE", "GIT_DIR", "MY_OWN", "HF_TOKEN",
    "TF_CLI_CONFIG_FILE", "LD_SDK_KEY",
    "NCCL_TOKEN", "AWS_SECRET_ACCESS_KEY", "SLURM_JOB_ID", "MASTER_PORT",
)  # fmt: skip


def test_each_variable_is_a_setting_a_place_or_dropped() -> None:
    shell = dict.fromkeys((*TRAVELS, *STAYS, *PLACES, *DROPPED), "1")
    assert set(of_rank(shell)) == {*TRAVELS, *STAYS, *PLACES}
    assert set(recorded(shell)) == {*TRAVELS, *STAYS}
    assert set(travelling(shell)) == {*TRAVELS}


@pytest.mark.parametrize(
    ("value", "public"),
    [
        ("/data/ada/lib/a.so:/opt/b.so", "a.so:b.so"),
        ("=mlx5_0:1", "=mlx5_0:1"),
        ("--dir=/opt/x --fast", "--dir=x --fast"),
    ],
)
def test_a_record_has_no_folders(value: str, public: str) -> None:
    assert recorded({"XLA_FLAGS": value}) == {"XLA_FLAGS": public}


@pytest.fixture
def launch(tmp_path: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch) -> Launch:
    """A run as ``bench`` renders it in a shell with settings."""
    monkeypatch.setenv("NCCL_ALGO", "Ring, Tree")
    monkeypatch.setenv("OMP_NUM_THREADS", "77")
    campaign: Campaign = planned(environment, SMOKE)
    worker = Worker(
        python=Path("/python"), pins_sha256=None, asset_root=tmp_path, asset_sha256=None, cache_dir=tmp_path
    )
    return render_run(campaign, worker, tmp_path / "r0", campaign.planned[0].case, 0, python_path=None)


def test_settings_reach_every_launcher(launch: Launch, tmp_path: Path) -> None:
    assert launch.env["NCCL_ALGO"] == "Ring, Tree"
    assert launch.env["OMP_NUM_THREADS"] != "77"
    options = containers.ContainerOptions(project_root=tmp_path)
    inside = containers.container_spec(launch, "sha256:1", options, user="1:1")
    assert inside.env["NCCL_ALGO"] == "Ring, Tree"
    wrapped = apptainer.apptainer_launch(launch, apptainer.ApptainerOptions(image=tmp_path, project_root=tmp_path))
    assert wrapped.env["APPTAINERENV_NCCL_ALGO"] == "Ring, Tree"
    assert "\nexport NCCL_ALGO='Ring, Tree'\n" in batch_script(launch, SlurmOptions(), name="a", sampler=())


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"NCCL_SOCKET_IFNAME": "=bond0", "GLOO_SOCKET_IFNAME": "bond0"}),
        ({"NCCL_SOCKET_IFNAME": "ib"}, {"NCCL_SOCKET_IFNAME": "ib"}),
    ],
)
def test_nccl_takes_the_interface_and_no_other_that_begins_so(
    monkeypatch: pytest.MonkeyPatch, own: dict[str, str], expected: dict[str, str]
) -> None:
    """NCCL takes ``bond0`` for the beginning of a name, such as bond0.2973."""
    started: dict[str, str] = {}
    monkeypatch.setattr(node, "interface_of", lambda _: "bond0")
    monkeypatch.setattr(os, "execve", lambda _program, _argv, environ: started.update(environ))
    here = node.node_variables(head="127.0.0.1", peer="127.0.0.1", rank=0, rendezvous_id="a", port=1)
    for name, value in {**here, **own, "PYTHONMALLOC": "debug"}.items():
        monkeypatch.setenv(name, value)
    node.main(["node", "/logs"])
    assert {name: started[name] for name in expected} == expected
    assert "PYTHONMALLOC" not in started


@pytest.mark.parametrize(
    ("name", "is_kept"),
    [
        ("LABSCALE_CACHE", True), ("LABSCALE_FILM", False), ("LABSCALE_IMAGE_DIGEST", False), ("LABSCALE_WATCH", False),
        ("LABSCALE_TURNS", False), ("LABSCALE_NSYS", False), ("LABSCALE_HEAD", False), ("LABSCALE_ROUND", False),
        ("GIT_DIR", False), ("GIT_WORK_TREE", False), ("GIT_INDEX_FILE", False), ("GIT_SSL_CAINFO", True),
    ],
)  # fmt: skip
def test_inner_variables_of_a_shell_are_forgotten(monkeypatch: pytest.MonkeyPatch, name: str, *, is_kept: bool) -> None:
    monkeypatch.setenv(name, "x")
    forget_inner_variables()
    assert (name in os.environ) is is_kept


@pytest.mark.parametrize("main", [lambda: suite_main(["no-command"]), lambda: reports_main("no-session", [])])
def test_every_command_forgets_them(monkeypatch: pytest.MonkeyPatch, main: Callable[[], int]) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # of this process
    assert main() == UsageError.exit_code
    assert "GIT_DIR" not in os.environ
