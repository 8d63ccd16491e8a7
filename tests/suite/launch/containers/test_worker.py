"""The worker of an image: who it belongs to, and its assets, built inside."""

from pathlib import Path

import pytest

from suite.errors import ContainerError, WorkerEnvironmentError
from suite.external.container_spec import ImageFacts
from suite.external.docker_engine import Engine
from suite.launch.containers.worker import PINS_LABEL, PYTHON_LABEL, provision_in_container
from suite.launch.images.table import pack
from tests.fixtures.machines.container_engine import BUSYBOX, FORGOTTEN_SOCKETS

pytestmark = FORGOTTEN_SOCKETS

# Stands for the worker's Python: called as `python -m tasks.assets FOLDER`.
PYTHON = """#!/bin/sh
[ -e "$PYTHONPATH/refuse" ] && { echo 'no such wheel' >&2; exit 3; }
mkdir "$3" && echo "{\\"by\\": \\"$(id -u)\\"}" > "$3/manifest.json"
"""
DOCKERFILE = f"""
FROM {BUSYBOX}
COPY python /opt/python
RUN chmod 755 /opt/python
USER 1000
"""


@pytest.fixture
def image(engine: Engine) -> ImageFacts:
    files = {"Dockerfile": DOCKERFILE.encode(), "python": PYTHON.encode()}
    labels = {PYTHON_LABEL: "/opt/python", PINS_LABEL: "ab" * 32}
    return engine.find_image(engine.build(pack(files), build_args={}, labels=labels, on_line=lambda _: None))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project" / "tasks").mkdir(parents=True)
    (tmp_path / "project" / "tasks" / "assets.py").write_text("")
    monkeypatch.setenv("LABSCALE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ISAACSIM_ASSET_ROOT", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path / "project"


def test_assets_are_built_inside_once_and_belong_to_the_caller(
    engine: Engine, image: ImageFacts, project: Path
) -> None:
    messages: list[str] = []
    for _ in range(2):
        worker = provision_in_container(
            engine, image, project_root=project, assets="offline", on_message=messages.append
        )
    assert worker.python == Path("/opt/python")
    assert worker.pins_sha256 == "ab" * 32
    assert worker.asset_root is not None
    assert (worker.asset_root / "manifest.json").read_text() == '{"by": "0"}\n'  # not the image's own user
    assert worker.cache_dir.is_dir()
    assert len(messages) == 1


def test_a_build_that_fails_says_why(engine: Engine, image: ImageFacts, project: Path) -> None:
    (project / "refuse").write_text("")
    with pytest.raises(WorkerEnvironmentError, match=r"exit code 3:\nno such wheel"):
        provision_in_container(engine, image, project_root=project, assets="offline", on_message=lambda _: None)


def test_an_image_of_somebody_else_is_refused(engine: Engine, project: Path) -> None:
    foreign = engine.find_image(BUSYBOX)
    with pytest.raises(ContainerError, match="nox -s build"):
        provision_in_container(engine, foreign, project_root=project, assets="offline", on_message=lambda _: None)
