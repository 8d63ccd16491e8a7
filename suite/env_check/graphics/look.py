"""The graphics half of the driver stack at once: everything read in parallel, then judged."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from suite.env_check.check import Check
from suite.env_check.graphics import devices as egl_checks
from suite.env_check.graphics import egl, vulkan, vulkan_checks
from suite.env_check.graphics import icd_checks as manifest_checks
from suite.env_check.graphics import icd_manifests as manifests
from suite.env_check.graphics.egl import EglSeen
from suite.env_check.graphics.frame import FrameSeen
from suite.env_check.graphics.icd_manifests import ManifestsSeen
from suite.env_check.graphics.vulkan import VulkanSeen
from suite.env_check.libraries import driver_libraries as libraries
from suite.env_check.libraries.driver_libraries import LibrariesSeen


@dataclass(frozen=True, kw_only=True)
class GraphicsSeen:
    libraries: LibrariesSeen
    vulkan_manifests: ManifestsSeen
    egl_vendors: ManifestsSeen
    vulkan: VulkanSeen
    egl: EglSeen
    vulkan_frame: FrameSeen
    egl_frame: FrameSeen


def read(environ: Mapping[str, str], *, driver_version: str | None, root: Path = Path("/")) -> GraphicsSeen:
    """Look at the machine. ``driver_version``: of the NVIDIA kernel driver, None when there is none."""

    def read_vulkan() -> tuple[ManifestsSeen, VulkanSeen]:
        found = manifests.read_vulkan(environ, driver_version=driver_version, root=root)
        return found, vulkan.read(environ, found)

    def read_egl() -> tuple[ManifestsSeen, EglSeen, FrameSeen]:
        found = manifests.read_egl(environ, driver_version=driver_version, root=root)
        seen = egl.read(environ, found)
        return found, seen, egl.read_frame(environ, seen)

    with ThreadPoolExecutor() as pool:  # each waits for child processes; the Vulkan frame takes longest
        frame = pool.submit(vulkan.read_frame, environ)
        of_vulkan, of_egl = pool.submit(read_vulkan), pool.submit(read_egl)
        found = pool.submit(libraries.read, environ, driver_version=driver_version)
        vulkan_manifests, vulkan_seen = of_vulkan.result()
        egl_vendors, egl_seen, egl_frame = of_egl.result()
        return GraphicsSeen(
            libraries=found.result(),
            vulkan_manifests=vulkan_manifests,
            egl_vendors=egl_vendors,
            vulkan=vulkan_seen,
            egl=egl_seen,
            vulkan_frame=frame.result(),
            egl_frame=egl_frame,
        )


def checks(seen: GraphicsSeen, *, cuda_uuids: Sequence[str] | None) -> tuple[Check[Any], ...]:
    """Every check, in the order in which a person would repair.

    ``cuda_uuids``: by CUDA ordinal, as NVML writes them ("GPU-…"); None when they are not known.
    """
    return (
        libraries.check_cuda_driver(seen.libraries),
        libraries.check_libgl(seen.libraries),
        libraries.check_egl_loader(seen.libraries),
        libraries.check_egl_driver(seen.libraries),
        manifest_checks.check_egl_vendors(seen.egl_vendors),
        egl_checks.check_egl_devices(seen.egl, seen.egl_vendors, cuda_uuids=cuda_uuids),
        egl_checks.check_egl_frame(seen.egl_frame),
        libraries.check_vulkan_loader(seen.libraries),
        libraries.check_vulkan_driver(seen.libraries),
        manifest_checks.check_vulkan_manifests(seen.vulkan_manifests),
        vulkan_checks.check_vulkan_devices(seen.vulkan, seen.vulkan_manifests, cuda_uuids=cuda_uuids),
        vulkan_checks.check_vulkan_frame(seen.vulkan_frame),
        vulkan_checks.check_ray_tracing(seen.vulkan),
    )
