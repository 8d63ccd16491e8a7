"""Checks whether EGL and Vulkan list the GPUs that CUDA uses, and finds the cause if they do not.

The verdict depends on calls, error codes and the faults of the manifests. Messages are only evidence: libEGL prints
none when it drops a driver, and those of the Vulkan loader differ between its versions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from suite.env_check.check import Fault, Judgement, Subject
from suite.env_check.gpu.driver import DriverFacts
from suite.env_check.graphics.drivers_alone import next_step
from suite.env_check.graphics.egl import EglSeen
from suite.env_check.graphics.icd_checks import blocking_fault, usable
from suite.env_check.graphics.icd_manifests import ManifestsSeen
from suite.env_check.graphics.vulkan import VulkanSeen
from suite.env_check.libraries.driver_libraries import LibrariesSeen
from suite.env_check.libraries.library import Library, repair
from suite.env_check.probes.run import how_it_ended

type Seen = EglSeen | VulkanSeen


@dataclass(frozen=True)
class _Around:
    """The facts beside the devices, which tell what to do next."""

    manifests: ManifestsSeen
    loader: Library | None  # of the API; None if it was not looked at
    next_step: str


def judge_devices(
    seen: Seen, manifests: ManifestsSeen, driver: DriverFacts, libraries: LibrariesSeen, cuda_uuids: Sequence[str] = ()
) -> Judgement:
    """Judge whether each CUDA GPU is a usable device.

    ``cuda_uuids``: UUIDs in CUDA order, as NVML writes them ("GPU-…"); empty if they are unknown.
    """
    loader = next((library for library in libraries.named(seen.LOADER[0]) if library.fault), None)
    around = _Around(manifests, loader, next_step(driver))
    for_each = f", for each of {len(cuda_uuids)} CUDA GPUs" if cuda_uuids else ""
    article = "an" if seen.API == "EGL" else "a"
    subject = Subject(f"{article} {seen.API} device that is a GPU{for_each}", seen)
    if fault := _fault(seen, around, cuda_uuids):
        return subject.faulty(fault)
    return subject.ok(", ".join(device.description for device in seen.hardware))


def _fault(seen: Seen, around: _Around, cuda_uuids: Sequence[str]) -> Fault | None:
    if seen.loader_error is not None:
        library, package = seen.LOADER
        text = f"{library} does not load: {seen.loader_error}"
        found = repair(around.loader, around.manifests.container) if around.loader else f"apt-get install {package}"
        return Fault(word="no_loader", found=text, repair=found)
    if seen.end != "answered":
        return _crash(seen, around)
    if not seen.hardware:
        return _no_hardware(seen, around)
    return _not_matched(seen, around, cuda_uuids)


def _crash(seen: Seen, around: _Around) -> Fault:
    if failed := next((driver for driver in seen.alone if driver.end != "answered"), None):
        return failed.crash(seen.going_without(failed), around.next_step)
    how = f"the process {how_it_ended(seen)} in {seen.stage}"
    if cause := _cause(seen, around):
        # Each driver answers when it is loaded alone, so the loader crashes on what one of them does.
        return replace(cause, found=f"{cause.found}; then {how}")
    return Fault(
        word="driver_hung" if seen.end == "hung" else "driver_aborted",
        found=f"with all drivers together {how}",
        repair=f"{seen.FIND_CAUSE} until it works; reinstall the one that failed",
    )


def _no_hardware(seen: Seen, around: _Around) -> Fault:
    if isinstance(seen, EglSeen) and (fault := seen.device_fault(around.next_step)):
        return fault
    cause = _cause(seen, around)
    if seen.software:
        why = f"; {cause.found}" if cause else ""
        needed = f"this machine needs a GPU and its driver's {seen.API} half: {around.next_step}"
        return Fault(
            word="software_renderer",
            found=f"only software: {', '.join(device.name for device in seen.software)}{why}",
            repair=cause.repair if cause else needed,
        )
    no_devices = Fault(word="zero_devices", found="no driver has a device", repair=around.next_step)
    return cause or seen.call_fault(around.next_step) or no_devices


def _cause(seen: Seen, around: _Around) -> Fault | None:
    """Return why there is no GPU: the error of a driver, NVIDIA's first, else the worst fault of the manifests."""
    # If a software device is listed, another vendor's driver without hardware is no fault.
    drivers = [driver for driver in seen.alone if driver.is_nvidia or not seen.devices]
    for driver in sorted(drivers, key=lambda driver: not driver.is_nvidia):
        if refusal := driver.refusal(around.next_step, around.manifests):
            return refusal
    blocking = blocking_fault(around.manifests)
    return blocking and replace(blocking, word="zero_devices" if usable(around.manifests) else "no_driver")


def _not_matched(seen: Seen, around: _Around, cuda_uuids: Sequence[str]) -> Fault | None:
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
        repair=_matching_repair(seen, around.manifests),
    )


def _matching_repair(seen: Seen, manifests: ManifestsSeen) -> str:
    if chosen := [name for name in seen.CHOOSERS if name in manifests.variables]:
        return f"unset {' and '.join(chosen)}, or have it name every GPU's driver"
    if manifests.container.is_container:
        return f"give the container every GPU's nodes (/dev/nvidia<N>, /dev/dri); a MIG slice has no {seen.API} device"
    return f"look for NVRM lines in dmesg; a MIG slice has no {seen.API} device"
