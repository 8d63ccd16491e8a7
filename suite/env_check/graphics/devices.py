"""Judge what EGL found: a GPU, and the right one; or why not. Pure.

libEGL is silent about a vendor that it drops, so the cause comes from the manifests' own faults.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from suite.env_check.check import Check
from suite.env_check.finding import Finding
from suite.env_check.graphics import icd_checks as manifest_checks
from suite.env_check.graphics.egl import ERRORS, EglSeen, VendorSeen
from suite.env_check.graphics.frame import FrameSeen, check_frame
from suite.env_check.graphics.icd_manifests import ManifestsSeen
from suite.env_check.probes.run import how_it_ended

_DEVICE_NODES: Final = (
    "look that /dev/nvidiactl and /dev/nvidia0 (Mesa: /dev/dri/renderD128) are there and readable; in a container"
    " NVIDIA_VISIBLE_DEVICES must name a GPU and NVIDIA_DRIVER_CAPABILITIES have graphics"
)


def check_egl_devices(seen: EglSeen, manifests: ManifestsSeen, *, cuda_uuids: Sequence[str] | None) -> Check[EglSeen]:
    """A usable hardware device for each GPU of CUDA.

    ``cuda_uuids``: by CUDA ordinal, as NVML writes them ("GPU-…"); None when they are not known.
    """
    wanted = "an EGL device that is a GPU" + (f", for each of {len(cuda_uuids)} CUDA GPUs" if cuda_uuids else "")
    if fault := _fault(seen, manifests, cuda_uuids or ()):
        return fault.check(name="egl_devices", feature="egl", wanted=wanted, evidence=seen)
    found = ", ".join(device.name for device in seen.hardware)
    return Check(name="egl_devices", feature="egl", verdict="ok", found=found, wanted=wanted, evidence=seen)


def check_egl_frame(seen: FrameSeen) -> Check[FrameSeen]:
    return check_frame("egl_frame", "egl", "EGL", seen)


def _fault(seen: EglSeen, manifests: ManifestsSeen, cuda_uuids: Sequence[str]) -> Finding | None:
    if seen.loader_error is not None:
        text = f"libEGL.so.1 does not load: {seen.loader_error}"
        return Finding(word="no_loader", found=text, repair="apt-get install libegl1")
    if seen.end != "answered":
        return _crash(seen, manifests)
    if not seen.hardware:
        return _no_hardware(seen, manifests)
    return _not_matched(seen, cuda_uuids)


def _crash(seen: EglSeen, manifests: ManifestsSeen) -> Finding:
    guilty = next((vendor for vendor in seen.vendors if vendor.end != "answered"), None)
    how = f"the process {how_it_ended(seen.end, seen.signal, seen.exit_code)} in {seen.stage}"
    if guilty is None and (cause := _cause(seen, manifests)):
        # Each vendor answers when it is asked alone: it is libEGL that does not survive what one of them does.
        return replace(cause, found=f"{cause.found}; then {how}")
    others = ":".join(vendor.manifest for vendor in seen.vendors if vendor.end == "answered")
    without = f", or go without it by __EGL_VENDOR_LIBRARY_FILENAMES={others}" if guilty and others else ""
    look = "look for a hung GPU in dmesg (Xid); " if seen.end == "hung" else ""
    return Finding(
        word="driver_hung" if seen.end == "hung" else "driver_aborted",
        found=f"{guilty.library if guilty else 'a driver'}: {how}",
        repair=f"{look}reinstall that driver{without}; NVIDIA: {_DEVICE_NODES}",
    )


def _no_hardware(seen: EglSeen, manifests: ManifestsSeen) -> Finding:
    refused = [device for device in seen.devices if not device.initialised and not device.is_software]
    if refused:
        code = ERRORS.get(refused[0].error or 0, hex(refused[0].error or 0))
        text = f"eglInitialize returned {code} for {refused[0].name}"
        return Finding(
            word="initialise_failed", found=text, repair=f"install the driver's GL packages; {_DEVICE_NODES}"
        )
    cause = _cause(seen, manifests)
    software = [device for device in seen.devices if device.initialised]
    if software:
        why = f"; {cause.found}" if cause else ""
        repair = cause.repair if cause else "this machine needs a GPU and its driver's EGL half: " + _DEVICE_NODES
        return Finding(word="software_renderer", found=f"only software: {software[0].name}{why}", repair=repair)
    if seen.devices:
        code = ERRORS.get(seen.devices[0].error or 0, hex(seen.devices[0].error or 0))
        text = f"not even software: eglInitialize returned {code} for {seen.devices[0].name}"
        return Finding(word="initialise_failed", found=text, repair="apt-get install --reinstall libgl1-mesa-dri")
    if cause:
        return cause
    if seen.query_error is not None:
        text = f"eglQueryDevicesEXT returned {ERRORS.get(seen.query_error, hex(seen.query_error))}"
        return Finding(word="enumeration_failed", found=text, repair=_DEVICE_NODES)
    return Finding(word="zero_devices", found="no vendor library has a device", repair=_DEVICE_NODES)


def _cause(seen: EglSeen, manifests: ManifestsSeen) -> Finding | None:
    """Why there is no GPU: an NVIDIA library that finds none, else the weightiest fault of the manifests."""
    silent: list[VendorSeen] = [vendor for vendor in seen.vendors if vendor.is_nvidia and vendor.num_devices == 0]
    if silent:
        return Finding(word="zero_devices", found=f"{silent[0].library} finds no GPU", repair=_DEVICE_NODES)
    blocking = [fault for fault in manifest_checks.all_faults(manifests) if fault.blocks]
    if blocking:
        word = "zero_devices" if manifest_checks.usable(manifests) else "no_driver"
        return Finding(word=word, found=blocking[0].found, repair=blocking[0].repair)
    return None


def _not_matched(seen: EglSeen, cuda_uuids: Sequence[str]) -> Finding | None:
    known = {device.uuid for device in seen.hardware}
    indices = {device.cuda_index for device in seen.hardware}
    missing = [
        uuid
        for index, uuid in enumerate(cuda_uuids)
        if uuid.removeprefix("GPU-").lower() not in known and index not in indices
    ]
    if not missing:
        return None
    return Finding(
        word="devices_not_matched",
        found=f"EGL does not list the CUDA GPU {', '.join(missing)}; it lists"
        f" {', '.join(f'{device.name} CUDA index {device.cuda_index}' for device in seen.hardware)}",
        repair="give the container the same GPUs for graphics and compute (NVIDIA_VISIBLE_DEVICES, device nodes"
        " /dev/nvidia<N>), and let __EGL_VENDOR_LIBRARY_FILENAMES not leave NVIDIA's 10_nvidia.json out; a MIG slice"
        " has no EGL device",
    )
