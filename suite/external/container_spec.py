"""Containers and images as values: pure renderers make the specs, ``docker_engine`` executes them."""

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

# Every container of labscale has this label; its value names the process that removes the container.
OWNER_LABEL: Final = "labscale.owner"

# A name for container engines and Kubernetes: [HOST[:PORT]/]NAME[:TAG][@DIGEST].
IMAGE_NAME: Final = re.compile(
    r"([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{1,5})?/)?"
    r"[a-z0-9]+((\.|_{1,2}|-+|/)[a-z0-9]+)*(:\w[\w.-]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,})?",
    re.ASCII,
)

# `gpu` alone means compute and utility: no graphics libraries, hence no EGL and no Vulkan driver in the container.
GPU_CAPABILITIES: Final = ("gpu", "compute", "utility", "graphics")

# Ids or UUIDs as nvidia-smi prints them; None for no GPU.
Gpus = tuple[str, ...] | Literal["all"] | None


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """One container; ``argv`` replaces the image's entry point and command."""

    image: str  # id or tag
    argv: tuple[str, ...]
    name: str = field(default_factory=lambda: f"labscale-{uuid.uuid4().hex[:12]}")
    env: Mapping[str, str] = field(default_factory=dict)  # added to the image's
    user: str | None = None  # "uid:gid"; None keeps the image's
    working_dir: str | None = None
    folders: Mapping[str, str] = field(default_factory=dict)  # of the host, "ro" or "rw"; inside at the same path
    gpus: Gpus = None
    network: Literal["host", "none"] = "none"
    ipc: Literal["host", "private"] = "private"
    shm_bytes: int | None = None  # size of /dev/shm if ``ipc`` is private; None keeps the engine's 64 MB
    memory_bytes: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)  # besides OWNER_LABEL


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    """An image that the engine has."""

    image_id: str  # sha256:…
    tags: tuple[str, ...]
    repo_digests: tuple[str, ...]  # empty before it was pushed or pulled
    labels: Mapping[str, str]

    @property
    def digest(self) -> str:
        """``sha256:…`` of the manifest in a registry, or of the local image if there is none."""
        return self.repo_digests[0].partition("@")[2] if self.repo_digests else self.image_id
