"""Checks whether this is a container, and which parts of the NVIDIA driver it requests.

``Container`` also words the repair of a missing part of the driver, so that no check advises what is set already.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from suite.env_check.check import Judgement, Subject

Part = Literal["compute", "utility", "graphics"]  # of the driver, as NVIDIA_DRIVER_CAPABILITIES names them

# NVIDIA's container toolkit provides these if the variable is not set.
TOOLKIT_DEFAULT: Final = ("compute", "utility")
_MARKS: Final = ("/.dockerenv", "/run/.containerenv")
_VARIABLES: Final = ("container", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "KUBERNETES_SERVICE_HOST")
_APPTAINER: Final = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
_PACKAGES: Final[dict[Part, str]] = {
    "compute": "libnvidia-compute-<branch>",
    "utility": "libnvidia-compute-<branch>",
    "graphics": "libnvidia-gl-<branch>",
}
_CGROUP_WORDS: Final = ("docker", "kubepods", "containerd", "libpod", "/lxc/")


@dataclass(frozen=True, kw_only=True)
class Container:
    is_container: bool
    signs: tuple[str, ...]  # the marks that were found
    driver_capabilities: str | None  # NVIDIA_DRIVER_CAPABILITIES
    visible_devices: str | None  # NVIDIA_VISIBLE_DEVICES
    is_wsl: bool = False  # WSL 2, where the driver is that of Windows

    @property
    def given(self) -> tuple[str, ...]:
        """Return the parts of the driver that the container requests."""
        words = (self.driver_capabilities or "").split(",")
        return TOOLKIT_DEFAULT if not self.driver_capabilities else tuple(word.strip() for word in words)

    @property
    def is_apptainer(self) -> bool:
        return any(name in self.signs for name in _APPTAINER)

    def gives(self, part: Part) -> bool:
        """Return whether nothing keeps this part of the driver out; outside containers nothing does."""
        return not self.is_container or self.is_apptainer or "all" in self.given or part in self.given

    def with_part(self, *parts: Part) -> str:
        """Return the setting that adds ``parts`` to what the container requests."""
        return f"NVIDIA_DRIVER_CAPABILITIES={','.join(dict.fromkeys((*TOOLKIT_DEFAULT, *self.given, *parts)))}"

    @property
    def repair_without_gpus(self) -> str:
        """Return the next step for a container that has no GPU."""
        if self.is_apptainer:
            return "Start the container with --nv, on a host with GPUs."
        if self.visible_devices in ("", "none", "void"):
            return f"NVIDIA_VISIBLE_DEVICES={self.visible_devices} keeps every GPU out: set it to all, and give GPUs."
        return "Start the container with GPUs (docker run --gpus all)."

    def repair_of_mismatch(self, file: str) -> str:
        """Return the next step for a file of another version than the kernel driver."""
        if self.is_wsl:
            return f"Remove the Linux driver that has {file}: WSL 2 uses that of Windows, below /usr/lib/wsl."
        if self.is_container:
            return (
                f"Recreate the container, to get the running driver's libraries. Remove the image's own copy: {file}."
            )
        return (
            "Restart the machine after a driver update (or unload and load the kernel module), or install the driver's"
            f" package of the kernel driver's version that has {file}."
        )

    def repair_of(self, part: Part, file: str) -> str:
        """Return the next step for a file of the driver that is missing."""
        package = f"the driver's package of exactly the same version (Ubuntu: {_PACKAGES[part]}), which has {file}"
        if self.is_wsl and part == "graphics":
            return f"WSL 2 has no {file}: render on native Linux, or use the stack kitless, whose renderer needs CUDA."
        if self.is_wsl:
            return f"{file} comes with the driver of Windows: update that driver, then wsl --update and wsl --shutdown."
        if not self.is_container:
            return f"Install {package}, then run ldconfig."
        if self.is_apptainer:
            return (
                f"Start with --nv. If it is set, add {file} to the host's nvliblist.conf, and install {package} there."
            )
        if not self.gives(part):
            return f"Start the container with {self.with_part(part)} (docker run --env ...), or with all."
        return f"The container requests the {part} part already: install {package}, on the host; then recreate it."


def read_container(environ: Mapping[str, str], root: Path = Path("/")) -> Container:
    """Look for the marks that container engines leave."""
    signs = [mark for mark in _MARKS if (root / mark.lstrip("/")).exists()]
    signs += [name for name in _VARIABLES if environ.get(name)]
    cgroup = root / "proc/1/cgroup"
    text = cgroup.read_text(encoding="utf-8") if is_there(cgroup) else ""  # with hidepid=1, only root may read it
    signs += [f"{word} in /proc/1/cgroup" for word in _CGROUP_WORDS if word in text]
    return Container(
        is_container=bool(signs),
        signs=tuple(signs),
        driver_capabilities=environ.get("NVIDIA_DRIVER_CAPABILITIES"),
        visible_devices=environ.get("NVIDIA_VISIBLE_DEVICES"),
        is_wsl=(root / "dev/dxg").exists(),
    )


def judge_capabilities(
    container: Container, wanted: tuple[Part, ...], driver: str | None, libraries: tuple[str, ...]
) -> Judgement:
    """Check that the container requests the ``wanted`` parts of the driver.

    CUDA needs the compute part, NVML the utility part, and rendering the graphics part. ``driver``: the kernel driver's
    version, if there is one. ``libraries``: found libraries of the ``wanted`` parts. If there are at least as many as
    parts, none is missing.
    """
    value = container.driver_capabilities
    missing = tuple(part for part in wanted if not container.gives(part))
    found = f"NVIDIA_DRIVER_CAPABILITIES={value}" if value else "NVIDIA_DRIVER_CAPABILITIES is not set"
    if not value and container.is_container:
        found += f", which means {','.join(TOOLKIT_DEFAULT)}"
    if missing and len(libraries) >= len(wanted):
        found += f", but {' and '.join(libraries)} {'is' if len(libraries) == 1 else 'are'} there"
        missing = ()
    subject = Subject(
        f"{','.join(wanted)} or all, in a container",
        {"container": container, "wanted": wanted, "missing": missing, "libraries": libraries},
    )
    if not container.is_container:
        found = "not in a container"
    if driver is None:
        return subject.not_checked(found)
    if missing:
        repair = f"Start the container with {container.with_part(*missing)} (docker run --env ...), or with all."
        return subject.failure("capabilities_missing", found, repair)
    return subject.ok(found)


def is_there(path: Path) -> bool:
    """Return whether a path exists; False if this user may not enter a parent folder, where pathlib raises an error.

    It happens, until Python 3.14, when ``sudo -u`` or a container keeps HOME, which is then another user's folder.
    """
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112
