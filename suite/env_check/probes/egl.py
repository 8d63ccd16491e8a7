"""Asks EGL: ``python -m suite.env_check.probes.egl devices``, or ``… frame DEVICE_INDEX``. The answer grows by stages.

Keys of ``devices``: ``stage`` (the call that was running), ``loader_error`` (libEGL.so.1 does not load),
``client_extensions``, ``query_error`` (EGL error of eglQueryDevicesEXT; null if it succeeds or libEGL lacks it),
``devices``. Those of ``frame`` are fields of ``suite.env_check.graphics.frame.FrameFacts``.
"""

import array
import ctypes
import uuid
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_ssize_t, c_uint, c_void_p
from typing import Any, Final

from suite.env_check.probes.run import (
    CLEAR_COLOUR,
    SIZE,
    TRIANGLE_COLOUR,
    VERTICES,
    Answer,
    Progress,
    answer_with,
    count_wrong_pixels,
)

_EXTENSIONS, _VENDOR, _CLIENT_APIS = 0x3055, 0x3053, 0x308D  # names from EGL/egl.h and EGL/eglext.h
_PLATFORM_DEVICE: Final = 0x313F
_CUDA_DEVICE: Final = 0x323A
_DEVICE_UUID: Final = 0x335C
_DEVICE_STRINGS: Final = {  # key -> (EGL name, extension that offers it)
    "drm_node": (0x3233, "EGL_EXT_device_drm"),
    "render_node": (0x3377, "EGL_EXT_device_drm_render_node"),
}
_UUID_BYTES: Final = 16
_SOFTWARE: Final = ("llvmpipe", "softpipe", "swrast", "swiftshader")
_VERTEX_SHADER: Final = "#version 330\nin vec2 corner;\nvoid main() { gl_Position = vec4(corner, 0.0, 1.0); }"
_FRAGMENT_SHADER: Final = "#version 330\nout vec4 colour;\nvoid main() { colour = vec4(%s); }"


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


def list_egl_devices(answer: Answer) -> None:
    """Enumerate the devices and initialise each."""
    progress = Progress(answer, "dlopen libEGL.so.1", client_extensions=[], query_error=None, devices=[])
    try:
        egl = _Egl()
    except OSError as error:
        progress.add(loader_error=str(error))
        return
    progress.at("eglQueryString")
    progress.at("eglQueryDevicesEXT", client_extensions=(egl.text(None, _EXTENSIONS) or "").split())
    handles, progress.facts["query_error"] = _query_devices(egl)
    for index, handle in enumerate(handles):
        device = _describe(egl, handle)
        progress.facts["devices"].append(device)
        progress.at(f"eglInitialize of device {index}")
        device.update(_initialise(egl, handle))
    progress.at("end")


def _query_devices(egl: _Egl) -> tuple[list[int], int | None]:
    """Return the handles of the devices, and the error of the query."""
    count, error = c_int(), None
    if egl.query_devices is None:
        return [], None
    if not egl.query_devices(0, None, byref(count)):
        return [], egl.get_error()
    if count.value == 0:
        return [], None  # EGL rejects an array of length 0
    handles = (c_void_p * count.value)()
    if not egl.query_devices(count.value, handles, byref(count)):
        error = egl.get_error()
    return [handle for handle in handles[: count.value] if handle is not None], error


def _describe(egl: _Egl, device: int) -> dict[str, Any]:
    """Return the properties of a device before it is initialised."""
    extensions = (egl.device_string(device, _EXTENSIONS) or b"").decode().split()
    facts: dict[str, Any] = {
        "is_software": "EGL_MESA_device_software" in extensions,
        "extensions": extensions,
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


def draw_egl_frame(answer: Answer, device_index: str) -> None:
    """Render one frame with OpenGL on the EGL device with this index."""
    progress = Progress(answer, "import of moderngl")
    try:
        import moderngl  # noqa: PLC0415  (only this process loads it, and it may be missing)

        create: Any = moderngl.create_standalone_context  # the keyword arguments in its stub are wrong
    except ModuleNotFoundError as error:
        progress.add(package_missing=error.name)
        return
    progress.at(f"OpenGL context on EGL device {device_index}")
    try:
        # Run-time packages install these names; only development packages install the ones without a version.
        context = create(backend="egl", device_index=int(device_index), libgl="libGL.so.1", libegl="libEGL.so.1")
    except Exception as error:  # noqa: BLE001  (the package raises bare Exception)
        progress.add(error=str(error))
        return
    renderer = context.info["GL_RENDERER"]
    progress.at(
        "rendering",
        device=f"{context.info['GL_VENDOR']} {renderer} (OpenGL {context.info['GL_VERSION']})",
        is_software=any(word in renderer.lower() for word in _SOFTWARE),
    )
    progress.at("end", wrong_pixels=count_wrong_pixels(_render(context)))


def _render(context: Any) -> bytes:
    """Return RGBA bytes, the top row first."""
    colour = ", ".join(map(str, TRIANGLE_COLOUR))
    program = context.program(vertex_shader=_VERTEX_SHADER, fragment_shader=_FRAGMENT_SHADER % colour)
    corners = context.buffer(array.array("f", VERTICES).tobytes())
    vertices = context.vertex_array(program, [(corners, "2f", "corner")])
    target = context.simple_framebuffer((SIZE, SIZE), components=4)
    target.use()
    target.clear(*CLEAR_COLOUR)
    vertices.render()
    pixels = target.read(components=4)
    row_bytes = SIZE * 4
    rows = [pixels[start : start + row_bytes] for start in range(0, len(pixels), row_bytes)]
    return b"".join(reversed(rows))  # OpenGL's first row is the bottom one


if __name__ == "__main__":
    answer_with({"devices": list_egl_devices, "frame": draw_egl_frame})
