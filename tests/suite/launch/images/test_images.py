"""What an image is made of: the file that names it, and what follows from it."""

import io
import tarfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from suite.env_check.worker import read_pins
from suite.errors import ContainerError
from suite.external.docker_engine import Engine
from suite.external.machine import git_state
from suite.files.paths import ROOT
from suite.launch.images.pins_command import with_digest
from suite.launch.images.table import (
    IMAGES,
    BuildPlan,
    find_image,
    host_files,
    pack,
    plan_build,
    read_images,
    tag_of,
)

SHA = "sha256:" + "0123456789abcdef" * 4
ENTRY = f"""
[images.tiny]
stack = "kitless"
dockerfile = "tiny.Dockerfile"
base = "localhost/busybox:1"
digest = "{SHA}"
established = "made here"
pins = ["worker"]
worker_python = "/bin/python"
requires = []

[images.tiny.versions]
isaaclab = "3.0.0"
torch = "2.11.0"
cuda = "13.0"
python = "3.12"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one image."""
    (tmp_path / "containers" / "pins").mkdir(parents=True)
    (tmp_path / "containers" / "pins" / "worker.txt").write_text("torch==2.11.0\n")
    (tmp_path / "containers" / "tiny.Dockerfile").write_text("ARG BASE\nFROM ${BASE}\n")
    (tmp_path / IMAGES).write_text(ENTRY)
    sources = ("suite/matrix/plan.py", "tasks/catalog.toml", "tasks/matrices/full.toml", "tasks/notes.txt", "runs/r.py")
    for name in sources:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def plan_tiny(
    project: Path, git: tuple[str | None, bool | None] = (None, None), environ: Mapping[str, str] | None = None
) -> BuildPlan:
    return plan_build("tiny", project_root=project, version="1.0", git=git, environ=environ or {})


def test_images_of_the_project_say_what_the_pins_install() -> None:
    pinned = read_pins(ROOT / "containers/pins/worker.txt")
    for image in read_images(ROOT).values():
        assert (image.versions.isaaclab, image.versions.torch) == (pinned["isaaclab"], pinned["torch"])
        assert pinned["cuda-toolkit"].startswith(f"{image.versions.cuda}.")
        assert image.established.strip()


@pytest.mark.parametrize("name", read_images(ROOT))
def test_dockerfiles_keep_their_promises(name: str) -> None:
    text = (ROOT / "containers" / find_image(name, ROOT).dockerfile).read_text()
    lines = text.splitlines()
    assert "FROM ${BASE}" in text  # by digest, see plan_build
    assert [line for line in lines if line.startswith("USER ")][-1] == "USER 1000:1000"  # runAsNonRoot takes no name
    assert "graphics" in text.split("NVIDIA_DRIVER_CAPABILITIES=")[1].split()[0].split(",")
    assert any(line.startswith("VOLUME ") for line in lines)
    assert "ACCEPT_EULA" not in text
    assert "--mount" not in text.replace("no RUN --mount", "")
    last_stage = text[text.rindex("\nFROM ") :]
    assert "host/" not in last_stage  # index settings and certificates stay in the stage before
    after = text[text.index("COPY project/") :]  # another commit installs no package again
    assert not [step for step in ("pip install", "apt-get", "COPY --from") if step in after]


def test_every_mistake_in_the_file_is_reported(project: Path) -> None:
    broken = ENTRY.replace(SHA, "sha256:12").replace('torch = "2.11.0"', "torch = 2.11").replace("requires", "needs")
    (project / IMAGES).write_text(broken)
    with pytest.raises(ContainerError) as error:
        read_images(project)
    for part in ("digest: got 'sha256:12'", "versions.torch: got 2.11", "needs: unknown key", "requires: required"):
        assert part in str(error.value)


def test_context_holds_what_an_image_needs_and_nothing_else_in_the_same_archive(project: Path) -> None:
    files = plan_tiny(project).files
    assert sorted(files) == [
        "Dockerfile",
        "host/settings.sh",
        "pins/worker.txt",
        "project/containers/pins/worker.txt",
        "project/suite/matrix/plan.py",
        "project/tasks/catalog.toml",
        "project/tasks/matrices/full.toml",
    ]
    archive = pack(files)
    assert archive == pack(dict(sorted(files.items(), reverse=True)))
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        assert tar.getnames() == sorted(files)
        member = tar.extractfile("pins/worker.txt")
        assert member is not None
        assert member.read() == b"torch==2.11.0\n"


def test_labscale_inside_an_image_knows_its_commit(project: Path, tmp_path: Path) -> None:
    """What is written there and what reads it are one format; an image of unknown sources says nothing."""
    inside = tmp_path / "inside"
    for name, content in plan_tiny(project, git=("c0ffee", True)).files.items():
        (inside / name).parent.mkdir(parents=True, exist_ok=True)
        (inside / name).write_bytes(content)
    assert git_state(inside / "project") == ("c0ffee", True)


def test_index_settings_and_certificates_travel_as_files(project: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "ca.crt"
    bundle.write_text("CERTIFICATE")
    environ = {
        "UV_DEFAULT_INDEX": "https://user:secret@mirror.example/simple?a='b'",
        "SSL_CERT_FILE": str(bundle),
        "https_proxy": "http://proxy.example:3128",
        "AWS_SECRET_ACCESS_KEY": "never",
    }
    plan = plan_tiny(project, environ=environ)
    files = plan.files
    assert files["host/certificates.crt"] == b"CERTIFICATE"
    assert files["host/settings.sh"].decode().splitlines() == [
        "export PIP_CERT=/tmp/host/certificates.crt",
        "export PIP_INDEX_URL='https://user:secret@mirror.example/simple?a='\"'\"'b'\"'\"''",
        "export SSL_CERT_FILE=/tmp/host/certificates.crt",
        "export UV_DEFAULT_INDEX='https://user:secret@mirror.example/simple?a='\"'\"'b'\"'\"''",
    ]
    assert plan.build_args == {"BASE": f"localhost/busybox:1@{SHA}", "https_proxy": "http://proxy.example:3128"}


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda _: find_image("kitles", ROOT), "no image 'kitles'; it has kitless, isaacsim. Did you mean 'kitless'"),
        (lambda project: tag_of("tiny", project_root=project, version="1"), r"tiny\.Dockerfile"),
        (lambda _: object.__new__(Engine).find_image("../containers"), r"'\.\./containers'"),  # connected to nothing
        (lambda _: host_files({"SSL_CERT_FILE": "/nowhere/ca.crt"}), r"certificates /nowhere/ca.crt, .* No such file"),
    ],
)
def test_what_is_not_there_is_named(project: Path, ask: Callable[[Path], object], message: str) -> None:
    (project / "containers" / "tiny.Dockerfile").unlink()
    with pytest.raises(ContainerError, match=message):
        ask(project)


def test_labels_say_where_an_image_comes_from(project: Path) -> None:
    labels = plan_tiny(project, git=("c0ffee", True)).labels
    assert labels["org.opencontainers.image.base.digest"] == SHA
    assert labels["labscale.version.torch"] == "2.11.0"
    assert len(labels["labscale.pins.worker.sha256"]) == 64
    assert "labscale.version.isaacsim" not in labels
    of_git = {"org.opencontainers.image.revision": "c0ffee", "labscale.dirty": "true"}
    assert dict(labels.items() - plan_tiny(project).labels.items()) == of_git


def test_name_changes_with_version_pins_base_and_dockerfile(project: Path) -> None:
    """An image of an older base would go on being used under the same name."""
    names = [tag_of("tiny", project_root=project, version=version) for version in ("1", "2")]
    assert names[0].startswith("labscale/tiny:1-")
    for name in ("pins/worker.txt", "images.toml", "tiny.Dockerfile"):
        path = project / "containers" / name
        path.write_text(path.read_text().replace("2.11", "2.12").replace("sha256:0", "sha256:f") + "\n")
        names.append(tag_of("tiny", project_root=project, version="1"))
    assert len(set(names)) == 5


def test_a_new_digest_changes_one_line() -> None:
    text = (ROOT / IMAGES).read_text()
    changed = with_digest(text, "isaacsim", SHA)
    assert set(changed.splitlines()) - set(text.splitlines()) == {f'digest = "{SHA}"'}
    images = tomllib.loads(text)["images"]
    images["isaacsim"]["digest"] = SHA
    assert tomllib.loads(changed)["images"] == images
