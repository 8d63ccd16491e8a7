"""Reads the graphics half of the driver stack, in parallel."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from suite.env_check.graphics import egl, icd_manifests, vulkan
from suite.env_check.graphics.egl import EglSeen
from suite.env_check.graphics.frame import FrameSeen
from suite.env_check.graphics.icd_manifests import ManifestsSeen
from suite.env_check.graphics.vulkan import VulkanSeen
from suite.env_check.libraries import driver_libraries
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
    """Read libraries, manifests, devices and frames.

    ``driver_version`` is that of the NVIDIA kernel driver; None if there is none.
    """

    def read_vulkan() -> tuple[ManifestsSeen, VulkanSeen]:
        found = icd_manifests.read("vulkan", environ, driver_version=driver_version, root=root)
        return found, vulkan.read(environ, found)

    def read_egl() -> tuple[ManifestsSeen, EglSeen, FrameSeen]:
        found = icd_manifests.read("egl", environ, driver_version=driver_version, root=root)
        seen = egl.read(environ, found)
        return found, seen, egl.read_frame(environ, seen)

    with ThreadPoolExecutor() as pool:  # each waits for child processes; the Vulkan frame takes longest
        frame = pool.submit(vulkan.read_frame, environ)
        vulkan_read, egl_read = pool.submit(read_vulkan), pool.submit(read_egl)
        found = pool.submit(driver_libraries.read, environ, driver_version=driver_version)
        vulkan_manifests, vulkan_seen = vulkan_read.result()
        egl_vendors, egl_seen, egl_frame = egl_read.result()
        return GraphicsSeen(
            libraries=found.result(),
            vulkan_manifests=vulkan_manifests,
            egl_vendors=egl_vendors,
            vulkan=vulkan_seen,
            egl=egl_seen,
            vulkan_frame=frame.result(),
            egl_frame=egl_frame,
        )
