"""The graphics layer of the real Dockerfile, on Debian in place of Ubuntu, with Mesa in place of a driver."""

import json
import shlex
import sysconfig
from collections.abc import Mapping

import pytest
from docker.types import DeviceRequest

from suite.external.container_spec import ContainerSpec, Gpus
from suite.external.docker_engine import Engine
from suite.files.paths import ROOT
from suite.launch.images.table import pack, plan_build
from tests.fixtures.machines.container_engine import FORGOTTEN_SOCKETS, PYTHON_IN_DEBIAN, RunningEngine

pytestmark = FORGOTTEN_SOCKETS

LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"


@pytest.fixture(scope="session")
def graphics(running_engine: RunningEngine, debian: str) -> str:
    """Id of the first stage of kitless.Dockerfile."""
    plan = plan_build("kitless", project_root=ROOT, version="0", git=(None, None), environ={})
    arguments = {"BASE": debian, "PYTHON_PACKAGES": "", "EXTRA_PACKAGES": "mesa-vulkan-drivers libegl-mesa0"}
    return running_engine.engine.build(
        pack(plan.files), build_args=arguments, labels={}, target="graphics", network="host", on_line=lambda _: None
    )


def look(engine: Engine, image: str, script: str, **env: str) -> str:
    finished = engine.run_to_end(ContainerSpec(image=image, argv=("/bin/sh", "-c", script), env=env), timeout_s=60)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_graphics_layer_has_the_loaders_and_the_manifests(engine: Engine, graphics: str) -> None:
    manifests = look(
        engine, graphics, "cat /etc/vulkan/icd.d/nvidia_icd.json /usr/share/glvnd/egl_vendor.d/10_nvidia.json"
    )
    vulkan, egl = (json.loads(line) for line in manifests.splitlines())
    assert vulkan["ICD"]["library_path"] == "libGLX_nvidia.so.0"
    assert egl["ICD"]["library_path"] == "libEGL_nvidia.so.0"
    names = ["libEGL.so.1", "libGL.so.1", "libGLdispatch.so.0", "libGLX.so.0", "libOpenGL.so.0", "libGLESv2.so.2"]
    names += ["libvulkan.so.1", "libX11.so.6", "libXext.so.6", "libXrender.so.1", "libgomp.so.1", "libglib-2.0.so.0"]
    program = f"import ctypes\nfor name in {names}: ctypes.CDLL(name)\nprint('loaded')"
    assert look(engine, graphics, f'{PYTHON_IN_DEBIAN} -c "{program}"') == "loaded\n"
    assert look(engine, graphics, "id -u labscale; echo $NVIDIA_DRIVER_CAPABILITIES $VK_DRIVER_FILES").split() == [
        "1000",
        "compute,utility,graphics,display",
        "/etc/vulkan/icd.d/nvidia_icd.json",
    ]


PACKAGES = sysconfig.get_path("purelib")
ENV_CHECK = (PYTHON_IN_DEBIAN, "-m", "suite", "env_check", "--json", "--stack", "kitless", "--require", "egl,vulkan")


def spec_of_env_check(image: str, *, env: Mapping[str, str], gpus: Gpus = None) -> ContainerSpec:
    """This checkout's env_check, with the packages of this Python, on the CPU path but with graphics required."""
    return ContainerSpec(
        image=image,
        argv=(*ENV_CHECK, "--device", "cpu"),
        env={"PYTHONPATH": f"{ROOT}:{PACKAGES}", "HOME": "/tmp", **env},  # noqa: S108
        user="1000:1000",
        working_dir=str(ROOT),
        folders={str(ROOT): "ro", PACKAGES: "ro"},
        gpus=gpus,
    )


def faults(output: str) -> dict[str, str | None]:
    """Name of each check of a report with its fault."""
    return {check["name"]: check["fault"] for check in json.loads(output)["checks"]}


def test_env_check_renders_inside_and_tells_software_from_a_gpu(engine: Engine, graphics: str) -> None:
    finished = engine.run_to_end(spec_of_env_check(graphics, env={"VK_DRIVER_FILES": LAVAPIPE}), timeout_s=120)
    assert finished.returncode == 2, finished.stderr  # graphics are required, and Mesa's are no GPU
    frames = {check["name"]: check["found"] for check in json.loads(finished.stdout)["checks"]}
    assert "llvmpipe" in frames["egl_frame"]
    assert "llvmpipe" in frames["vulkan_frame"]
    named = faults(finished.stdout)
    assert [named[name] for name in ("libgl", "egl_loader", "vulkan_loader", "vulkan_manifests")] == [None] * 4
    assert named["vulkan_devices"] == named["egl_devices"] == "software_renderer"


def test_env_check_inside_names_the_missing_graphics_capability(
    engine: Engine, running_engine: RunningEngine, graphics: str
) -> None:
    """The launcher's request brings the driver's Vulkan half into the container; a request for compute does not."""
    asked = spec_of_env_check(graphics, env={}, gpus="all")
    assert faults(engine.run_to_end(asked, timeout_s=120).stdout)["vulkan_manifests"] is None
    output = running_engine.client.containers.run(
        graphics,
        ["sh", "-c", f"cd {ROOT}; {shlex.join(asked.argv)}; true"],
        environment=dict(asked.env),
        volumes={folder: {"bind": folder, "mode": mode} for folder, mode in asked.folders.items()},
        device_requests=[DeviceRequest(count=-1, capabilities=[["gpu", "compute", "utility"]])],
        network_mode="none",
        remove=True,
    )
    assert faults(output.decode())["vulkan_manifests"] == "library_missing"
