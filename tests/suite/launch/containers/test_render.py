"""What is asked of the engine, and of Apptainer, for a launch."""

import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from suite.errors import UsageError
from suite.external.container_spec import OWNER_LABEL, Gpus, Limit
from suite.launch.containers.apptainer import ApptainerOptions
from suite.launch.containers.apptainer import render as render_apptainer
from suite.launch.containers.run import ContainerOptions, render, requested_gpus
from suite.launch.native.run import run as run_native
from suite.schema.record import Case, Device, Launch
from tests.fixtures.machines.container_engine import busybox_tar
from tests.fixtures.machines.container_runs import MakeScript, log_of

GOLDEN = Path(__file__).parents[3] / "golden"


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
        memory_gb=64,
        limits=(Limit(name="memlock", value=-1),),
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


def test_rendered_apptainer_command(make_case: Callable[..., Case]) -> None:
    options = ApptainerOptions(
        image=Path("/images/kitless.sif"),
        project_root=Path("/data/labscale"),
        asset_root=Path("/data/cache/assets"),
        cache_dir=Path("/data/cache/kernels"),
    )
    launch = cuda_launch(make_case)
    rendered = render_apptainer(launch, options)
    check_golden("apptainer_launch.json", {"argv": rendered.argv, "env": rendered.env})
    assert (rendered.case, rendered.run_dir, rendered.grace_s) == (launch.case, launch.run_dir, launch.grace_s)
    on_cpu = render_apptainer(replace(launch, case=make_case(device="cpu")), replace(options, accept_eula=True))
    assert "--nv" not in on_cpu.argv
    assert on_cpu.env["APPTAINERENV_ACCEPT_EULA"] == "Y"


@pytest.mark.parametrize("folder", ["/data/a,b", "/data/a:b"])
def test_apptainer_cannot_have_every_folder(make_case: Callable[..., Case], folder: str) -> None:
    options = ApptainerOptions(image=Path("/images/kitless.sif"), project_root=Path(folder))
    with pytest.raises(UsageError, match="at which Apptainer splits paths"):
        render_apptainer(cuda_launch(make_case), options)


@pytest.mark.skipif(shutil.which("apptainer") is None, reason="apptainer is not installed")
def test_apptainer_runs_the_rendered_command(make_script: MakeScript, tmp_path: Path, mounted_project: Path) -> None:
    sandbox = tmp_path / "sandbox"
    with tarfile.open(fileobj=io.BytesIO(busybox_tar())) as tar:
        tar.extractall(sandbox, filter="tar")
    for name in ("dev", "proc", "sys"):
        (sandbox / name).mkdir()
    launch = make_script(f'emit 0 iteration; echo "$COMMAS"; touch {mounted_project}/new; exit 3')
    launch = replace(launch, env={**launch.env, "COMMAS": "a,b"})
    seen: list[int] = []
    rendered = render_apptainer(launch, ApptainerOptions(image=sandbox, project_root=mounted_project))
    assert run_native(rendered, on_progress=seen.append).exit_code == 3
    assert seen == [1]
    assert "a,b\n" in log_of(launch)
    assert "Read-only file system" in log_of(launch)


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
