"""Lists the Vulkan devices of this machine, in child processes that may crash."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from suite.env_check.check import Fault, Judgement, Subject
from suite.env_check.graphics import frame
from suite.env_check.graphics.drivers_alone import TIMEOUT_S, DriverAlone, ask_each
from suite.env_check.graphics.frame import FrameSeen
from suite.env_check.graphics.icd_manifests import LIBEGL, Manifest, ManifestsSeen
from suite.env_check.graphics.vulkan_api import INCOMPATIBLE_DRIVER, NVIDIA, RAY_TRACING, SOFTWARE_DRIVERS, result_name
from suite.env_check.libraries.library import repair
from suite.env_check.probes.run import End, run_probe


@dataclass(frozen=True, kw_only=True)
class VulkanDevice:
    cuda_index: ClassVar = None

    name: str
    type: str  # "discrete_gpu", "cpu", …
    vendor_id: str  # "0x10de" is NVIDIA
    api_version: str
    driver_id: int | None  # VkDriverId
    driver_name: str | None
    driver_info: str | None  # NVIDIA: the driver version
    uuid: str | None
    ray_tracing: tuple[str, ...]  # the offered ones of the three ray tracing extensions

    @property
    def is_software(self) -> bool:
        return self.type == "cpu" or self.driver_id in SOFTWARE_DRIVERS

    @property
    def description(self) -> str:
        return f"{self.name} ({self.driver_name} {self.driver_info})"

    @property
    def identity(self) -> str:
        return f"{self.name} {self.uuid or 'without UUID'}"


@dataclass(frozen=True, kw_only=True)
class DriverSeen(DriverAlone):
    """The results of one driver that is called without the loader. Calls that did not run are None."""

    negotiate_result: int | None = None
    create_result: int | None = None
    enumerate_result: int | None = None
    num_devices: int | None = None
    missing: str | None = None  # the function whose address the driver gives as null

    def refusal(self, next_step: str, manifests: ManifestsSeen) -> Fault | None:
        egl = manifests.nvidia[LIBEGL]
        if egl.fault and (self.missing or self.is_nvidia):
            next_step = repair(egl, manifests.container)
        if self.end != "answered":
            return self.crash(_going_without(self), next_step)
        if self.negotiate_result == INCOMPATIBLE_DRIVER:
            return Fault(
                word="interface_mismatch",
                found=f"{self.library} refuses the loader's interface ({result_name(self.negotiate_result)})",
                repair="update the loader: apt-get install --only-upgrade libvulkan1; or install the driver that fits"
                " it",
            )
        if self.missing:
            text = f"{self.library}: vk_icdGetInstanceProcAddr gives no {self.missing}"
            return Fault(word="driver_function_missing", found=text, repair=next_step)
        codes = (
            ("instance_refused", "vk_icdNegotiateLoaderICDInterfaceVersion", self.negotiate_result),
            ("instance_refused", "vkCreateInstance", self.create_result),
            ("enumeration_failed", "vkEnumeratePhysicalDevices", self.enumerate_result),
        )
        for word, call, code in codes:
            if code:
                text = f"{self.library}: {call} returned {result_name(code)} ({self.manifest})"
                return Fault(word=word, found=text, repair=next_step)
        return self.no_gpu(next_step) if self.num_devices == 0 and self.is_nvidia else None


@dataclass(frozen=True, kw_only=True)
class LoaderMessage:
    severity: str
    text: str


@dataclass(frozen=True, kw_only=True)
class VulkanSeen:
    API: ClassVar = "Vulkan"
    LOADER: ClassVar = ("libvulkan.so.1", "libvulkan1")  # its library and package
    FIND_CAUSE: ClassVar = (
        "leave out layers (VK_LOADER_LAYERS_DISABLE=~all~), then drivers (VK_LOADER_DRIVERS_DISABLE=<name>),"
    )
    CHOOSERS: ClassVar = ("VK_LOADER_DEVICE_SELECT", "MESA_VK_DEVICE_SELECT", "VK_DRIVER_FILES", "VK_ICD_FILENAMES")

    end: End
    signal: str | None  # the signal that ended the probe
    exit_code: int | None
    stage: str | None  # the call in progress when the probe ended
    loader_error: str | None  # why libvulkan.so.1 does not load
    loader_version: str | None
    create_result: int | None  # VkResult from vkCreateInstance
    enumerate_result: int | None
    devices: tuple[VulkanDevice, ...]
    drivers: tuple[DriverSeen, ...] = ()  # called alone, only if no hardware device was found
    messages: tuple[LoaderMessage, ...]
    stderr: str
    wall_s: float

    @property
    def hardware(self) -> tuple[VulkanDevice, ...]:
        return tuple(device for device in self.devices if not device.is_software)

    @property
    def software(self) -> tuple[VulkanDevice, ...]:
        return tuple(device for device in self.devices if device.is_software)

    @property
    def alone(self) -> tuple[DriverSeen, ...]:
        return self.drivers

    def call_fault(self, next_step: str) -> Fault | None:
        if not self.create_result:
            return None
        text = f"vkCreateInstance returned {result_name(self.create_result)}"
        return Fault(word="instance_refused", found=text, repair=next_step)

    def going_without(self, failed: DriverAlone) -> str:
        return _going_without(failed)


def _going_without(driver: DriverAlone) -> str:
    return f"VK_LOADER_DRIVERS_DISABLE={Path(driver.manifest).name}"


def read(environ: Mapping[str, str], manifests: ManifestsSeen, *, timeout_s: float = TIMEOUT_S) -> VulkanSeen:
    """List the devices through the loader. If none is hardware, call each usable driver of ``manifests`` alone."""
    run = run_probe("probes.vulkan", environ=environ, timeout_s=timeout_s)
    answer = run.answer

    def ask(manifest: Manifest) -> DriverSeen:
        library = manifest.library.name if manifest.library else manifest.path
        alone = run_probe("probes.icd", library, environ=environ, timeout_s=timeout_s)
        results = ("negotiate_result", "create_result", "enumerate_result", "num_devices", "missing")
        answered: dict[str, Any] = {name: alone.answer.get(name) for name in results}
        return DriverSeen(manifest=manifest.path, library=Path(library).name, **alone.ending, **answered)

    seen = VulkanSeen(
        **run.ending,
        loader_error=answer.get("loader_error"),
        loader_version=answer.get("loader_version"),
        create_result=answer.get("create_result"),
        enumerate_result=answer.get("enumerate_result"),
        devices=tuple(
            VulkanDevice(**{**device, "ray_tracing": tuple(device["ray_tracing"])})
            for device in answer.get("devices", ())
        ),
        messages=tuple(LoaderMessage(**message) for message in answer.get("messages", ())),
        stderr=run.stderr,
        wall_s=run.wall_s,
    )
    found = seen.end == "answered" and seen.hardware
    return seen if found or seen.loader_error is not None else replace(seen, drivers=ask_each(manifests, ask))


def read_frame(environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> FrameSeen:
    """Render one frame on the first hardware device, or on a software device if there is no other."""
    return frame.read_frame("probes.vulkan_frame", environ=environ, timeout_s=timeout_s)


def judge_ray_tracing(seen: VulkanSeen) -> Judgement:
    """Judge the extensions that a ray tracing renderer needs. A GPU without RT cores lacks at least one of them."""
    subject = Subject(", ".join(sorted(RAY_TRACING)), seen)
    if not seen.hardware:
        return subject.not_checked("no Vulkan GPU")
    # Another vendor's integrated GPU next to an RTX GPU does no harm.
    nvidia = [device for device in seen.hardware if device.vendor_id == NVIDIA]
    for device in nvidia or seen.hardware:
        if missing := sorted(RAY_TRACING - set(device.ray_tracing)):
            return subject.failure(
                "no_ray_tracing",
                f"{device.name} does not offer {', '.join(missing)}",
                "use a GPU with RT cores (RTX, L4, L40S, A10, A40), or the stack kitless, which needs none",
            )
    return subject.ok(", ".join(device.name for device in seen.hardware))
