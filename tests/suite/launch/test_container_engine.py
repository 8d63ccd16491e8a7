"""What a container engine is asked for a launch, and what a person is to do after one of its messages."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from suite.errors import ContainerError
from suite.external.container_spec import Gpus, ImageFacts
from suite.external.docker_engine import Engine, step_after_refusal
from suite.launch.containers import ContainerOptions, check_options, container_spec, requested_gpus
from suite.schema.record import Case, Device, Launch

GOLDEN = Path(__file__).parents[2] / "golden"


def cuda_launch(make_case: Callable[..., Case]) -> Launch:
    return Launch(
        case=make_case(case_id="ant-weak/rsl_rl-kitless-n4096-1x4", device="cuda", nproc_per_node=4),
        round=2,
        argv=("/opt/labscale/worker/bin/python", "-m", "torch.distributed.run", "-m", "tasks.worker", "/data/runs/r2"),
        env={"PYTHONPATH": "/data/labscale", "OMP_NUM_THREADS": "8", "ISAACSIM_ASSET_ROOT": "/data/cache/assets"},
        run_dir="/data/runs/r2",
    )


def check_golden(name: str, value: object) -> None:
    assert json.dumps(value, indent=1) + "\n" == (GOLDEN / name).read_text()


def test_rendered_container(make_case: Callable[..., Case]) -> None:
    options = ContainerOptions(
        project_root=Path("/data/labscale"),
        asset_root=Path("/data/cache/assets"),
        cache_dir=Path("/data/cache/kernels"),
        gpus=("0", "1", "2", "3"),
        shm_gb=16,
        accept_eula=True,
    )
    spec = container_spec(cuda_launch(make_case), "sha256:1", options, user="1000:1000")
    check_golden("container_spec.json", asdict(replace(spec, name="labscale-1")))


@pytest.mark.parametrize(
    ("device", "environ", "gpus"),
    [
        ("cuda", {}, "all"),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "2, GPU-a"}, ("2", "GPU-a")),
        ("cuda", {"CUDA_VISIBLE_DEVICES": ""}, None),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "1,-1,2"}, ("1",)),
        ("cpu", {"CUDA_VISIBLE_DEVICES": "0"}, None),
    ],
)
def test_visible_gpus_are_asked_for(device: Device, environ: Mapping[str, str], gpus: Gpus) -> None:
    assert requested_gpus(device, environ) == gpus


def test_podman_is_not_trusted_with_gpus_and_the_user_alone_accepts_a_licence(tmp_path: Path) -> None:
    plain = ContainerOptions(project_root=tmp_path)
    podman = cast("Engine", SimpleNamespace(is_podman=True, name="podman 5"))
    image = ImageFacts(image_id="sha256:1", tags=(), repo_digests=(), labels={})
    isaac_sim = replace(image, labels={"labscale.stack": "isaacsim"})
    check_options(podman, image, plain)
    check_options(podman, isaac_sim, replace(plain, accept_eula=True))
    for refused, options, message in ((image, replace(plain, gpus="all"), "GPUs"), (isaac_sim, plain, "--accept-eula")):
        with pytest.raises(ContainerError, match=message):
            check_options(podman, refused, options)


@pytest.mark.parametrize(
    ("message", "step"),
    [
        ("failed to discover GPU vendor from CDI: no known GPU vendor found", "nvidia-ctk cdi generate"),
        ("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all", "nvidia-ctk cdi generate"),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update",
            "Update the driver",
        ),
        ("nvidia-container-cli: requirement error: unsatisfied condition: driver>=570", "update its driver"),
        (
            "nvidia-container-cli: container error: failed to get device cgroup: bpf_prog_query(BPF_CGROUP_DEVICE)",
            "1.8",
        ),
        ("initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object", "nvidia-smi"),
        ("mount error: file creation failed: /merged/usr/lib/libnvidia-ml.so.1: file exists: unknown", "nox -s build"),
        ("unknown or invalid runtime name: nvidia", "nvidia-ctk runtime configure"),
        ("Unknown runtime specified nvidia", "nvidia-ctk runtime configure"),
        ('could not select device driver "" with capabilities: [[gpu]]', "nvidia-ctk runtime configure"),
        ("nvidia-container-cli: device error: 7: unknown device: unknown", "nvidia-smi -L"),
        ("nvidia-container-cli: initialization error: nvml error: driver/library version mismatch", "restart"),
        ("permission denied while trying to connect to the Docker daemon socket", "usermod -aG docker"),
        ("('Connection aborted.', PermissionError(13, 'Permission denied'))", "usermod -aG docker"),
        ('exec: "/a": permission denied: unknown', "otherwise"),
        ("something new", "otherwise"),
    ],
)
def test_the_next_step_after_a_message(message: str, step: str) -> None:
    assert step in step_after_refusal(message, "otherwise")


def test_an_engine_elsewhere_is_refused_with_what_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "ssh://ada@gpu01")
    with pytest.raises(ContainerError, match="DOCKER_HOST is ssh://ada@gpu01"):
        Engine.connect()
