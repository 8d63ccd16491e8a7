"""What the container launcher refuses, none of which leaves a container."""

from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import ContainerError
from suite.external.container_spec import ImageFacts, Limit
from suite.external.docker_engine import Engine
from suite.launch.containers.run import ContainerOptions, check_options
from tests.fixtures.machines.container_engine import BUSYBOX, FORGOTTEN_SOCKETS
from tests.fixtures.machines.container_runs import MakeScript, RunBusybox

pytestmark = FORGOTTEN_SOCKETS


def test_program_that_the_image_does_not_have(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    launch = replace(make_script(""), argv=("/opt/nothing/python", "-m", "torch.distributed.run"))
    with pytest.raises(ContainerError, match=r"cannot start /opt/nothing/python: .*not found"):
        run_busybox(launch)


def test_start_that_fails_leaves_no_container(engine: Engine, run_busybox: RunBusybox, make_script: MakeScript) -> None:
    with pytest.raises(ContainerError, match="nvidia-smi -L"):
        run_busybox(make_script(""), gpus=("7",))
    assert engine.owners() == {}


def test_limit_that_the_engine_may_not_raise(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    if can_raise_limits():
        pytest.skip("this machine may raise every limit")
    with pytest.raises(ContainerError, match="ulimit"):
        run_busybox(make_script(""), limits=(Limit(name="memlock", value=-1),))


def can_raise_limits() -> bool:
    status = Path("/proc/self/status").read_text()
    effective = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff")), 16)
    return bool(effective >> 24 & 1)  # CAP_SYS_RESOURCE


def test_image_that_is_not_there(engine: Engine) -> None:
    with pytest.raises(ContainerError, match=r"labscale/none:1.*nox -s build"):
        engine.find_image("labscale/none:1")


def test_podman_is_not_trusted_with_gpus(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "is_podman", True)
    image = engine.find_image(BUSYBOX)
    with pytest.raises(ContainerError, match="GPUs"):
        check_options(engine, image, ContainerOptions(project_root=tmp_path, gpus="all"))
    check_options(engine, image, ContainerOptions(project_root=tmp_path))


def test_licence_is_accepted_by_the_user_alone(engine: Engine, tmp_path: Path) -> None:
    image = ImageFacts(image_id="sha256:1", tags=(), repo_digests=(), labels={"labscale.stack": "isaacsim"})
    with pytest.raises(ContainerError, match="--accept-eula"):
        check_options(engine, image, ContainerOptions(project_root=tmp_path))
    check_options(engine, image, ContainerOptions(project_root=tmp_path, accept_eula=True))
