"""Digests of base images, asked of a real registry on this machine."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from suite.errors import ContainerError
from suite.external.docker_engine import Engine
from suite.files.paths import ROOT
from suite.launch.images.pins_command import refresh_digests
from suite.launch.images.table import IMAGES, read_images
from tests.fixtures.machines.container_engine import BUSYBOX, FORGOTTEN_SOCKETS, RunningEngine
from tests.fixtures.machines.debian_packages import install
from tests.fixtures.runs.real_runs import wait_until

pytestmark = FORGOTTEN_SOCKETS

CONFIGURATION = """
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@pytest.fixture
def pushed(running_engine: RunningEngine, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Name and digest of an image in a registry."""
    install({"docker-registry": "docker-registry"})
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    configuration = tmp_path / "registry.yml"
    configuration.write_text(CONFIGURATION.format(folder=tmp_path / "store", port=port))
    program = shutil.which("docker-registry")
    assert program
    with subprocess.Popen([program, "serve", str(configuration)], stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: is_open(port), timeout_s=10, what="the registry answers")
            name = f"localhost:{port}/base"
            running_engine.client.images.get(BUSYBOX).tag(name, "1")
            running_engine.client.images.push(name, "1")
            digests = running_engine.client.images.get(f"{name}:1").attrs["RepoDigests"]
            yield f"{name}:1", next(entry.partition("@")[2] for entry in digests if entry.startswith(name))
        finally:
            process.terminate()


def is_open(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def write_images(project: Path, bases: dict[str, str]) -> None:
    """Images of the project with other bases."""
    text = (ROOT / IMAGES).read_text()
    for old, new in bases.items():
        assert old in text
        text = text.replace(f'base = "{old}"', f'base = "{new}"')
    (project / IMAGES.parent).mkdir(parents=True)
    (project / IMAGES).write_text(text)


def test_digest_of_the_registry_is_written_and_a_refusal_told(
    engine: Engine, pushed: tuple[str, str], tmp_path: Path
) -> None:
    name, digest = pushed
    project = tmp_path / "project"
    missing = name.replace("base:1", "none:1")
    write_images(project, {"docker.io/library/ubuntu:24.04": missing, "nvcr.io/nvidia/isaac-sim:6.2.0": name})
    messages: list[str] = []
    assert refresh_digests(engine, project, on_message=messages.append) == ["isaacsim"]
    images = read_images(project)
    assert images["isaacsim"].digest == digest
    assert images["kitless"].digest == read_images(ROOT)["kitless"].digest
    assert len(messages) == 2
    assert "kitless" in messages[0]
    assert refresh_digests(engine, project, on_message=messages.append) == []


def test_no_registry_at_all_is_an_error(engine: Engine, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = f"localhost:{server.getsockname()[1]}/base:1"
    write_images(tmp_path, {"docker.io/library/ubuntu:24.04": closed, "nvcr.io/nvidia/isaac-sim:6.2.0": closed})
    before = (tmp_path / IMAGES).read_text()
    with pytest.raises(ContainerError, match="No registry answered"):
        refresh_digests(engine, tmp_path, on_message=lambda _: None)
    assert (tmp_path / IMAGES).read_text() == before
