"""What Vulkan really finds on this machine, asked in child processes; ``vulkan_checks`` judges it."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.env_check.graphics import frame
from suite.env_check.graphics import icd_checks as manifest_checks
from suite.env_check.graphics.frame import FrameSeen
from suite.env_check.graphics.icd_manifests import Manifest, ManifestsSeen
from suite.env_check.graphics.vulkan_api import SOFTWARE_DRIVERS
from suite.env_check.libraries.library import is_nvidia
from suite.env_check.probes.run import End, ProbeRun, run_probe

TIMEOUT_S: Final = 60.0  # the first call on an idle machine initialises every GPU, seconds each


@dataclass(frozen=True, kw_only=True)
class VulkanDevice:
    name: str
    type: str  # "discrete_gpu", "cpu", …
    vendor_id: str  # "0x10de" is NVIDIA
    api_version: str
    driver_id: int | None  # VkDriverId
    driver_name: str | None
    driver_info: str | None  # NVIDIA: the driver version
    uuid: str | None  # the same as CUDA's, without "GPU-"
    ray_tracing: tuple[str, ...]  # of the three ray tracing extensions, those offered

    @property
    def is_software(self) -> bool:
        return self.type == "cpu" or self.driver_id in SOFTWARE_DRIVERS


@dataclass(frozen=True, kw_only=True)
class DriverSeen:
    """What one driver says when it is asked without the loader. A call that was not reached has None."""

    manifest: str
    library: str
    end: End
    signal: str | None
    exit_code: int | None
    stage: str | None  # the call that was under way when it died or hung
    negotiate_result: int | None = None
    create_result: int | None = None
    enumerate_result: int | None = None
    num_devices: int | None = None

    @property
    def is_nvidia(self) -> bool:
        return is_nvidia(self.library)


@dataclass(frozen=True, kw_only=True)
class LoaderMessage:
    severity: str
    text: str


@dataclass(frozen=True, kw_only=True)
class VulkanSeen:
    end: End
    signal: str | None  # that ended the probe
    exit_code: int | None
    stage: str | None  # the call that was under way when the probe ended
    loader_error: str | None  # libvulkan.so.1 does not load
    loader_version: str | None
    create_result: int | None  # VkResult of vkCreateInstance
    enumerate_result: int | None
    devices: tuple[VulkanDevice, ...]
    drivers: tuple[DriverSeen, ...]  # asked one by one, only when no hardware device was found
    messages: tuple[LoaderMessage, ...]  # evidence: texts differ between loader versions
    stderr: str
    wall_s: float

    @property
    def hardware(self) -> tuple[VulkanDevice, ...]:
        return tuple(device for device in self.devices if not device.is_software)


def read(environ: Mapping[str, str], manifests: ManifestsSeen, *, timeout_s: float = TIMEOUT_S) -> VulkanSeen:
    """Enumerate through the loader; where that yields no hardware, ask each usable driver of ``manifests`` alone."""
    run = run_probe("probes.vulkan", environ=environ, timeout_s=timeout_s)
    answer = run.answer
    devices = tuple(
        VulkanDevice(**{**device, "ray_tracing": tuple(device["ray_tracing"])}) for device in answer.get("devices", ())
    )
    found = run.end == "answered" and any(not device.is_software for device in devices)
    lacks_loader = answer.get("loader_error") is not None
    return VulkanSeen(
        end=run.end,
        signal=run.signal,
        exit_code=run.exit_code,
        stage=answer.get("stage"),
        loader_error=answer.get("loader_error"),
        loader_version=answer.get("loader_version"),
        create_result=answer.get("create_result"),
        enumerate_result=answer.get("enumerate_result"),
        devices=devices,
        drivers=() if found or lacks_loader else _ask_each(environ, manifests, timeout_s),
        messages=tuple(LoaderMessage(**message) for message in answer.get("messages", ())),
        stderr=run.stderr,
        wall_s=run.wall_s,
    )


def read_frame(environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> FrameSeen:
    """Render one frame on the first hardware device, or on a software one where there is nothing else."""
    return frame.read_frame("probes.vulkan_frame", environ=environ, timeout_s=timeout_s)


def _ask_each(environ: Mapping[str, str], manifests: ManifestsSeen, timeout_s: float) -> tuple[DriverSeen, ...]:
    def ask(manifest: Manifest) -> DriverSeen | None:
        library = manifest.library.name if manifest.library else None
        if library is None:
            return None
        return _describe(manifest, library, run_probe("probes.icd", library, environ=environ, timeout_s=timeout_s))

    with ThreadPoolExecutor() as pool:
        return tuple(driver for driver in pool.map(ask, manifest_checks.usable(manifests)) if driver)


def _describe(manifest: Manifest, library: str, run: ProbeRun) -> DriverSeen:
    return DriverSeen(
        manifest=manifest.path,
        library=Path(library).name,
        end=run.end,
        signal=run.signal,
        exit_code=run.exit_code,
        stage=run.answer.get("stage"),
        negotiate_result=run.answer.get("negotiate_result"),
        create_result=run.answer.get("create_result"),
        enumerate_result=run.answer.get("enumerate_result"),
        num_devices=run.answer.get("num_devices"),
    )
