"""Renders one frame through EGL and one through Vulkan, checks every pixel, and reads all that rendering needs."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from suite.env_check.check import Judgement, Subject
from suite.env_check.graphics.devices import TIMEOUT_S, EglDevice, EglSeen, VulkanSeen, read_egl, read_vulkan
from suite.env_check.graphics.manifests import ManifestsSeen, read_manifests
from suite.env_check.probes.run import SIZE, Ending, run_probe


@dataclass(frozen=True, kw_only=True)
class FrameSeen(Ending):
    """The result of the frame. Fields of steps that did not run are None."""

    error: str | None = None  # the library's own message, if it failed
    package_missing: str | None = None  # the Python package of the suite that is not installed
    device: str | None = None  # the renderer's name, from the driver
    is_software: bool | None = None
    wrong_pixels: int | None = None
    stderr: str
    wall_s: float


def read_egl_frame(environ: Mapping[str, str], seen: EglSeen, *, timeout_s: float = TIMEOUT_S) -> FrameSeen:
    """Render one frame on the first hardware device of ``seen``, or on a software device if there is no other."""

    def rank(device: EglDevice) -> tuple[bool, bool]:
        return not device.initialised, device.is_software

    order = sorted(range(len(seen.devices)), key=lambda index: rank(seen.devices[index]))
    return _read_frame("egl", str(order[0] if order else 0), environ=environ, timeout_s=timeout_s)


def read_vulkan_frame(environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> FrameSeen:
    """Render one frame on the first hardware device, or on a software device if there is no other."""
    return _read_frame("vulkan", environ=environ, timeout_s=timeout_s)


def _read_frame(
    api: Literal["egl", "vulkan"], *arguments: str, environ: Mapping[str, str], timeout_s: float
) -> FrameSeen:
    return run_probe(api, "frame", *arguments, environ=environ, timeout_s=timeout_s).as_facts(FrameSeen)


def judge_frame(seen: FrameSeen, api: str) -> Judgement:
    """Judge a frame. Right pixels from a software renderer are a fault too."""
    subject = Subject(f"a frame rendered through {api} on a GPU, every pixel right", seen)
    first = f"repair what the checks of the {api} loader, drivers and devices name first"
    if seen.package_missing:
        return subject.warning(
            "frame_package_missing",
            f"no frame was rendered: the Python package {seen.package_missing} is not installed",
            f"install the suite's pinned packages, which include {seen.package_missing}",
        )
    if seen.end != "answered":
        return subject.failure(
            seen.driver_fault,
            f"the process {seen.how} at: {seen.stage}",
            f"reinstall the driver (hung: look for Xid in dmesg); {first}",
        )
    if seen.error is not None:
        return subject.failure("no_context", f"{seen.stage}: {seen.error}", first)
    if seen.wrong_pixels:
        return subject.failure(
            "wrong_pixels",
            f"{seen.wrong_pixels} of {SIZE * SIZE} pixels are wrong, by {seen.device}",
            "this driver renders wrong pixels: install another version of it",
        )
    if seen.is_software:
        found = f"right pixels, but by software: {seen.device}"
        return subject.failure("software_renderer", found, f"no GPU's driver is in use: {first}")
    return subject.ok(f"{SIZE}x{SIZE} pixels right, by {seen.device}")


@dataclass(frozen=True, kw_only=True)
class GraphicsSeen:
    vulkan_manifests: ManifestsSeen
    egl_vendors: ManifestsSeen
    vulkan: VulkanSeen
    egl: EglSeen
    vulkan_frame: FrameSeen
    egl_frame: FrameSeen


def read_graphics(environ: Mapping[str, str], *, driver_version: str | None, root: Path = Path("/")) -> GraphicsSeen:
    """Read manifests, devices and frames in parallel. ``driver_version``: NVIDIA's kernel driver; None without one."""

    def of_vulkan() -> tuple[ManifestsSeen, VulkanSeen]:
        manifests = read_manifests("vulkan", environ, driver_version=driver_version, root=root)
        return manifests, read_vulkan(environ, manifests)

    def of_egl() -> tuple[ManifestsSeen, EglSeen, FrameSeen]:
        manifests = read_manifests("egl", environ, driver_version=driver_version, root=root)
        seen = read_egl(environ, manifests)
        return manifests, seen, read_egl_frame(environ, seen)

    with ThreadPoolExecutor() as pool:  # each waits for child processes; the Vulkan frame takes longest
        frame, vulkan_read, egl_read = (
            pool.submit(read_vulkan_frame, environ),
            pool.submit(of_vulkan),
            pool.submit(of_egl),
        )
        vulkan_manifests, vulkan = vulkan_read.result()
        egl_vendors, egl, egl_frame = egl_read.result()
        return GraphicsSeen(
            vulkan_manifests=vulkan_manifests,
            egl_vendors=egl_vendors,
            vulkan=vulkan,
            egl=egl,
            vulkan_frame=frame.result(),
            egl_frame=egl_frame,
        )
