"""Reads ``containers/images.toml`` and derives a build from it: context, arguments, labels and name.

Nothing is started here. The context is made in memory from the few files that an image needs, so there is no ignore
file, and no other file gets in.
"""

import hashlib
import io
import json
import os
import shlex
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from suite.env_check.check import Feature
from suite.errors import ContainerError, MatrixError
from suite.external.machine import ORIGIN
from suite.files.input_file import read_input
from suite.files.toml_file import NonEmptyTuple, TomlTable, Tuple, did_you_mean, read_toml
from suite.install.pins import PINS_DIR, sha256
from suite.schema.record import Stack

IMAGES: Final = Path("containers/images.toml")
SUITE_PYTHON: Final = "/opt/labscale/suite/bin/python"
PYTHON_LABEL: Final = "labscale.worker-python"
PINS_LABEL: Final = "labscale.pins.worker.sha256"
SOURCES: Final = ("suite", "tasks")  # folders that go into an image
SOURCE_SUFFIXES: Final = (".py", ".toml")

# Package indexes. They reach only a stage of the build whose layers are not part of the image.
INDEX_SETTINGS: Final = (
    "UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX_STRATEGY", "UV_INSECURE_HOST",
    "UV_HTTP_TIMEOUT", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT",
)  # fmt: skip
# Docker does not store these arguments in an image's history.
PROXY_SETTINGS: Final = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
CERTIFICATE_SETTINGS: Final = ("UV_SSL_CERT_FILE", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")

type Digest = Annotated[str, Field(pattern=r"^(sha256:[0-9a-f]{64})?$")]


class Versions(TomlTable):
    """Versions in an image, for its labels; the pins determine them."""

    isaaclab: str
    isaacsim: str | None = None
    torch: str
    cuda: str
    python: str


class Image(TomlTable):
    """One image; see ``containers/images.toml``."""

    stack: Stack
    dockerfile: str
    base: str
    digest: Digest  # of ``base``; empty before its registry was asked
    established: str  # where base and digest come from
    pins: NonEmptyTuple[str]
    worker_python: str
    requires: Tuple[Feature]
    versions: Versions


class Images(TomlTable):
    images: dict[str, Image]


@dataclass(frozen=True, kw_only=True)
class BuildPlan:
    """Everything that the engine needs to build one image."""

    name: str
    image: Image
    tag: str
    files: Mapping[str, bytes]  # of the context
    build_args: Mapping[str, str]
    labels: Mapping[str, str]


def read_images(project_root: Path) -> dict[str, Image]:
    """Return all images by name. Raises ContainerError if the file cannot be read or is not valid."""
    try:
        return read_toml(project_root / IMAGES).validate(Images).images
    except MatrixError as error:
        raise ContainerError(str(error)) from None


def plan_build(
    name: str, *, project_root: Path, version: str, git: tuple[str | None, bool | None], environ: Mapping[str, str]
) -> BuildPlan:
    """Read everything that an image is built from. ``git``: the commit, and whether files differ from it.

    Raises ContainerError if there is no such image, or its base has no digest.
    """
    image = find_image(name, project_root)
    if not image.digest:
        raise ContainerError(
            f"The base of {name}, {image.base}, has no digest in {IMAGES}, so it is not known what would be built. "
            "Run `nox -s pins` where its registry can be reached: it asks for the digest and writes it there."
        )
    pins = _pins_of(image, project_root)
    files = (path for folder in SOURCES for path in (project_root / folder).rglob("*") if path.is_file())
    sources = sorted({*(path for path in files if path.suffix in SOURCE_SUFFIXES), *pins.values()})
    origin = json.dumps({"suite_commit": git[0], "suite_dirty": git[1]}) + "\n"  # a mounted project hides it
    return BuildPlan(
        name=name,
        image=image,
        tag=tag_of(name, project_root=project_root, version=version),
        files={
            "Dockerfile": _named(project_root / IMAGES.parent / image.dockerfile).read_bytes(),
            **{f"pins/{pin}.txt": path.read_bytes() for pin, path in pins.items()},
            **{f"project/{path.relative_to(project_root).as_posix()}": path.read_bytes() for path in sources},
            **({f"project/{ORIGIN}": origin.encode()} if git[0] else {}),
            **host_files(environ),
        },
        build_args={
            "BASE": f"{image.base}@{image.digest}",
            **{key: environ[key] for key in PROXY_SETTINGS if key in environ},
        },
        labels=_labels(name, image, version=version, git=git, pins=pins),
    )


def find_image(name: str, project_root: Path) -> Image:
    """Return an image by its name. Raises ContainerError if there is no such image."""
    images = read_images(project_root)
    if name not in images:
        raise ContainerError(f"{IMAGES} has no image {name!r}; it has {', '.join(images)}.{did_you_mean(name, images)}")
    return images[name]


def tag_of(name: str, *, project_root: Path, version: str) -> str:
    """Return ``labscale/<name>:<version>-<short hash>``, by the present base, Dockerfile and pins.

    The sources do not change it: rounds run the sources of the project that starts them, mounted over the image's.
    """
    image = find_image(name, project_root)
    parts = {
        "base": image.digest or "",
        "Dockerfile": sha256(_named(project_root / IMAGES.parent / image.dockerfile)),
        **{pin: sha256(path) for pin, path in _pins_of(image, project_root).items()},
    }
    combined = hashlib.sha256("".join(f"{part} {digest}\n" for part, digest in sorted(parts.items())).encode())
    return f"labscale/{name}:{version}-{combined.hexdigest()[:12]}"


def _pins_of(image: Image, project_root: Path) -> dict[str, Path]:
    """Return an image's requirement files by name."""
    return {pin: _named(project_root / PINS_DIR / f"{pin}.txt") for pin in image.pins}


def _named(path: Path) -> Path:
    if not os.path.isfile(path):  # noqa: PTH113 - False for any name, too long ones too
        raise ContainerError(f"{IMAGES} names {path}, but there is no such file. Correct the name, or add the file.")
    return path


def _labels(
    name: str, image: Image, *, version: str, git: tuple[str | None, bool | None], pins: Mapping[str, Path]
) -> dict[str, str]:
    """Return the labels that ``docker inspect`` shows; unknown values have no label."""
    labels: dict[str, str | None] = {
        "org.opencontainers.image.title": f"labscale {name}",
        "org.opencontainers.image.description": f"Isaac Lab {image.versions.isaaclab} with the labscale worker",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.revision": git[0],
        "org.opencontainers.image.base.name": image.base,
        "org.opencontainers.image.base.digest": image.digest,
        "labscale.dirty": None if git[1] is None else str(git[1]).lower(),
        "labscale.stack": image.stack,
        PYTHON_LABEL: image.worker_python,
        **{f"labscale.version.{key}": value for key, value in image.versions.model_dump().items()},
        **{f"labscale.pins.{pin}.sha256": sha256(path) for pin, path in pins.items()},
    }
    return {key: value for key, value in labels.items() if value is not None}


def host_files(environ: Mapping[str, str]) -> dict[str, bytes]:
    """Return the user's index settings and certificates, or empty files. Raises ContainerError if one is unreadable."""
    settings = {key: environ[key] for key in INDEX_SETTINGS if environ.get(key)}
    if "UV_DEFAULT_INDEX" in settings:  # pip installs uv first
        settings.setdefault("PIP_INDEX_URL", settings["UV_DEFAULT_INDEX"])
    files = {}
    if bundle := next((environ[key] for key in CERTIFICATE_SETTINGS if environ.get(key)), None):
        try:
            files["host/certificates.crt"] = read_input(Path(bundle))
        except OSError as error:
            raise ContainerError(
                f"the certificates {bundle}, which one of {', '.join(CERTIFICATE_SETTINGS)} names, cannot be read: "
                f"{error.strerror}. Correct or unset that variable."
            ) from error
        settings |= dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT"), "/tmp/host/certificates.crt")  # noqa: S108
    lines = [f"export {key}={shlex.quote(value)}\n" for key, value in sorted(settings.items())]
    return {**files, "host/settings.sh": "".join(lines).encode("utf-8", "surrogateescape")}


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return a tar archive of a context; equal files give equal bytes, so that the engine's cache stays valid."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return content.getvalue()
