"""Checks whether EGL and Vulkan list the GPUs that CUDA uses, and finds the cause if they do not.

The verdict depends on calls, error codes and the faults of the manifests. Messages are only evidence: libEGL prints
none when it drops a driver, and those of the Vulkan loader differ between its versions.
"""

from collections.abc import Sequence
from dataclasses import replace

from suite.env_check.check import Fault, Judgement, Subject
from suite.env_check.graphics.drivers_alone import DEVICE_NODES
from suite.env_check.graphics.egl import EglSeen
from suite.env_check.graphics.icd_checks import blocking_fault, usable
from suite.env_check.graphics.icd_manifests import ManifestsSeen
from suite.env_check.graphics.vulkan import VulkanSeen
from suite.env_check.probes.run import how_it_ended

type Seen = EglSeen | VulkanSeen


def judge_devices(seen: Seen, manifests: ManifestsSeen, cuda_uuids: Sequence[str] = ()) -> Judgement:
    """Judge whether each CUDA GPU is a usable device.

    ``cuda_uuids``: UUIDs in CUDA order, as NVML writes them ("GPU-…"); empty if they are unknown.
    """
    for_each = f", for each of {len(cuda_uuids)} CUDA GPUs" if cuda_uuids else ""
    article = "an" if seen.API == "EGL" else "a"
    subject = Subject(f"{article} {seen.API} device that is a GPU{for_each}", seen)
    if fault := _fault(seen, manifests, cuda_uuids):
        return subject.faulty(fault)
    return subject.ok(", ".join(device.description for device in seen.hardware))


def _fault(seen: Seen, manifests: ManifestsSeen, cuda_uuids: Sequence[str]) -> Fault | None:
    if seen.loader_error is not None:
        library, package = seen.LOADER
        text = f"{library} does not load: {seen.loader_error}"
        return Fault(word="no_loader", found=text, repair=f"apt-get install {package}")
    if seen.end != "answered":
        return _crash(seen, manifests)
    if not seen.hardware:
        return _no_hardware(seen, manifests)
    return _not_matched(seen, cuda_uuids)


def _crash(seen: Seen, manifests: ManifestsSeen) -> Fault:
    if failed := next((driver for driver in seen.alone if driver.end != "answered"), None):
        return failed.crash(seen.going_without(failed))
    how = f"the process {how_it_ended(seen)} in {seen.stage}"
    if cause := _cause(seen, manifests):
        # Each driver answers when it is loaded alone, so the loader crashes on what one of them does.
        return replace(cause, found=f"{cause.found}; then {how}")
    return Fault(
        word="driver_hung" if seen.end == "hung" else "driver_aborted",
        found=f"with all drivers together {how}",
        repair=f"{seen.FIND_CAUSE} until it works; reinstall the one that failed",
    )


def _no_hardware(seen: Seen, manifests: ManifestsSeen) -> Fault:
    if isinstance(seen, EglSeen) and (fault := seen.device_fault()):
        return fault
    cause = _cause(seen, manifests)
    if seen.software:
        why = f"; {cause.found}" if cause else ""
        needed = f"this machine needs a GPU and its driver's {seen.API} half: {DEVICE_NODES}"
        return Fault(
            word="software_renderer",
            found=f"only software: {', '.join(device.name for device in seen.software)}{why}",
            repair=cause.repair if cause else needed,
        )
    no_devices = Fault(word="zero_devices", found="no driver has a device", repair=DEVICE_NODES)
    return cause or seen.call_fault() or no_devices


def _cause(seen: Seen, manifests: ManifestsSeen) -> Fault | None:
    """Return why there is no GPU: the error of a driver, NVIDIA's first, else the worst fault of the manifests."""
    # If a software device is listed, another vendor's driver without hardware is no fault.
    drivers = [driver for driver in seen.alone if driver.is_nvidia or not seen.devices]
    for driver in sorted(drivers, key=lambda driver: not driver.is_nvidia):
        if refusal := driver.refusal():
            return refusal
    blocking = blocking_fault(manifests)
    return blocking and replace(blocking, word="zero_devices" if usable(manifests) else "no_driver")


def _not_matched(seen: Seen, cuda_uuids: Sequence[str]) -> Fault | None:
    known = {device.uuid for device in seen.hardware}
    indices = {device.cuda_index for device in seen.hardware}
    missing = [
        uuid
        for index, uuid in enumerate(cuda_uuids)
        if uuid.removeprefix("GPU-").lower() not in known and index not in indices
    ]
    if not missing:
        return None
    listed = ", ".join(device.identity for device in seen.hardware)
    return Fault(
        word="devices_not_matched",
        found=f"{seen.API} does not list the CUDA GPU {', '.join(missing)}; it lists {listed}",
        repair="give the container the same GPUs for graphics and compute (NVIDIA_VISIBLE_DEVICES, device nodes"
        f" /dev/nvidia<N>), and {seen.HIDE_NOTHING}; a MIG slice has no {seen.API} device",
    )
