"""The build command against a real engine: small images whose env_check is a script."""

import argparse
import functools
import json
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from suite.commands.packing import BUILD_COMMAND
from suite.env_check.check import Check, Verdict
from suite.env_check.report import Report
from suite.errors import ContainerError
from suite.external.docker_engine import Engine
from suite.files.paths import ROOT
from suite.launch.images.build import BuiltImage, build_image, find_built
from suite.launch.images.table import BuildPlan, pack, plan_build
from tests.fixtures.machines.container_engine import BUSYBOX, FORGOTTEN_SOCKETS, RunningEngine

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
COPY stand_in/suite_python /opt/labscale/suite/bin/python
COPY stand_in/suite_python /opt/labscale/worker/bin/python
COPY stand_in/dpkg-query /bin/dpkg-query
RUN chmod 755 /opt/labscale/suite/bin/python /opt/labscale/worker/bin/python /bin/dpkg-query
COPY stand_in/answer stand_in/exit_code /
USER 1000
"""
SECRET = "user:hunter2@mirror.example"  # noqa: S105


MakePlan = Callable[..., BuildPlan]
Build = Callable[[BuildPlan], BuiltImage]


def report(verdict: Verdict) -> Report:
    """Two checks, of which the second has that verdict."""
    repair = None if verdict == "ok" else "Add graphics to NVIDIA_DRIVER_CAPABILITIES."
    checks: tuple[Check, ...] = (
        Check(name="egl_libraries", feature="egl", verdict="ok", found="libEGL.so.1", wanted="it", evidence={}),
        Check(
            name="vulkan_manifests", feature="vulkan", verdict=verdict, found="none", wanted="one",
            fault=repair and "no_manifest", repair=repair, evidence={},
        ),
    )  # fmt: skip
    needed = frozenset({"egl", "vulkan"})
    return Report(host="image", stack="kitless", device="cpu", needed=needed, checks=checks, duration_s=1.5)


PASSED = report("ok")


@pytest.fixture
def make_plan() -> MakePlan:
    """Plan a small image that answers env_check as told; ``step`` is added at the end of its Dockerfile."""

    def make(*, checks: Report = PASSED, exit_code: int | None = None, answer: str = "", step: str = "") -> BuildPlan:
        plan = plan_build(
            "kitless",
            project_root=ROOT,
            version="0",
            git=("c0ffee", False),
            environ={"UV_DEFAULT_INDEX": f"https://{SECRET}/simple"},
        )
        stand_in = {
            "os-release": "ID=busybox\n",
            "answer": answer or checks.as_json(),
            "exit_code": str(checks.exit_code if exit_code is None else exit_code),
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
    return functools.partial(build_image, engine, out_dir=tmp_path / "built", on_line=lambda _: None)


def test_an_image_that_passes_is_named_and_written_down(engine: Engine, make_plan: MakePlan, tmp_path: Path) -> None:
    """A warning does not stop the build."""
    from cyclonedx.schema import SchemaVersion  # noqa: PLC0415
    from cyclonedx.validation.json import JsonStrictValidator  # noqa: PLC0415 - 1.5 s, for each process of the tests

    checks, lines = report("warning"), list[str]()
    plan = make_plan(checks=checks)
    built = build_image(engine, plan, out_dir=tmp_path, on_line=lines.append)
    assert engine.find_image("labscale/small:test").image_id == built.image_id
    record = json.loads(built.record.read_text())
    assert record["image_id"] == record["digest"] == built.image_id
    assert record["env_check"] == checks.as_document()
    assert record["labels"] == dict(plan.labels)
    assert record["labels"]["org.opencontainers.image.revision"] == "c0ffee"
    assert record["num_packages"] == 6
    assert any(line.startswith("Step 1/") for line in lines)
    assert not [line for line in lines if "\n" in line or not line.strip()]
    text = built.sbom.read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert [component["purl"] for component in json.loads(text)["components"]] == [
        "pkg:deb/busybox/base-files@12.4?arch=amd64",
        "pkg:deb/busybox/libegl1@1.6.0-1?arch=amd64",
        "pkg:pypi/numpy@2.5.0",
        "pkg:pypi/torch@2.11.0",
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"checks": report("failure")}, ("  vulkan_manifests: no_manifest", "NVIDIA_DRIVER_CAPABILITIES")),
        ({"exit_code": 139}, ("env_check",)),
        ({"exit_code": 1}, ("env_check",)),
        ({"exit_code": 0, "answer": "Segmentation fault"}, ("env_check",)),
        ({"exit_code": 0, "answer": "[]"}, ("env_check",)),
        (
            {"step": "USER 0\nRUN echo fetching torch; echo no space left >&2; exit 7\n"},
            # Two streams of a step, in whichever order they arrive.
            ("returned a non-zero code: 7", "\nfetching torch\n", "\nno space left\n"),
        ),
        ({"step": "BAKE cake\n"}, ("unknown instruction: BAKE",)),
    ],
)
def test_an_image_that_fails_gets_no_name_and_the_error_says_why(
    running_engine: RunningEngine, make_plan: MakePlan, build_it: Build, changes: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(ContainerError) as error:
        build_it(make_plan(**changes))
    assert [text for text in words if text not in str(error.value)] == []
    assert not running_engine.client.images.list("labscale/small")


def test_index_settings_leave_no_trace_in_the_image(
    running_engine: RunningEngine, make_plan: MakePlan, build_it: Build
) -> None:
    built = build_it(make_plan())
    image = running_engine.client.images.get(built.image_id)
    everything = b"".join(image.save()) + json.dumps([image.attrs, image.history()]).encode()
    assert f"installed from {len(f'https://{SECRET}/simple')} characters".encode() in everything  # they were used
    assert SECRET.encode() not in everything
    assert SECRET.encode() in pack(make_plan().files)


def test_command_refuses_an_image_without_a_digest_before_it_looks_for_an_engine() -> None:
    parser = argparse.ArgumentParser()
    BUILD_COMMAND.add_arguments(parser)
    with pytest.raises(ContainerError, match=r"has no digest .* `nox -s pins`"):
        BUILD_COMMAND.run(parser.parse_args(["isaacsim"]), Console(file=StringIO()))


def test_an_image_of_other_pins_is_not_taken(engine: Engine) -> None:
    with pytest.raises(ContainerError, match=r"labscale/kitless:.*nox -s build -- kitless"):
        find_built(engine, "kitless")
