"""Whether EGL and Vulkan list a GPU, and the right one; if not, why.

The verdict rests on calls, codes and the manifests' own faults. libEGL does not say that it drops a driver, and the
texts of the Vulkan loader differ between its versions: they are evidence only.
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
    """Each GPU of CUDA should be a device that can be used.

    ``cuda_uuids``: by CUDA ordinal, as NVML writes them ("GPU-…"); empty when they are not known.
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
    if guilty := next((driver for driver in seen.alone if driver.end != "answered"), None):
        return guilty.crash(seen.going_without(guilty))
    how = f"the process {how_it_ended(seen)} in {seen.stage}"
    if cause := _cause(seen, manifests):
        # Each driver answers when it is asked alone: it is the loader that does not survive what one of them does.
        return replace(cause, found=f"{cause.found}; then {how}")
    return Fault(
        word="driver_hung" if seen.end == "hung" else "driver_aborted",
        found=f"with all drivers together {how}",
        repair=f"{seen.FIND_GUILTY} until it works; reinstall the one that did it",
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
    """Why there is no GPU: what a driver itself says, NVIDIA's first, else the weightiest fault of the manifests."""
    # Beside a software device, another vendor's driver without its hardware is as it should be.
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
