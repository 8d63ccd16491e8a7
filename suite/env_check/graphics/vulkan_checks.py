"""Judge what Vulkan found: a GPU, and the right one; or why not. Pure.

The verdict rests on calls, codes and the manifests' own faults; the loader's texts are evidence only.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.env_check.check import Check
from suite.env_check.finding import Finding
from suite.env_check.graphics import icd_checks as manifest_checks
from suite.env_check.graphics.frame import FrameSeen, check_frame
from suite.env_check.graphics.icd_manifests import ManifestsSeen
from suite.env_check.graphics.vulkan import DriverSeen, VulkanSeen
from suite.env_check.graphics.vulkan_api import NVIDIA, RAY_TRACING, result_name
from suite.env_check.probes.run import how_it_ended

_DEVICE_NODES: Final = (
    "compare the library's version with /proc/driver/nvidia/version and look that /dev/nvidiactl and /dev/nvidia0 are"
    " there; in a container NVIDIA_VISIBLE_DEVICES must name a GPU and NVIDIA_DRIVER_CAPABILITIES have graphics"
)


def check_vulkan_devices(
    seen: VulkanSeen, manifests: ManifestsSeen, *, cuda_uuids: Sequence[str] | None
) -> Check[VulkanSeen]:
    """A hardware device for each GPU of CUDA. ``cuda_uuids``: as NVML writes them ("GPU-…"); None when not known."""
    wanted = "a Vulkan device that is a GPU" + (f", for each of {len(cuda_uuids)} CUDA GPUs" if cuda_uuids else "")
    if fault := _fault(seen, manifests, cuda_uuids or ()):
        return fault.check(name="vulkan_devices", feature="vulkan", wanted=wanted, evidence=seen)
    found = ", ".join(f"{device.name} ({device.driver_name} {device.driver_info})" for device in seen.hardware)
    return Check(name="vulkan_devices", feature="vulkan", verdict="ok", found=found, wanted=wanted, evidence=seen)


def check_vulkan_frame(seen: FrameSeen) -> Check[FrameSeen]:
    return check_frame("vulkan_frame", "vulkan", "Vulkan", seen)


def check_ray_tracing(seen: VulkanSeen) -> Check[VulkanSeen]:
    """The extensions that a ray tracing renderer asks for. A GPU without RT cores offers some of them at most."""
    wanted = ", ".join(sorted(RAY_TRACING))
    if not seen.hardware:
        return Check(name="vulkan_ray_tracing", feature="rt-cores", verdict="not_checked", found="no Vulkan GPU",
                     wanted=wanted, evidence=seen)  # fmt: skip
    # Beside an RTX GPU, another vendor's integrated one does no harm.
    nvidia = [device for device in seen.hardware if device.vendor_id == NVIDIA]
    for device in nvidia or seen.hardware:
        if missing := sorted(RAY_TRACING - set(device.ray_tracing)):
            finding = Finding(
                word="no_ray_tracing",
                found=f"{device.name} does not offer {', '.join(missing)}",
                repair="use a GPU with RT cores (RTX, L4, L40S, A10, A40), or the stack kitless, which needs none",
            )
            return finding.check(name="vulkan_ray_tracing", feature="rt-cores", wanted=wanted, evidence=seen)
    found = ", ".join(device.name for device in seen.hardware)
    return Check(name="vulkan_ray_tracing", feature="rt-cores", verdict="ok", found=found, wanted=wanted, evidence=seen)


def _fault(seen: VulkanSeen, manifests: ManifestsSeen, cuda_uuids: Sequence[str]) -> Finding | None:
    if seen.loader_error is not None:
        text = f"libvulkan.so.1 does not load: {seen.loader_error}"
        return Finding(word="no_loader", found=text, repair="apt-get install libvulkan1")
    if seen.end != "answered":
        return _crash(seen, manifests)
    if not seen.hardware:
        return _no_hardware(seen, manifests)
    return _not_matched(seen, cuda_uuids)


def _crash(seen: VulkanSeen, manifests: ManifestsSeen) -> Finding:
    guilty = next((driver for driver in seen.drivers if driver.end != "answered"), None)
    if guilty:
        return _crashed_driver(guilty)
    how = f"the process {how_it_ended(seen.end, seen.signal, seen.exit_code)} in {seen.stage}"
    if cause := _cause(seen, manifests):
        # Each driver answers when it is asked alone: it is the loader that does not survive what one of them does.
        return replace(cause, found=f"{cause.found}; then {how}")
    word = "driver_hung" if seen.end == "hung" else "driver_aborted"
    return Finding(
        word=word,
        found=f"with all drivers together {how}",
        repair="leave out layers (VK_LOADER_LAYERS_DISABLE=~all~), then drivers (VK_LOADER_DRIVERS_DISABLE=<name>),"
        " until it works; reinstall the one that did it",
    )


def _crashed_driver(driver: DriverSeen) -> Finding:
    how = how_it_ended(driver.end, driver.signal, driver.exit_code)
    look = "look for a hung GPU in dmesg (Xid); " if driver.end == "hung" else ""
    return Finding(
        word="driver_hung" if driver.end == "hung" else "driver_aborted",
        found=f"{driver.library}: the process {how} in {driver.stage}",
        repair=f"{look}reinstall that driver, or go without it by"
        f" VK_LOADER_DRIVERS_DISABLE={Path(driver.manifest).name}; NVIDIA: {_DEVICE_NODES}",
    )


def _no_hardware(seen: VulkanSeen, manifests: ManifestsSeen) -> Finding:
    cause = _cause(seen, manifests)
    if seen.devices:
        names = ", ".join(device.name for device in seen.devices)
        why = f"; {cause.found}" if cause else ""
        repair = cause.repair if cause else "this machine needs a GPU and its driver's Vulkan half: " + _DEVICE_NODES
        return Finding(word="software_renderer", found=f"only software: {names}{why}", repair=repair)
    if cause:
        return cause
    call, code = ("vkCreateInstance", seen.create_result) if seen.create_result else (seen.stage, seen.enumerate_result)
    if seen.create_result:
        text = f"{call} returned {result_name(code or 0)}"
        return Finding(word="instance_refused", found=text, repair=_DEVICE_NODES)
    return Finding(word="zero_devices", found="no driver has a device", repair=_DEVICE_NODES)


def _cause(seen: VulkanSeen, manifests: ManifestsSeen) -> Finding | None:
    """Why there is no GPU: what a driver itself says, NVIDIA's first, else the weightiest fault of the manifests."""
    # Beside a software device, another vendor's driver without its hardware is as it should be.
    drivers = [driver for driver in seen.drivers if driver.is_nvidia or not seen.devices]
    drivers.sort(key=lambda driver: not driver.is_nvidia)
    refusals = [fault for driver in drivers if (fault := _refusal(driver))]
    if refusals:
        return refusals[0]
    blocking = [fault for fault in manifest_checks.all_faults(manifests) if fault.blocks]
    if blocking:
        usable = manifest_checks.usable(manifests)
        word = "zero_devices" if usable else "no_driver"
        return Finding(word=word, found=blocking[0].found, repair=blocking[0].repair)
    return None


def _refusal(driver: DriverSeen) -> Finding | None:
    if driver.end != "answered":
        return _crashed_driver(driver)
    if driver.negotiate_result:
        return Finding(
            word="interface_mismatch",
            found=f"{driver.library} refuses the loader's interface ({result_name(driver.negotiate_result)})",
            repair="update the loader: apt-get install --only-upgrade libvulkan1; or install the driver that fits it",
        )
    if driver.create_result:
        text = f"{driver.library}: vkCreateInstance returned {result_name(driver.create_result)} ({driver.manifest})"
        return Finding(word="instance_refused", found=text, repair=_DEVICE_NODES)
    if driver.enumerate_result:
        text = f"{driver.library}: vkEnumeratePhysicalDevices returned {result_name(driver.enumerate_result)}"
        return Finding(word="enumeration_failed", found=text, repair=_DEVICE_NODES)
    if driver.num_devices == 0 and driver.is_nvidia:
        return Finding(word="zero_devices", found=f"{driver.library} finds no GPU", repair=_DEVICE_NODES)
    return None


def _not_matched(seen: VulkanSeen, cuda_uuids: Sequence[str]) -> Finding | None:
    known = {device.uuid for device in seen.hardware}
    missing = [uuid for uuid in cuda_uuids if uuid.removeprefix("GPU-").lower() not in known]
    if not missing:
        return None
    listed = ", ".join(f"{device.name} {device.uuid or 'without UUID'}" for device in seen.hardware)
    return Finding(
        word="devices_not_matched",
        found=f"Vulkan does not list the CUDA GPU {', '.join(missing)}; it lists {listed}",
        repair="give the container the same GPUs for graphics and compute (NVIDIA_VISIBLE_DEVICES, device nodes"
        " /dev/nvidia<N>), and unset VK_LOADER_DEVICE_SELECT and MESA_VK_DEVICE_SELECT; a MIG slice has no Vulkan",
    )
