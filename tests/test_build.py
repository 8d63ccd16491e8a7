"""The build command against a real engine: small images whose env_check is a script, and the real graphics layer."""

import argparse
import json
import shlex
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from docker.types import DeviceRequest
from rich.console import Console

from suite import build, sbom
from suite.build import BuiltImage, build_image, find_built
from suite.container_spec import ContainerSpec, Gpus, Mount
from suite.docker_engine import Engine
from suite.env_check.check import Check, Verdict
from suite.env_check.report import Report
from suite.env_check.requirements import Needs
from suite.errors import ContainerError
from suite.images import BuildPlan, pack, plan_build
from suite.options import ROOT
from tests.container_engine import BUSYBOX, DEBIAN, FORGOTTEN_SOCKETS, PYTHON_IN_DEBIAN, RunningEngine

pytestmark = FORGOTTEN_SOCKETS

# Stands in for the suite inside an image: answers env_check with ANSWER and EXIT_CODE, and lists packages.
SUITE_PYTHON = """#!/bin/sh
case "$*" in
    *env_check*) cat /answer; exit "$(cat /exit_code)" ;;
    *) echo '[["numpy", "2.5.0"], ["torch", "2.11.0"]]' ;;
esac
"""
DPKG_QUERY = "#!/bin/sh\nprintf 'libegl1\\t1.6.0-1\\tamd64\\nbase-files\\t12.4\\tamd64\\n'\n"
DOCKERFILE = """
ARG BASE
FROM ${BASE} AS environments
COPY host/ /tmp/host/
RUN . /tmp/host/settings.sh && mkdir /venv && echo "installed from ${#UV_DEFAULT_INDEX} characters" > /venv/installed
FROM ${BASE}
COPY --from=environments /venv/ /opt/labscale/worker/
COPY project/ /opt/labscale/project/
COPY stand_in/os-release /etc/os-release
COPY stand_in/answer stand_in/exit_code /
COPY stand_in/suite_python /opt/labscale/suite/bin/python
COPY stand_in/suite_python /opt/labscale/worker/bin/python
COPY stand_in/dpkg-query /bin/dpkg-query
RUN chmod 755 /opt/labscale/suite/bin/python /opt/labscale/worker/bin/python /bin/dpkg-query
USER 1000
"""
SECRET = "user:hunter2@mirror.example"  # noqa: S105


MakePlan = Callable[..., BuildPlan]
Build = Callable[[BuildPlan], BuiltImage]


def report(verdict: Verdict) -> Report:
    """Two checks, of which the second has that verdict."""
    repair = None if verdict == "ok" else "Add graphics to NVIDIA_DRIVER_CAPABILITIES."
    checks: tuple[Check[Any], ...] = (
        Check(name="egl_libraries", feature="egl", verdict="ok", found="libEGL.so.1", wanted="it", evidence={}),
        Check(
            name="vulkan_manifests", feature="vulkan", verdict=verdict, found="none", wanted="one",
            fault=repair and "no_manifest", repair=repair, evidence={},
        ),
    )  # fmt: skip
    needed = Needs(features=frozenset({"egl", "vulkan"}), checks=frozenset())
    return Report(host="image", stack="kitless", device="cpu", needs=needed, checks=checks, duration_s=1.5)


PASSED = report("ok")


@pytest.fixture
def make_plan() -> MakePlan:
    """Plan a small image that answers env_check as told; ``step`` is added at the end of its Dockerfile."""

    def make(*, said: Report = PASSED, exit_code: int | None = None, answer: str = "", step: str = "") -> BuildPlan:
        plan = plan_build(
            "kitless",
            project_root=ROOT,
            version="0",
            git_commit="c0ffee",
            git_dirty=False,
            environ={"UV_DEFAULT_INDEX": f"https://{SECRET}/simple"},
        )
        stand_in = {
            "os-release": "ID=busybox\n",
            "answer": answer or said.as_json(),
            "exit_code": str(said.exit_code if exit_code is None else exit_code),
            "suite_python": SUITE_PYTHON,
            "dpkg-query": DPKG_QUERY,
        }
        files = {f"stand_in/{name}": text.encode() for name, text in stand_in.items()}
        return replace(
            plan,
            name="small",
            tag="labscale/small:test",
            build_args={"BASE": BUSYBOX},
            files={**plan.files, **files, "Dockerfile": (DOCKERFILE + step).encode()},
        )

    return make


@pytest.fixture
def build_it(engine: Engine, running_engine: RunningEngine, tmp_path: Path) -> Build:
    """Build a plan; its name is free before that."""
    if running_engine.client.images.list("labscale/small"):
        running_engine.client.images.remove("labscale/small:test", noprune=True)

    def build_plan(plan: BuildPlan) -> BuiltImage:
        return build_image(engine, plan, out_dir=tmp_path / "built", on_line=lambda _: None)

    return build_plan


def is_tagged(running_engine: RunningEngine) -> bool:
    return bool(running_engine.client.images.list("labscale/small"))


@pytest.mark.parametrize("said", [PASSED, report("warning")])
def test_an_image_that_passes_is_named_and_written_down(
    said: Report, engine: Engine, make_plan: MakePlan, build_it: Build
) -> None:
    plan = make_plan(said=said)
    built = build_it(plan)
    assert engine.find_image("labscale/small:test").image_id == built.image_id
    record = json.loads(built.record.read_text())
    assert record["image_id"] == record["digest"] == built.image_id
    assert record["env_check"] == said.as_document()
    assert record["labels"] == dict(plan.labels)
    assert record["labels"]["org.opencontainers.image.revision"] == "c0ffee"
    assert record["num_packages"] == 6


def test_package_list_is_valid_cyclonedx(make_plan: MakePlan, build_it: Build) -> None:
    text = build_it(make_plan()).sbom.read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert [component["purl"] for component in json.loads(text)["components"]] == [
        "pkg:deb/busybox/base-files@12.4?arch=amd64",
        "pkg:deb/busybox/libegl1@1.6.0-1?arch=amd64",
        "pkg:pypi/numpy@2.5.0",
        "pkg:pypi/torch@2.11.0",
    ]


def test_an_image_that_env_check_refuses_gets_no_name(
    running_engine: RunningEngine, make_plan: MakePlan, build_it: Build
) -> None:
    with pytest.raises(ContainerError) as error:
        build_it(make_plan(said=report("failure")))
    assert "vulkan_manifests: no_manifest: found none; Add graphics to NVIDIA_DRIVER_CAPABILITIES." in str(error.value)
    assert "egl_libraries" not in str(error.value)
    assert not is_tagged(running_engine)


@pytest.mark.parametrize(("exit_code", "answer"), [(139, ""), (1, ""), (0, "Segmentation fault"), (0, "[]")])
def test_an_env_check_that_breaks_is_no_pass(
    exit_code: int, answer: str, running_engine: RunningEngine, make_plan: MakePlan, build_it: Build
) -> None:
    with pytest.raises(ContainerError, match="env_check did not run in the image"):
        build_it(make_plan(exit_code=exit_code, answer=answer))
    assert not is_tagged(running_engine)


def test_a_step_that_fails_fails_the_build_with_its_last_words(
    running_engine: RunningEngine, make_plan: MakePlan, build_it: Build
) -> None:
    with pytest.raises(ContainerError) as error:
        build_it(make_plan(step="USER 0\nRUN echo fetching torch; echo no space left >&2; exit 7\n"))
    assert "returned a non-zero code: 7" in str(error.value)
    for said in ("\nfetching torch\n", "\nno space left\n"):  # two streams of a step, in whichever order they arrive
        assert said in str(error.value)
    assert not is_tagged(running_engine)


def test_a_dockerfile_that_is_none_is_refused(make_plan: MakePlan, build_it: Build) -> None:
    with pytest.raises(ContainerError, match="unknown instruction: BAKE"):
        build_it(make_plan(step="BAKE cake\n"))


def test_index_settings_leave_no_trace_in_the_image(
    running_engine: RunningEngine, make_plan: MakePlan, build_it: Build
) -> None:
    built = build_it(make_plan())
    image = running_engine.client.images.get(built.image_id)
    everything = b"".join(image.save()) + json.dumps([image.attrs, image.history()]).encode()
    assert f"installed from {len(f'https://{SECRET}/simple')} characters".encode() in everything  # they were used
    assert SECRET.encode() not in everything
    assert SECRET.encode() in pack(make_plan().files)


def test_progress_is_told_line_by_line(engine: Engine, make_plan: MakePlan, tmp_path: Path) -> None:
    lines: list[str] = []
    build_image(engine, make_plan(), out_dir=tmp_path, on_line=lines.append)
    assert lines[0].startswith("Building labscale/small:test with Docker ")
    assert any(line.startswith("Step 1/") for line in lines)
    assert lines[-1].startswith("Built labscale/small:test, 6 packages: ")
    assert not [line for line in lines if "\n" in line or not line.strip()]


def test_command_refuses_an_image_without_a_digest_before_it_looks_for_an_engine() -> None:
    parser = argparse.ArgumentParser()
    build.add_arguments(parser)
    with pytest.raises(ContainerError, match="has no digest"):
        build.command(parser.parse_args(["isaacsim"]), project_root=ROOT, console=Console(file=StringIO()))


def test_an_image_of_other_pins_is_not_taken(engine: Engine) -> None:
    with pytest.raises(ContainerError, match=r"There is no image labscale/kitless:.*`nox -s build -- kitless`"):
        find_built(engine, "kitless", project_root=ROOT)


def test_a_listing_of_python_packages_is_that_of_the_environment() -> None:
    packages = sbom.parse_python('[["torch", "2.11.0"]]')
    assert packages == [sbom.Package(kind="pypi", name="torch", version="2.11.0")]
    assert sbom.parse_debian("\n", "ubuntu") == []


# The graphics layer of the real Dockerfile, on Debian in place of Ubuntu, with Mesa in place of a driver

LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"


@pytest.fixture(scope="session")
def graphics(running_engine: RunningEngine, debian: str) -> str:
    """Id of the first stage of kitless.Dockerfile."""
    plan = plan_build("kitless", project_root=ROOT, version="0", git_commit=None, git_dirty=None, environ={})
    arguments = {"BASE": debian, "PYTHON_PACKAGES": "", "EXTRA_PACKAGES": "mesa-vulkan-drivers libegl-mesa0"}
    return running_engine.engine.build(
        pack(plan.files), build_args=arguments, labels={}, target="graphics", network="host", on_line=lambda _: None
    )


def look(engine: Engine, image: str, script: str, **env: str) -> str:
    finished = engine.run_to_end(
        ContainerSpec(name="labscale-look", image=image, argv=("/bin/sh", "-c", script), env=env), timeout_s=60
    )
    assert finished.exit_code == 0, finished.stderr
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
        name="labscale-env-check",
        image=image,
        argv=(*ENV_CHECK, "--device", "cpu"),
        env={"PYTHONPATH": "/opt/project:/opt/packages", "HOME": "/tmp", **env},  # noqa: S108
        user="1000:1000",
        working_dir="/opt/project",
        mounts=(
            Mount(source=str(ROOT), target="/opt/project", read_only=True),
            Mount(source=PACKAGES, target="/opt/packages", read_only=True),
        ),
        gpus=gpus,
    )


def faults(said: str) -> dict[str, str | None]:
    """Name of each check of a report with its fault."""
    return {check["name"]: check["fault"] for check in json.loads(said)["checks"]}


def test_env_check_renders_inside_and_tells_software_from_a_gpu(engine: Engine, graphics: str) -> None:
    finished = engine.run_to_end(spec_of_env_check(graphics, env={"VK_DRIVER_FILES": LAVAPIPE}), timeout_s=120)
    assert finished.exit_code == 2, finished.stderr  # graphics are required, and Mesa's are no GPU
    found = {check["name"]: check["found"] for check in json.loads(finished.stdout)["checks"]}
    assert found["egl_frame"].startswith("right pixels, but by software: ")
    assert found["vulkan_frame"].startswith("right pixels, but by software: llvmpipe")
    named = faults(finished.stdout)
    assert [named[name] for name in ("libgl", "egl_loader", "vulkan_loader", "vulkan_manifests")] == [None] * 4
    assert named["vulkan_devices"] == named["egl_devices"] == "software_renderer"


def test_env_check_inside_names_the_missing_graphics_capability(
    engine: Engine, running_engine: RunningEngine, graphics: str
) -> None:
    """The launcher's request brings the driver's Vulkan half into the container; a request for compute does not."""
    asked = spec_of_env_check(graphics, env={}, gpus="all")
    assert faults(engine.run_to_end(asked, timeout_s=120).stdout)["vulkan_manifests"] is None
    said = running_engine.client.containers.run(
        graphics,
        ["sh", "-c", f"cd /opt/project; {shlex.join(asked.argv)}; true"],
        environment=dict(asked.env),
        volumes={mount.source: {"bind": mount.target, "mode": "ro"} for mount in asked.mounts},
        device_requests=[DeviceRequest(count=-1, capabilities=[["gpu", "compute", "utility"]])],
        network_mode="none",
        remove=True,
    )
    assert faults(said.decode())["vulkan_manifests"] == "library_missing"


def test_image_names_of_the_tests_are_those_of_the_engine(engine: Engine, debian: str) -> None:
    assert debian == DEBIAN
    assert DEBIAN in engine.find_image(DEBIAN).tags
