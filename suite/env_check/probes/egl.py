"""Enumerates EGL devices and initialises each: ``python -m suite.env_check.probes.egl``.

It prints one JSON object per stage. Keys: ``stage`` (the call that was running), ``loader_error`` (libEGL.so.1 does not
load), ``client_extensions``, ``query_error`` (EGL error of eglQueryDevicesEXT; null if it succeeds or libEGL lacks it),
``devices``.
"""

import ctypes
import uuid
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_ssize_t, c_uint, c_void_p
from typing import Any, Final

from suite.env_check.probes.answer import open_answer

_EXTENSIONS, _VENDOR, _CLIENT_APIS = 0x3055, 0x3053, 0x308D  # names from EGL/egl.h and EGL/eglext.h
_PLATFORM_DEVICE: Final = 0x313F
_CUDA_DEVICE: Final = 0x323A
_DEVICE_UUID: Final = 0x335C
_DEVICE_STRINGS: Final = {  # key -> (EGL name, extension that offers it)
    "drm_node": (0x3233, "EGL_EXT_device_drm"),
    "render_node": (0x3377, "EGL_EXT_device_drm_render_node"),
}
_UUID_BYTES: Final = 16


class _Egl:
    """The calls that the probe makes. An extension's function is None if libEGL lacks it."""

    def __init__(self) -> None:
        library = ctypes.CDLL("libEGL.so.1")
        self.get_error = library.eglGetError
        self.initialize = library.eglInitialize
        self.initialize.argtypes = (c_void_p, POINTER(c_int), POINTER(c_int))
        self.terminate = library.eglTerminate
        self.terminate.argtypes = (c_void_p,)
        self.query_string = library.eglQueryString
        self.query_string.argtypes, self.query_string.restype = (c_void_p, c_int), c_char_p
        self._find = library.eglGetProcAddress
        self._find.argtypes, self._find.restype = (c_char_p,), c_void_p
        self.query_devices = self._extension("eglQueryDevicesEXT", c_uint, c_int, c_void_p, POINTER(c_int))
        self.device_string = self._extension("eglQueryDeviceStringEXT", c_char_p, c_void_p, c_int)
        self.device_attribute = self._extension("eglQueryDeviceAttribEXT", c_uint, c_void_p, c_int, POINTER(c_ssize_t))
        self.device_binary = self._extension(
            "eglQueryDeviceBinaryEXT", c_uint, c_void_p, c_int, c_int, c_void_p, POINTER(c_int)
        )
        self.platform_display = self._extension("eglGetPlatformDisplayEXT", c_void_p, c_uint, c_void_p, c_void_p)

    def _extension(self, name: str, result: Any, *arguments: Any) -> Any:
        address = self._find(name.encode())
        return CFUNCTYPE(result, *arguments)(address) if address else None

    def text(self, display: int | None, name: int) -> str | None:
        value: bytes | None = self.query_string(display, name)
        return value.decode(errors="replace") if value else None


def probe(answer: Callable[[object], None]) -> None:
    seen: dict[str, Any] = {"stage": "dlopen libEGL.so.1", "client_extensions": [], "query_error": None, "devices": []}
    answer(seen)
    try:
        egl = _Egl()
    except OSError as error:
        answer({**seen, "loader_error": str(error)})
        return
    seen["stage"] = "eglQueryString"
    answer(seen)
    seen["client_extensions"] = (egl.text(None, _EXTENSIONS) or "").split()
    seen["stage"] = "eglQueryDevicesEXT"
    answer(seen)
    handles = _query_devices(egl, seen)
    for index, handle in enumerate(handles):
        device = _describe(egl, handle)
        seen["devices"].append(device)
        seen["stage"] = f"eglInitialize of device {index}"
        answer(seen)
        device.update(_initialise(egl, handle))
    answer({**seen, "stage": "end"})


def _query_devices(egl: _Egl, seen: dict[str, Any]) -> list[int]:
    if egl.query_devices is None:
        return []
    count = c_int()
    if not egl.query_devices(0, None, byref(count)):
        seen["query_error"] = egl.get_error()
        return []
    if count.value == 0:
        return []  # EGL rejects an array of length 0
    handles = (c_void_p * count.value)()
    if not egl.query_devices(count.value, handles, byref(count)):
        seen["query_error"] = egl.get_error()
    return [handle for handle in handles[: count.value] if handle is not None]


def _describe(egl: _Egl, device: int) -> dict[str, Any]:
    """Return the properties of a device before it is initialised."""
    extensions = (egl.device_string(device, _EXTENSIONS) or b"").decode().split()
    facts: dict[str, Any] = {
        "is_software": "EGL_MESA_device_software" in extensions,
        "extensions": extensions,
        "cuda_index": None,
        "uuid": None,
        "initialised": False,
        "error": None,
        "version": None,
        "vendor": None,
        "client_apis": None,
    }
    for key, (name, extension) in _DEVICE_STRINGS.items():
        value = egl.device_string(device, name) if extension in extensions else None
        facts[key] = value.decode() if value else None
    if "EGL_NV_device_cuda" in extensions:
        index = c_ssize_t(-1)
        if egl.device_attribute(device, _CUDA_DEVICE, byref(index)) and index.value >= 0:
            facts["cuda_index"] = index.value
    if "EGL_EXT_device_persistent_id" in extensions and egl.device_binary is not None:
        value, size = (ctypes.c_uint8 * _UUID_BYTES)(), c_int()
        if egl.device_binary(device, _DEVICE_UUID, _UUID_BYTES, value, byref(size)) and size.value == _UUID_BYTES:
            facts["uuid"] = str(uuid.UUID(bytes=bytes(value)))
    return facts


def _initialise(egl: _Egl, device: int) -> dict[str, Any]:
    display = egl.platform_display(_PLATFORM_DEVICE, device, None)
    major, minor = c_int(), c_int()
    if not egl.initialize(display, byref(major), byref(minor)):
        return {"error": egl.get_error()}
    facts = {
        "initialised": True,
        "version": f"{major.value}.{minor.value}",
        "vendor": egl.text(display, _VENDOR),
        "client_apis": egl.text(display, _CLIENT_APIS),
    }
    egl.terminate(display)
    return facts


if __name__ == "__main__":
    probe(open_answer())
