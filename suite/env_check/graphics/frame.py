"""Renders one frame through EGL and one through Vulkan, checks every pixel, and reads all that rendering needs."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

from suite.env_check.check import Judgement, Subject
from suite.env_check.graphics.devices import TIMEOUT_S, EglFacts, VulkanFacts, read_egl, read_vulkan
from suite.env_check.graphics.manifests import ManifestFacts, read_manifests
from suite.env_check.probes.run import SIZE, Ending, run_probe


@dataclass(frozen=True, kw_only=True)
class FrameFacts(Ending):
    """The result of the frame. Fields of steps that did not run are None."""

    error: str | None = None  # the library's own message, if it failed
    package_missing: str | None = None  # the Python package of the suite that is not installed
    device: str | None = None  # the renderer's name, from the driver
    is_software: bool | None = None
    wrong_pixels: int | None = None
    stderr: str
    wall_s: float


def read_frame(
    api: Literal["egl", "vulkan"], *arguments: str, environ: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> FrameFacts:
    """Render one frame. ``arguments`` of EGL are the index of its device; Vulkan chooses its first hardware device."""
    return run_probe(api, "frame", *arguments, environ=environ, timeout_s=timeout_s).as_facts(FrameFacts)


def frame_device(facts: EglFacts) -> str:
    """Return the index of the first hardware device, or of a software device if there is no other."""

    def rank(index: int) -> tuple[bool, bool]:
        return not facts.devices[index].initialised, facts.devices[index].is_software

    return str(min(range(len(facts.devices)), key=rank, default=0))


def judge_frame(facts: FrameFacts, api: str) -> Judgement:
    """Judge a frame. Right pixels from a software renderer are a fault too."""
    subject = Subject(f"a frame rendered through {api} on a GPU, every pixel right", facts)
    first = f"repair what the checks of the {api} loader, drivers and devices name first"
    if facts.package_missing:
        return subject.warning(
            "frame_package_missing",
            f"no frame was rendered: the Python package {facts.package_missing} is not installed",
            f"install the suite's pinned packages, which include {facts.package_missing}",
        )
    if facts.end != "answered":
        return subject.failure(
            facts.driver_fault,
            f"the process {facts.how} at: {facts.stage}",
            f"reinstall the driver (hung: look for Xid in dmesg); {first}",
        )
    if facts.error is not None:
        return subject.failure("no_context", f"{facts.stage}: {facts.error}", first)
    if facts.wrong_pixels:
        return subject.failure(
            "wrong_pixels",
            f"{facts.wrong_pixels} of {SIZE * SIZE} pixels are wrong, by {facts.device}",
            "this driver renders wrong pixels: install another version of it",
        )
    if facts.is_software:
        found = f"right pixels, but by software: {facts.device}"
        return subject.failure("software_renderer", found, f"no GPU's driver is in use: {first}")
    return subject.ok(f"{SIZE}x{SIZE} pixels right, by {facts.device}")


@dataclass(frozen=True, kw_only=True)
class GraphicsFacts:
    vulkan_manifests: ManifestFacts
    egl_vendors: ManifestFacts
    vulkan: VulkanFacts
    egl: EglFacts
    vulkan_frame: FrameFacts
    egl_frame: FrameFacts


def read_graphics(environ: Mapping[str, str], *, driver_version: str | None) -> GraphicsFacts:
    """Read manifests, devices and frames in parallel. ``driver_version``: NVIDIA's kernel driver; None without one."""

    def of_vulkan() -> tuple[ManifestFacts, VulkanFacts]:
        manifests = read_manifests("vulkan", environ, driver_version=driver_version)
        return manifests, read_vulkan(environ, manifests)

    def of_egl() -> tuple[ManifestFacts, EglFacts, FrameFacts]:
        manifests = read_manifests("egl", environ, driver_version=driver_version)
        facts = read_egl(environ, manifests)
        return manifests, facts, read_frame("egl", frame_device(facts), environ=environ)

    with ThreadPoolExecutor() as pool:  # each waits for child processes; the Vulkan frame takes longest
        frame = pool.submit(read_frame, "vulkan", environ=environ)
        vulkan_read, egl_read = pool.submit(of_vulkan), pool.submit(of_egl)
        vulkan_manifests, vulkan = vulkan_read.result()
        egl_vendors, egl, egl_frame = egl_read.result()
        return GraphicsFacts(
            vulkan_manifests=vulkan_manifests,
            egl_vendors=egl_vendors,
            vulkan=vulkan,
            egl=egl,
            vulkan_frame=frame.result(),
            egl_frame=egl_frame,
        )
