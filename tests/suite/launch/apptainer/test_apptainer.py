"""The command that Apptainer is given for a launch, and a real run of it."""

import io
import shutil
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import UsageError
from suite.launch.apptainer.run import ApptainerOptions, render
from suite.launch.native.run import run
from suite.schema.record import Case
from tests.fixtures.machines.container_engine import busybox_tar
from tests.fixtures.machines.container_runs import MakeScript, log_of
from tests.suite.launch.containers.test_render import check_golden, cuda_launch


def test_rendered_apptainer_command(make_case: Callable[..., Case]) -> None:
    options = ApptainerOptions(
        image=Path("/images/kitless.sif"),
        project_root=Path("/data/labscale"),
        asset_root=Path("/data/cache/assets"),
        cache_dir=Path("/data/cache/kernels"),
    )
    launch = cuda_launch(make_case)
    rendered = render(launch, options)
    check_golden("apptainer_launch.json", {"argv": rendered.argv, "env": rendered.env})
    assert (rendered.case, rendered.run_dir, rendered.grace_s) == (launch.case, launch.run_dir, launch.grace_s)
    on_cpu = render(replace(launch, case=make_case(device="cpu")), replace(options, accept_eula=True))
    assert "--nv" not in on_cpu.argv
    assert on_cpu.env["APPTAINERENV_ACCEPT_EULA"] == "Y"


@pytest.mark.parametrize("folder", ["/data/a,b", "/data/a:b"])
def test_apptainer_cannot_have_every_folder(make_case: Callable[..., Case], folder: str) -> None:
    options = ApptainerOptions(image=Path("/images/kitless.sif"), project_root=Path(folder))
    with pytest.raises(UsageError, match="at which Apptainer splits paths"):
        render(cuda_launch(make_case), options)


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
    rendered = render(launch, ApptainerOptions(image=sandbox, project_root=mounted_project))
    assert run(rendered, on_progress=seen.append).exit_code == 3
    assert seen == [1]
    assert "a,b\n" in log_of(launch)
    assert "Read-only file system" in log_of(launch)
