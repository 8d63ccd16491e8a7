"""Checks whether EGL and Vulkan list the GPUs that CUDA uses, and finds the cause if they do not.

The verdict depends on calls, error codes and the faults of the manifests. Messages are only evidence: libEGL prints
none when it drops a driver, and those of the Vulkan loader differ between its versions. Child processes, which may
crash, list the devices. If none is a GPU, each driver is asked alone, to find the one that fails.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

from suite.env_check.check import Fault, Judgement, Subject
from suite.env_check.gpu.driver import GRAPHICS, DriverFacts, judge_device_nodes
from suite.env_check.graphics.manifests import LIBEGL, Manifest, ManifestFacts, all_faults, usable
from suite.env_check.libraries import LibraryFacts, is_nvidia, library_fault
from suite.env_check.probes.run import Ending, run_probe
from suite.env_check.probes.vulkan import INCOMPATIBLE_DRIVER, NVIDIA, RAY_TRACING, SOFTWARE_DRIVERS, result_name

TIMEOUT_S: Final = 60.0  # the first call on an idle machine initialises every GPU, which takes seconds each
_EGL_ERRORS: Final = {
    0x3000: "EGL_SUCCESS",
    0x3001: "EGL_NOT_INITIALIZED",
    0x3002: "EGL_BAD_ACCESS",
    0x3003: "EGL_BAD_ALLOC",
    0x3004: "EGL_BAD_ATTRIBUTE",
    0x3008: "EGL_BAD_DISPLAY",
    0x300C: "EGL_BAD_PARAMETER",
}


@dataclass(frozen=True, kw_only=True)
class LoneDriver(Ending):
    """A driver that a process loaded alone. Results of Vulkan's calls that did not run are None, as all are for EGL."""

    manifest: str
    library: str
    num_devices: int | None = None
    negotiate_result: int | None = None
    create_result: int | None = None
    enumerate_result: int | None = None
    missing: str | None = None  # the function whose address the driver gives as null

    @property
    def is_nvidia(self) -> bool:
        return is_nvidia(self.library)


@dataclass(frozen=True, kw_only=True)
class EglDevice:
    is_software: bool
    extensions: tuple[str, ...]
    drm_node: str | None
    render_node: str | None
    cuda_index: int | None = None
    uuid: str | None = None
    initialised: bool = False
    error: int | None = None  # from eglInitialize
    version: str | None = None
    vendor: str | None = None
    client_apis: str | None = None

    @property
    def name(self) -> str:
        kind = "software" if self.is_software else self.render_node or self.drm_node or "no DRM node"
        return f"{self.vendor or 'unknown vendor'} ({kind})"

    @property
    def description(self) -> str:
        return self.name

    @property
    def identity(self) -> str:
        return f"{self.name} CUDA index {self.cuda_index}"


@dataclass(frozen=True, kw_only=True)
class VulkanDevice:
    cuda_index: ClassVar = None
    initialised: ClassVar = True  # what Vulkan lists is usable

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
class ApiFacts[Device: (EglDevice, VulkanDevice)](Ending):
    """What an API lists."""

    loader_error: str | None = None  # why the loader's library does not load
    devices: tuple[Device, ...] = ()
    stderr: str
    wall_s: float

    @property
    def hardware(self) -> tuple[Device, ...]:
        """Return the usable devices that are GPUs."""
        return tuple(device for device in self.devices if device.initialised and not device.is_software)

    @property
    def software(self) -> tuple[Device, ...]:
        return tuple(device for device in self.devices if device.initialised and device.is_software)


@dataclass(frozen=True, kw_only=True)
class EglFacts(ApiFacts[EglDevice]):
    API: ClassVar = "EGL"
    LOADER: ClassVar = ("libEGL.so.1", "libegl1")  # its library and package
    FIND_CAUSE: ClassVar = "leave manifests out of __EGL_VENDOR_LIBRARY_FILENAMES"
    CHOOSERS: ClassVar = ("__EGL_VENDOR_LIBRARY_FILENAMES", "__EGL_VENDOR_LIBRARY_DIRS")

    devices: tuple[EglDevice, ...] = ()
    client_extensions: tuple[str, ...] = ()
    query_error: int | None = None  # from eglQueryDevicesEXT
    vendors: tuple[LoneDriver, ...] = ()  # each alone, only if no device is a usable GPU

    @property
    def drivers(self) -> tuple[LoneDriver, ...]:
        return self.vendors

    def device_fault(self, next_step: str) -> Fault | None:
        """Return why a listed device is unusable: a GPU first, else a software device if no other works."""
        refused = sorted(
            (device for device in self.devices if not device.initialised), key=lambda device: device.is_software
        )
        if not refused or (refused[0].is_software and self.software):
            return None
        text = f"eglInitialize returned {_egl_error(refused[0].error)} for {refused[0].name}"
        if refused[0].is_software:
            text, next_step = f"software rendering fails too: {text}", "apt-get install --reinstall libgl1-mesa-dri"
        return Fault(word="initialise_failed", found=text, repair=next_step)

    def call_fault(self, next_step: str) -> Fault | None:
        """Return the fault of the device query, which no single driver causes."""
        if self.query_error is None:
            return None
        text = f"eglQueryDevicesEXT returned {_egl_error(self.query_error)}"
        return Fault(word="enumeration_failed", found=text, repair=next_step)

    def going_without(self, _failed: LoneDriver) -> str:
        """Return the setting that excludes a driver; empty if no other driver works."""
        others = ":".join(driver.manifest for driver in self.drivers if driver.end == "answered")
        return f"__EGL_VENDOR_LIBRARY_FILENAMES={others}" if others else ""


def _egl_error(code: int | None) -> str:
    return _EGL_ERRORS.get(code or 0, hex(code or 0))


@dataclass(frozen=True, kw_only=True)
class VulkanFacts(ApiFacts[VulkanDevice]):
    API: ClassVar = "Vulkan"
    LOADER: ClassVar = ("libvulkan.so.1", "libvulkan1")  # its library and package
    FIND_CAUSE: ClassVar = (
        "leave out layers (VK_LOADER_LAYERS_DISABLE=~all~), then drivers (VK_LOADER_DRIVERS_DISABLE=<name>),"
    )
    CHOOSERS: ClassVar = ("VK_LOADER_DEVICE_SELECT", "MESA_VK_DEVICE_SELECT", "VK_DRIVER_FILES", "VK_ICD_FILENAMES")

    devices: tuple[VulkanDevice, ...] = ()
    loader_version: str | None = None
    create_result: int | None = None  # VkResult from vkCreateInstance
    enumerate_result: int | None = None
    drivers: tuple[LoneDriver, ...] = ()  # each alone, only if no device is a usable GPU
    messages: tuple[Mapping[str, str], ...] = ()  # severity and text

    def call_fault(self, next_step: str) -> Fault | None:
        if not self.create_result:
            return None
        text = f"vkCreateInstance returned {result_name(self.create_result)}"
        return Fault(word="instance_refused", found=text, repair=next_step)

    def device_fault(self, _next_step: str) -> None:
        """Return nothing: a device that Vulkan lists is usable."""

    def going_without(self, failed: LoneDriver) -> str:
        return f"VK_LOADER_DRIVERS_DISABLE={Path(failed.manifest).name}"


type AnyFacts = EglFacts | VulkanFacts


def read_egl(environ: Mapping[str, str], manifests: ManifestFacts, *, timeout_s: float = TIMEOUT_S) -> EglFacts:
    """List the devices. If none is hardware, load each usable vendor library of ``manifests`` alone."""

    def ask(manifest: Manifest) -> LoneDriver:
        only_this = {**environ, "__EGL_VENDOR_LIBRARY_FILENAMES": manifest.path}
        alone = run_probe("egl", "devices", environ=only_this, timeout_s=timeout_s)
        library, num_devices = Path(manifest.library_path or manifest.path).name, len(alone.answer.get("devices", ()))
        return alone.as_facts(LoneDriver, manifest=manifest.path, library=library, num_devices=num_devices)

    facts = run_probe("egl", "devices", environ=environ, timeout_s=timeout_s).as_facts(EglFacts)
    return replace(facts, vendors=_lone_drivers(facts, manifests, ask))


def read_vulkan(environ: Mapping[str, str], manifests: ManifestFacts, *, timeout_s: float = TIMEOUT_S) -> VulkanFacts:
    """List the devices through the loader. If none is hardware, call each usable driver of ``manifests`` alone."""

    def ask(manifest: Manifest) -> LoneDriver:
        library = manifest.library.name if manifest.library else manifest.path
        alone = run_probe("vulkan", "driver", library, environ=environ, timeout_s=timeout_s)
        return alone.as_facts(LoneDriver, manifest=manifest.path, library=Path(library).name)

    facts = run_probe("vulkan", "devices", environ=environ, timeout_s=timeout_s).as_facts(VulkanFacts)
    return replace(facts, drivers=_lone_drivers(facts, manifests, ask))


def _lone_drivers(
    facts: AnyFacts, manifests: ManifestFacts, ask: Callable[[Manifest], LoneDriver]
) -> tuple[LoneDriver, ...]:
    """Ask each driver alone if the loader works and lists no usable GPU."""
    if facts.loader_error is not None or (facts.end == "answered" and facts.hardware):
        return ()
    with ThreadPoolExecutor() as pool:
        return tuple(pool.map(ask, usable(manifests)))


def judge_devices(
    facts: AnyFacts,
    manifests: ManifestFacts,
    driver: DriverFacts,
    libraries: LibraryFacts,
    cuda_uuids: Sequence[str],
) -> Judgement:
    """Judge whether each CUDA GPU is a usable device.

    ``cuda_uuids``: UUIDs in CUDA order, as NVML writes them ("GPU-…"); empty if they are unknown.
    """
    for_gpus = f", for each of {len(cuda_uuids)} CUDA GPUs" if cuda_uuids else ""
    article = "an" if facts.API == "EGL" else "a"
    subject = Subject(f"{article} {facts.API} device that is a GPU{for_gpus}", facts)
    next_step = _next_step(driver)
    if facts.loader_error is not None:
        name, package = facts.LOADER
        loader = next((library_fault(library, manifests.container) for library in libraries.named(name)), None)
        repair = loader.repair if loader else f"apt-get install {package}"
        return subject.failure("no_loader", f"{name} does not load: {facts.loader_error}", repair)
    if facts.end != "answered":
        return subject.faulty(_crash(facts, manifests, next_step))
    if not facts.hardware:
        return subject.faulty(facts.device_fault(next_step) or _no_hardware(facts, manifests, next_step))
    if fault := _not_matched(facts, manifests, cuda_uuids):
        return subject.faulty(fault)
    return subject.ok(", ".join(device.description for device in facts.hardware))


def _next_step(driver: DriverFacts) -> str:
    """Return the next step where a graphics driver shows no GPU; never what is there already."""
    container = driver.container
    if repair := judge_device_nodes(driver).repair:
        return repair
    if driver.container.is_wsl or not container.gives("graphics"):
        return container.repair_of("graphics", GRAPHICS[0])
    if not driver.nodes and container.is_container:
        return container.repair_without_gpus
    if not driver.nodes:
        return "install the GPU's driver; Mesa: this user must be able to open /dev/dri/renderD128"
    return "look for NVRM and Xid lines in dmesg; then reinstall the driver's GL packages, on the host"


def _crash(facts: AnyFacts, manifests: ManifestFacts, next_step: str) -> Fault:
    if failed := next((driver for driver in facts.drivers if driver.end != "answered"), None):
        return _driver_crash(facts, failed, next_step)
    how = f"the process {facts.how} in {facts.stage}"
    if cause := _cause(facts, manifests, next_step):
        # Each driver answers when it is loaded alone, so the loader crashes on what one of them does.
        return replace(cause, found=f"{cause.found}; then {how}")
    return Fault(
        word=facts.driver_fault,
        found=f"with all drivers together {how}",
        repair=f"{facts.FIND_CAUSE} until it works; reinstall the one that failed",
    )


def _driver_crash(facts: AnyFacts, driver: LoneDriver, next_step: str) -> Fault:
    look = "look for a hung GPU in dmesg (Xid); " if driver.end == "hung" else ""
    without = f", or exclude it with {setting}" if (setting := facts.going_without(driver)) else ""
    return Fault(
        word=driver.driver_fault,
        found=f"{driver.library}: the process {driver.how} in {driver.stage}",
        repair=f"{look}reinstall that driver{without}; NVIDIA: {next_step}",
    )


def _no_hardware(facts: AnyFacts, manifests: ManifestFacts, next_step: str) -> Fault:
    cause = _cause(facts, manifests, next_step)
    if facts.software:
        why = f"; {cause.found}" if cause else ""
        needed = f"this machine needs a GPU and its driver's {facts.API} half: {next_step}"
        return Fault(
            word="software_renderer",
            found=f"only software: {', '.join(device.name for device in facts.software)}{why}",
            repair=cause.repair if cause else needed,
        )
    no_devices = Fault(word="zero_devices", found="no driver has a device", repair=next_step)
    return cause or facts.call_fault(next_step) or no_devices


def _cause(facts: AnyFacts, manifests: ManifestFacts, next_step: str) -> Fault | None:
    """Return why there is no GPU: the error of a driver, NVIDIA's first, else the worst fault of the manifests."""
    # If a software device is listed, another vendor's driver without hardware is no fault.
    drivers = [driver for driver in facts.drivers if driver.is_nvidia or not facts.devices]
    for driver in sorted(drivers, key=lambda driver: not driver.is_nvidia):
        if refusal := _refusal(facts, driver, manifests, next_step):
            return refusal
    blocking = next((fault for fault in all_faults(manifests) if fault.verdict == "failure"), None)
    return blocking and replace(blocking, word="zero_devices" if usable(manifests) else "no_driver")


def _refusal(facts: AnyFacts, driver: LoneDriver, manifests: ManifestFacts, next_step: str) -> Fault | None:
    """Return why a driver that was loaded alone gives no GPU."""
    libegl = manifests.nvidia.get(LIBEGL)  # which only the Vulkan half of NVIDIA's driver needs
    without_egl = library_fault(libegl, manifests.container) if libegl else None
    if without_egl and (driver.missing or driver.is_nvidia):
        next_step = without_egl.repair
    if driver.end != "answered":
        return _driver_crash(facts, driver, next_step)
    library = driver.library
    if driver.negotiate_result == INCOMPATIBLE_DRIVER:
        return Fault(
            word="interface_mismatch",
            found=f"{library} refuses the loader's interface ({result_name(driver.negotiate_result)})",
            repair="update the loader: apt-get install --only-upgrade libvulkan1; or install the driver that fits it",
        )
    if driver.missing:
        text = f"{library}: vk_icdGetInstanceProcAddr gives no {driver.missing}"
        return Fault(word="driver_function_missing", found=text, repair=next_step)
    codes = (
        ("instance_refused", "vk_icdNegotiateLoaderICDInterfaceVersion", driver.negotiate_result),
        ("instance_refused", "vkCreateInstance", driver.create_result),
        ("enumeration_failed", "vkEnumeratePhysicalDevices", driver.enumerate_result),
    )
    for word, call, code in codes:
        if code:
            text = f"{library}: {call} returned {result_name(code)} ({driver.manifest})"
            return Fault(word=word, found=text, repair=next_step)
    if driver.num_devices == 0 and driver.is_nvidia:
        return Fault(word="zero_devices", found=f"{library} finds no GPU", repair=next_step)
    return None


def _not_matched(facts: AnyFacts, manifests: ManifestFacts, cuda_uuids: Sequence[str]) -> Fault | None:
    uuids = {device.uuid for device in facts.hardware}
    indices = {device.cuda_index for device in facts.hardware}
    missing = [
        uuid
        for index, uuid in enumerate(cuda_uuids)
        if uuid.removeprefix("GPU-").lower() not in uuids and index not in indices
    ]
    if not missing:
        return None
    listed = ", ".join(device.identity for device in facts.hardware)
    no_mig = f"a MIG slice has no {facts.API} device"
    if chosen := [name for name in facts.CHOOSERS if name in manifests.variables]:
        next_step = f"unset {' and '.join(chosen)}, or have it name every GPU's driver"
    elif manifests.container.is_container:
        next_step = f"give the container every GPU's nodes (/dev/nvidia<N>, /dev/dri); {no_mig}"
    else:
        next_step = f"look for NVRM lines in dmesg; {no_mig}"
    return Fault(
        word="devices_not_matched",
        found=f"{facts.API} does not list the CUDA GPU {', '.join(missing)}; it lists {listed}",
        repair=next_step,
    )


def judge_ray_tracing(facts: VulkanFacts) -> Judgement:
    """Judge the extensions that a ray tracing renderer needs. A GPU without RT cores lacks at least one of them."""
    subject = Subject(", ".join(sorted(RAY_TRACING)), facts)
    if not facts.hardware:
        return subject.not_checked("no Vulkan GPU")
    # Another vendor's integrated GPU next to an RTX GPU does no harm.
    nvidia = [device for device in facts.hardware if device.vendor_id == NVIDIA]
    for device in nvidia or facts.hardware:
        if missing := sorted(RAY_TRACING - set(device.ray_tracing)):
            return subject.failure(
                "no_ray_tracing",
                f"{device.name} does not offer {', '.join(missing)}",
                "use a GPU with RT cores (RTX, L4, L40S, A10, A40), or the stack kitless, which needs none",
            )
    return subject.ok(", ".join(device.name for device in facts.hardware))
