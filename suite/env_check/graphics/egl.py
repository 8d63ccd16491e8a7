"""Lists the EGL devices of this machine, in child processes that may crash."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

from suite.env_check.check import Fault
from suite.env_check.graphics import frame
from suite.env_check.graphics.drivers_alone import TIMEOUT_S, DriverAlone, ask_each
from suite.env_check.graphics.frame import FrameSeen
from suite.env_check.graphics.icd_manifests import Manifest, ManifestsSeen
from suite.env_check.probes.run import End, run_probe

ERRORS: Final = {
    0x3000: "EGL_SUCCESS",
    0x3001: "EGL_NOT_INITIALIZED",
    0x3002: "EGL_BAD_ACCESS",
    0x3003: "EGL_BAD_ALLOC",
    0x3004: "EGL_BAD_ATTRIBUTE",
    0x3008: "EGL_BAD_DISPLAY",
    0x300C: "EGL_BAD_PARAMETER",
}


@dataclass(frozen=True, kw_only=True)
class EglDevice:
    is_software: bool
    extensions: tuple[str, ...]
    drm_node: str | None
    render_node: str | None
    cuda_index: int | None
    uuid: str | None
    initialised: bool
    error: int | None  # from eglInitialize
    version: str | None
    vendor: str | None
    client_apis: str | None

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
class VendorSeen(DriverAlone):
    """The result of one vendor library that libEGL loads alone."""

    num_devices: int

    def refusal(self, next_step: str, _manifests: ManifestsSeen) -> Fault | None:
        return self.no_gpu(next_step) if self.is_nvidia and self.num_devices == 0 else None


@dataclass(frozen=True, kw_only=True)
class EglSeen:
    API: ClassVar = "EGL"
    LOADER: ClassVar = ("libEGL.so.1", "libegl1")  # its library and package
    FIND_CAUSE: ClassVar = "leave manifests out of __EGL_VENDOR_LIBRARY_FILENAMES"
    CHOOSERS: ClassVar = ("__EGL_VENDOR_LIBRARY_FILENAMES", "__EGL_VENDOR_LIBRARY_DIRS")

    end: End
    signal: str | None  # the signal that ended the probe
    exit_code: int | None
    stage: str | None  # the call in progress when the probe ended
    loader_error: str | None  # why libEGL.so.1 does not load
    client_extensions: tuple[str, ...]
    query_error: int | None  # from eglQueryDevicesEXT
    devices: tuple[EglDevice, ...]
    vendors: tuple[VendorSeen, ...] = ()  # loaded alone, only if no hardware device was initialised
    stderr: str
    wall_s: float

    @property
    def hardware(self) -> tuple[EglDevice, ...]:
        """Return the usable devices that are GPUs."""
        return tuple(device for device in self.devices if device.initialised and not device.is_software)

    @property
    def software(self) -> tuple[EglDevice, ...]:
        return tuple(device for device in self.devices if device.initialised and device.is_software)

    @property
    def alone(self) -> tuple[VendorSeen, ...]:
        return self.vendors

    def device_fault(self, next_step: str) -> Fault | None:
        """Return why a listed device is unusable: a GPU first, else a software device if no other works."""
        refused = [device for device in self.devices if not device.initialised]
        refused.sort(key=lambda device: device.is_software)
        if not refused or (refused[0].is_software and self.software):
            return None
        text = f"eglInitialize returned {_error_name(refused[0].error)} for {refused[0].name}"
        if refused[0].is_software:
            repair = "apt-get install --reinstall libgl1-mesa-dri"
            return Fault(word="initialise_failed", found=f"software rendering fails too: {text}", repair=repair)
        return Fault(word="initialise_failed", found=text, repair=next_step)

    def call_fault(self, next_step: str) -> Fault | None:
        """Return the fault of the device query, which no single driver causes."""
        if self.query_error is None:
            return None
        text = f"eglQueryDevicesEXT returned {_error_name(self.query_error)}"
        return Fault(word="enumeration_failed", found=text, repair=next_step)

    def going_without(self, _failed: DriverAlone) -> str:
        others = ":".join(vendor.manifest for vendor in self.vendors if vendor.end == "answered")
        return f"__EGL_VENDOR_LIBRARY_FILENAMES={others}" if others else ""


def _error_name(code: int | None) -> str:
    return ERRORS.get(code or 0, hex(code or 0))


def read(environ: Mapping[str, str], manifests: ManifestsSeen, *, timeout_s: float = TIMEOUT_S) -> EglSeen:
    """List the devices. If none is hardware, load each usable vendor library of ``manifests`` alone."""
    run = run_probe("probes.egl", environ=environ, timeout_s=timeout_s)
    answer = run.answer

    def ask(manifest: Manifest) -> VendorSeen:
        only_this = {**environ, "__EGL_VENDOR_LIBRARY_FILENAMES": manifest.path}
        alone = run_probe("probes.egl", environ=only_this, timeout_s=timeout_s)
        library, num_devices = Path(manifest.library_path or manifest.path).name, len(alone.answer.get("devices", ()))
        return VendorSeen(manifest=manifest.path, library=library, **alone.ending, num_devices=num_devices)

    seen = EglSeen(
        **run.ending,
        loader_error=answer.get("loader_error"),
        client_extensions=tuple(answer.get("client_extensions", ())),
        query_error=answer.get("query_error"),
        devices=tuple(
            EglDevice(**{**device, "extensions": tuple(device["extensions"])}) for device in answer.get("devices", ())
        ),
        stderr=run.stderr,
        wall_s=run.wall_s,
    )
    found = seen.end == "answered" and seen.hardware
    return seen if found or seen.loader_error is not None else replace(seen, vendors=ask_each(manifests, ask))


def read_frame(environ: Mapping[str, str], seen: EglSeen, *, timeout_s: float = TIMEOUT_S) -> FrameSeen:
    """Render one frame on the first hardware device of ``seen``, or on a software device if there is no other."""
    order = sorted(range(len(seen.devices)), key=lambda index: _frame_rank(seen.devices[index]))
    return frame.read_frame("probes.egl_frame", str(order[0] if order else 0), environ=environ, timeout_s=timeout_s)


def _frame_rank(device: EglDevice) -> tuple[bool, bool]:
    return not device.initialised, device.is_software
