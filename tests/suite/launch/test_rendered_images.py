"""What is asked of the engine for a launch."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

from suite.external.container_spec import OWNER_LABEL, Gpus
from suite.launch.containers import ContainerOptions, render, requested_gpus
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
    """Compare with a file of tests/golden, or write it when UPDATE_GOLDEN is set."""
    text = json.dumps(value, indent=1) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text)
    assert text == (GOLDEN / name).read_text()


def test_rendered_container(make_case: Callable[..., Case]) -> None:
    options = ContainerOptions(
        project_root=Path("/data/labscale"),
        asset_root=Path("/data/cache/assets"),
        cache_dir=Path("/data/cache/kernels"),
        gpus=("0", "1", "2", "3"),
        shm_gb=16,
        accept_eula=True,
    )
    spec = render(
        cuda_launch(make_case),
        "sha256:1",
        options,
        name="labscale-1",
        user="1000:1000",
        owner={OWNER_LABEL: "host 1 2"},
    )
    check_golden("container_spec.json", asdict(spec))


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
