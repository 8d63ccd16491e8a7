"""What EGL really finds on this machine, asked in child processes; ``egl_checks`` judges it."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.env_check.graphics import frame
from suite.env_check.graphics import icd_checks as manifest_checks
from suite.env_check.graphics.frame import FrameSeen
from suite.env_check.graphics.icd_manifests import Manifest, ManifestsSeen
from suite.env_check.libraries.library import is_nvidia
from suite.env_check.probes.run import End, ProbeRun, run_probe

TIMEOUT_S: Final = 60.0  # the first call on an idle machine initialises every GPU, seconds each

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
    cuda_index: int | None  # CUDA's ordinal, which only NVIDIA's driver tells
    uuid: str | None  # the same as CUDA's, without "GPU-"
    initialised: bool
    error: int | None  # of eglInitialize
    version: str | None
    vendor: str | None
    client_apis: str | None

    @property
    def name(self) -> str:
        kind = "software" if self.is_software else self.render_node or self.drm_node or "no DRM node"
        return f"{self.vendor or 'unknown vendor'} ({kind})"


@dataclass(frozen=True, kw_only=True)
class VendorSeen:
    """What one vendor library yields when libEGL is given it alone."""

    manifest: str
    library: str
    end: End
    signal: str | None
    exit_code: int | None
    stage: str | None
    num_devices: int

    @property
    def is_nvidia(self) -> bool:
        return is_nvidia(self.library)


@dataclass(frozen=True, kw_only=True)
class EglSeen:
    end: End
    signal: str | None  # that ended the probe
    exit_code: int | None
    stage: str | None  # the call that was under way when the probe ended
    loader_error: str | None  # libEGL.so.1 does not load
    client_extensions: tuple[str, ...]
    query_error: int | None  # of eglQueryDevicesEXT
    devices: tuple[EglDevice, ...]
    vendors: tuple[VendorSeen, ...]  # asked one by one, only when no hardware device was initialised
    stderr: str
    wall_s: float

    @property
    def hardware(self) -> tuple[EglDevice, ...]:
        """Devices that are GPUs and can be used."""
        return tuple(device for device in self.devices if device.initialised and not device.is_software)


def read(environ: Mapping[str, str], manifests: ManifestsSeen, *, timeout_s: float = TIMEOUT_S) -> EglSeen:
    """Enumerate; where that yields no hardware, ask each usable vendor library of ``manifests`` by itself."""
    run = run_probe("probes.egl", environ=environ, timeout_s=timeout_s)
    answer = run.answer
    devices = tuple(
        EglDevice(**{**device, "extensions": tuple(device["extensions"])}) for device in answer.get("devices", ())
    )
    found = run.end == "answered" and any(device.initialised and not device.is_software for device in devices)
    lacks_loader = answer.get("loader_error") is not None
    return EglSeen(
        end=run.end,
        signal=run.signal,
        exit_code=run.exit_code,
        stage=answer.get("stage"),
        loader_error=answer.get("loader_error"),
        client_extensions=tuple(answer.get("client_extensions", ())),
        query_error=answer.get("query_error"),
        devices=devices,
        vendors=() if found or lacks_loader else _ask_each(environ, manifests, timeout_s),
        stderr=run.stderr,
        wall_s=run.wall_s,
    )


def read_frame(environ: Mapping[str, str], seen: EglSeen, *, timeout_s: float = TIMEOUT_S) -> FrameSeen:
    """Render one frame on the first hardware device of ``seen``, or on a software one where there is nothing else."""
    order = sorted(range(len(seen.devices)), key=lambda index: _frame_rank(seen.devices[index]))
    return frame.read_frame("probes.egl_frame", str(order[0] if order else 0), environ=environ, timeout_s=timeout_s)


def _frame_rank(device: EglDevice) -> tuple[bool, bool]:
    return not device.initialised, device.is_software


def _ask_each(environ: Mapping[str, str], manifests: ManifestsSeen, timeout_s: float) -> tuple[VendorSeen, ...]:
    def ask(manifest: Manifest) -> VendorSeen:
        alone = {**environ, "__EGL_VENDOR_LIBRARY_FILENAMES": manifest.path}
        return _describe(manifest, run_probe("probes.egl", environ=alone, timeout_s=timeout_s))

    with ThreadPoolExecutor() as pool:
        return tuple(pool.map(ask, manifest_checks.usable(manifests)))


def _describe(manifest: Manifest, run: ProbeRun) -> VendorSeen:
    return VendorSeen(
        manifest=manifest.path,
        library=Path(manifest.library_path or manifest.path).name,
        end=run.end,
        signal=run.signal,
        exit_code=run.exit_code,
        stage=run.answer.get("stage"),
        num_devices=len(run.answer.get("devices", ())),
    )
