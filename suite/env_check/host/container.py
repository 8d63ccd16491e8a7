"""Checks whether this is a container, and which parts of the NVIDIA driver it requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.env_check.check import Judgement, Subject
from suite.env_check.host.exists import is_there

# NVIDIA's container toolkit provides these if the variable is not set.
TOOLKIT_DEFAULT: Final = ("compute", "utility")
_MARKS: Final = ("/.dockerenv", "/run/.containerenv")
_VARIABLES: Final = ("container", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "KUBERNETES_SERVICE_HOST")
_CGROUP_WORDS: Final = ("docker", "kubepods", "containerd", "libpod", "/lxc/")


@dataclass(frozen=True, kw_only=True)
class Container:
    is_container: bool
    signs: tuple[str, ...]  # the marks that were found
    driver_capabilities: str | None  # NVIDIA_DRIVER_CAPABILITIES
    visible_devices: str | None  # NVIDIA_VISIBLE_DEVICES


@dataclass(frozen=True, kw_only=True)
class DriverCapabilities:
    """Evidence of ``driver_capabilities`` and ``driver_capabilities_compute``."""

    container: Container
    wanted: tuple[str, ...]
    missing: tuple[str, ...]
    libraries: tuple[str, ...]  # found libraries of those capabilities


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
    )


def judge_driver_capabilities(
    container: Container, wanted: tuple[str, ...], *, has_driver: bool, libraries: tuple[str, ...]
) -> Judgement:
    """Rendering needs the graphics part of the driver, CUDA the compute part and NVML the utility part.

    ``libraries``: found libraries of the ``wanted`` parts. If there are at least as many as parts, none is missing.
    """
    value = container.driver_capabilities
    given = TOOLKIT_DEFAULT if not value else tuple(word.strip() for word in value.split(","))
    missing = () if "all" in given else tuple(word for word in wanted if word not in given)
    found = f"NVIDIA_DRIVER_CAPABILITIES={value}" if value else "NVIDIA_DRIVER_CAPABILITIES is not set"
    if not value and container.is_container:
        found += f", which means {','.join(TOOLKIT_DEFAULT)}"
    if missing and len(libraries) >= len(wanted):
        found += f", but {' and '.join(libraries)} {'is' if len(libraries) == 1 else 'are'} there"
        missing = ()
    subject = Subject(
        f"{','.join(wanted)} or all, in a container",
        DriverCapabilities(container=container, wanted=wanted, missing=missing, libraries=libraries),
    )
    if not container.is_container:
        found = "not in a container"
    if not has_driver:
        return subject.not_checked(found)
    if container.is_container and missing:
        asked = ",".join(dict.fromkeys((*TOOLKIT_DEFAULT, *wanted)))
        repair = f"Start the container with NVIDIA_DRIVER_CAPABILITIES={asked} (docker run --env ...), or with all."
        return subject.failure("capabilities_missing", found, repair)
    return subject.ok(found)
