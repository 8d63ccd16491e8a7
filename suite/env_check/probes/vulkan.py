"""Asks Vulkan: ``python -m suite.env_check.probes.vulkan devices``, ``… driver LIBRARY``, or ``… frame``.

The answer grows by stages; ``stage`` is the call that was running. Other keys of ``devices``: ``loader_error``
(libvulkan.so.1 does not load), ``loader_version``, ``create_result`` and ``enumerate_result`` (VkResult), ``messages``
(severity and text, from the loader and the drivers), ``devices``. Those of ``frame`` are fields of
``suite.env_check.graphics.frame.FrameFacts``.
"""

import ctypes
import uuid
from collections.abc import Sequence
from ctypes import CFUNCTYPE, POINTER, byref, c_char, c_char_p, c_int, c_int32, c_uint8, c_uint32, c_void_p
from typing import Any, ClassVar, Final

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

APPLICATION_INFO: Final = 0  # this and the next five are of VkStructureType
INSTANCE_CREATE_INFO: Final = 1
PROPERTIES_2: Final = 1000059001
ID_PROPERTIES: Final = 1000071004
DEBUG_UTILS_MESSENGER_CREATE_INFO: Final = 1000128004
DRIVER_PROPERTIES: Final = 1000196000

SEVERITIES: Final = {0x1: "verbose", 0x10: "info", 0x100: "warning", 0x1000: "error"}
WARNINGS_AND_ERRORS: Final = 0x1100
ALL_MESSAGE_TYPES: Final = 0x7
DEVICE_TYPES: Final = ("other", "integrated_gpu", "discrete_gpu", "virtual_gpu", "cpu")
NVIDIA: Final = "0x10de"  # PCI vendor
SOFTWARE_DRIVERS: Final = (10, 13)  # VkDriverId: Google SwiftShader, Mesa llvmpipe
RAY_TRACING: Final = frozenset(
    {"VK_KHR_acceleration_structure", "VK_KHR_ray_query", "VK_KHR_ray_tracing_pipeline"},
)

INCOMPATIBLE_DRIVER: Final = -9
RESULTS: Final = {
    0: "VK_SUCCESS",
    5: "VK_INCOMPLETE",
    -1: "VK_ERROR_OUT_OF_HOST_MEMORY",
    -2: "VK_ERROR_OUT_OF_DEVICE_MEMORY",
    -3: "VK_ERROR_INITIALIZATION_FAILED",
    -4: "VK_ERROR_DEVICE_LOST",
    -6: "VK_ERROR_LAYER_NOT_PRESENT",
    -7: "VK_ERROR_EXTENSION_NOT_PRESENT",
    INCOMPATIBLE_DRIVER: "VK_ERROR_INCOMPATIBLE_DRIVER",
    -10: "VK_ERROR_TOO_MANY_OBJECTS",
    -13: "VK_ERROR_UNKNOWN",
}


_DEBUG_UTILS: Final = b"VK_EXT_debug_utils"
_MESSAGES_KEPT: Final = 40
_NEGOTIATE: Final = "vk_icdNegotiateLoaderICDInterfaceVersion"
_GET_PROC_ADDRESS: Final = ("vk_icdGetInstanceProcAddr", "vkGetInstanceProcAddr")
_INTERFACE_VERSION: Final = 5  # from this one on, the loader passes the application's version on unchanged

_CreateInstance = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
_EnumerateDevices = CFUNCTYPE(c_int, c_void_p, POINTER(c_uint32), c_void_p)
_FORMAT: Final = "rgba8unorm"
_SHADER: Final = """
@vertex fn vertex(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> {{
    var corners = array<vec2<f32>, 3>({corners});
    return vec4<f32>(corners[i], 0.0, 1.0);
}}
@fragment fn fragment() -> @location(0) vec4<f32> {{ return vec4<f32>({colour}); }}
"""


def result_name(code: int) -> str:
    return RESULTS.get(code, f"VkResult {code}")


def version_text(version: int) -> str:
    """Return a packed version as text, such as ``1.3.239``."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"


def pack_version(major: int, minor: int) -> int:
    return major << 22 | minor << 12


class _Chained(ctypes.Structure):
    """The beginning of most of Vulkan's structures."""

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (("sType", c_int), ("pNext", c_void_p))


class ApplicationInfo(_Chained):
    _fields_ = (
        ("pApplicationName", c_char_p), ("applicationVersion", c_uint32), ("pEngineName", c_char_p),
        ("engineVersion", c_uint32), ("apiVersion", c_uint32),
    )  # fmt: skip


class InstanceCreateInfo(_Chained):
    _fields_ = (
        ("flags", c_uint32), ("pApplicationInfo", POINTER(ApplicationInfo)),
        ("enabledLayerCount", c_uint32), ("ppEnabledLayerNames", c_void_p),
        ("enabledExtensionCount", c_uint32), ("ppEnabledExtensionNames", POINTER(c_char_p)),
    )  # fmt: skip


class MessengerCallbackData(_Chained):
    """The beginning of VkDebugUtilsMessengerCallbackDataEXT; the rest is not read."""

    _fields_ = (
        ("flags", c_uint32), ("pMessageIdName", c_char_p), ("messageIdNumber", c_int32), ("pMessage", c_char_p),
    )  # fmt: skip


MessengerCallback = ctypes.CFUNCTYPE(c_uint32, c_int, c_uint32, POINTER(MessengerCallbackData), c_void_p)


class MessengerCreateInfo(_Chained):
    _fields_ = (
        ("flags", c_uint32), ("messageSeverity", c_uint32), ("messageType", c_uint32),
        ("pfnUserCallback", MessengerCallback), ("pUserData", c_void_p),
    )  # fmt: skip


class DeviceProperties(ctypes.Structure):
    """The beginning of VkPhysicalDeviceProperties. ``rest`` has room for ``limits`` and later fields (below 1 KiB)."""

    _fields_ = (
        ("apiVersion", c_uint32), ("driverVersion", c_uint32), ("vendorID", c_uint32), ("deviceID", c_uint32),
        ("deviceType", c_int), ("deviceName", c_char * 256), ("pipelineCacheUUID", c_uint8 * 16),
        ("rest", ctypes.c_uint64 * 256),
    )  # fmt: skip


class DriverProperties(_Chained):
    _fields_ = (
        ("driverID", c_int), ("driverName", c_char * 256), ("driverInfo", c_char * 256),
        ("conformanceVersion", c_uint8 * 4),
    )  # fmt: skip


class IdProperties(_Chained):
    _fields_ = (
        ("deviceUUID", c_uint8 * 16), ("driverUUID", c_uint8 * 16), ("deviceLUID", c_uint8 * 8),
        ("deviceNodeMask", c_uint32), ("deviceLUIDValid", c_uint32),
    )  # fmt: skip


class Properties2(_Chained):
    _fields_ = (("properties", DeviceProperties),)


class ExtensionProperties(ctypes.Structure):
    _fields_ = (("extensionName", c_char * 256), ("specVersion", c_uint32))


def list_vulkan_devices(answer: Answer) -> None:
    """Enumerate the devices through the loader."""
    progress = Progress(answer, "dlopen libvulkan.so.1", messages=[], devices=[])
    try:
        library = ctypes.CDLL("libvulkan.so.1")
    except OSError as error:
        progress.add(loader_error=str(error))
        return
    version = c_uint32(pack_version(1, 0))
    if hasattr(library, "vkEnumerateInstanceVersion"):  # a 1.0 loader has no such function
        library.vkEnumerateInstanceVersion(byref(version))
    progress.at("vkCreateInstance", loader_version=version_text(version.value))
    instance, result, callback = _create_instance(library, version.value, progress.facts["messages"])
    progress.add(create_result=result)
    if result != 0:
        return
    progress.at("vkEnumeratePhysicalDevices")
    handles, progress.facts["enumerate_result"] = _enumerate(library, instance)
    for handle in handles:
        progress.facts["devices"].append(_describe(library, handle))
    progress.at("vkDestroyInstance")
    library.vkDestroyInstance.argtypes = (c_void_p, c_void_p)
    library.vkDestroyInstance(instance, None)
    del callback  # the loader may call it until here
    progress.at("end")


def _create_instance(
    library: ctypes.CDLL, loader_version: int, messages: list[dict[str, str]]
) -> tuple[c_void_p, int, object]:
    """Return the instance, the VkResult, and the callback, which must live as long as the instance."""

    def remember(severity: int, _kind: int, data: Any, _user: int | None) -> int:
        if len(messages) < _MESSAGES_KEPT:
            text = (data[0].pMessage or b"").decode(errors="replace")
            messages.append({"severity": SEVERITIES.get(severity, str(severity)), "text": text})
        return 0

    on_message = MessengerCallback(remember)
    application = ApplicationInfo(
        sType=APPLICATION_INFO,
        pApplicationName=b"labscale",
        apiVersion=min(loader_version, pack_version(1, 3)),
    )
    messenger = MessengerCreateInfo(
        sType=DEBUG_UTILS_MESSENGER_CREATE_INFO,
        messageSeverity=WARNINGS_AND_ERRORS,
        messageType=ALL_MESSAGE_TYPES,
        pfnUserCallback=on_message,
    )
    create_info = InstanceCreateInfo(
        sType=INSTANCE_CREATE_INFO,
        pNext=ctypes.cast(ctypes.pointer(messenger), c_void_p),
        pApplicationInfo=ctypes.pointer(application),
        enabledExtensionCount=1,
        ppEnabledExtensionNames=(c_char_p * 1)(_DEBUG_UTILS),
    )
    instance = c_void_p()
    return instance, library.vkCreateInstance(byref(create_info), None, byref(instance)), (on_message, messenger)


def _enumerate(library: ctypes.CDLL, instance: c_void_p) -> tuple[list[int], int]:
    """Return the handles of the physical devices, and the VkResult."""
    function = library.vkEnumeratePhysicalDevices
    function.argtypes = (c_void_p, POINTER(c_uint32), c_void_p)
    count = c_uint32()
    result = int(function(instance, byref(count), None))
    if result != 0 or count.value == 0:
        return [], result
    handles = (c_void_p * count.value)()
    result = int(function(instance, byref(count), handles))
    return [handle for handle in handles[: count.value] if handle is not None], result


def _describe(library: ctypes.CDLL, device: int) -> dict[str, Any]:
    driver = DriverProperties(sType=DRIVER_PROPERTIES)
    identity = IdProperties(sType=ID_PROPERTIES, pNext=ctypes.cast(ctypes.pointer(driver), c_void_p))
    properties = Properties2(sType=PROPERTIES_2, pNext=ctypes.cast(ctypes.pointer(identity), c_void_p))
    library.vkGetPhysicalDeviceProperties2.argtypes = (c_void_p, c_void_p)
    library.vkGetPhysicalDeviceProperties2(device, byref(properties))
    basic = properties.properties
    kind = basic.deviceType
    device_uuid = bytes(identity.deviceUUID)
    return {
        "name": basic.deviceName.decode(errors="replace"),
        "type": DEVICE_TYPES[kind] if kind in range(len(DEVICE_TYPES)) else str(kind),
        "vendor_id": f"0x{basic.vendorID:04x}",
        "api_version": version_text(basic.apiVersion),
        "driver_id": driver.driverID or None,
        "driver_name": driver.driverName.decode(errors="replace") or None,
        "driver_info": driver.driverInfo.decode(errors="replace") or None,
        "uuid": str(uuid.UUID(bytes=device_uuid)) if any(device_uuid) else None,
        "ray_tracing": sorted(RAY_TRACING & _extensions(library, device)),
    }


def _extensions(library: ctypes.CDLL, device: int) -> set[str]:
    function = library.vkEnumerateDeviceExtensionProperties
    function.argtypes = (c_void_p, c_char_p, POINTER(c_uint32), c_void_p)
    count = c_uint32()
    if function(device, None, byref(count), None) != 0:
        return set()
    extensions = (ExtensionProperties * count.value)()
    function(device, None, byref(count), extensions)
    return {extension.extensionName.decode() for extension in extensions[: count.value]}


def ask_driver(answer: Answer, path: str) -> None:
    """Ask one driver as the loader does (Vulkan-Loader's docs/LoaderDriverInterface.md), for the driver's own codes.

    The loader turns every refusal into VK_ERROR_INCOMPATIBLE_DRIVER, and zero devices into
    VK_ERROR_INITIALIZATION_FAILED. A call that was not reached has no result. ``missing``: the function whose
    address the driver gives as null; calling that would be a crash of this probe, not of the driver.
    """
    progress = Progress(answer, "dlopen")
    library = ctypes.CDLL(path)
    if hasattr(library, _NEGOTIATE):
        progress.at("negotiation")
        version = c_uint32(_INTERFACE_VERSION)
        result = library[_NEGOTIATE](byref(version))
        progress.add(negotiate_result=result)
        if result != 0:
            return
    progress.at("vkCreateInstance")
    find = next(library[name] for name in _GET_PROC_ADDRESS if hasattr(library, name))
    find.restype, find.argtypes = c_void_p, (c_void_p, c_char_p)
    create = find(None, b"vkCreateInstance")
    if not create:
        progress.add(missing="vkCreateInstance")
        return
    application = ApplicationInfo(sType=APPLICATION_INFO, apiVersion=pack_version(1, 1))
    create_info = InstanceCreateInfo(sType=INSTANCE_CREATE_INFO, pApplicationInfo=ctypes.pointer(application))
    instance = c_void_p()
    result = _CreateInstance(create)(byref(create_info), None, byref(instance))
    progress.add(create_result=result)
    if result != 0:
        return
    progress.at("vkEnumeratePhysicalDevices")
    count = c_uint32()
    enumerate_devices = find(instance, b"vkEnumeratePhysicalDevices")
    if not enumerate_devices:
        progress.add(missing="vkEnumeratePhysicalDevices")
        return
    result = _EnumerateDevices(enumerate_devices)(instance, byref(count), None)
    progress.at("end", enumerate_result=result, num_devices=count.value if result == 0 else None)


def draw_vulkan_frame(answer: Answer) -> None:
    """Render one frame on the first hardware device, or on a software device if there is no other."""
    progress = Progress(answer, "import of wgpu")
    try:
        import wgpu  # noqa: PLC0415  (only this process loads it, and it may be missing)
        from wgpu.backends.wgpu_native.extras import set_instance_extras  # noqa: PLC0415
    except ModuleNotFoundError as error:
        progress.add(package_missing=error.name)
        return
    progress.at("search for a Vulkan device")
    set_instance_extras(backends=["Vulkan"])
    adapters = sorted(wgpu.gpu.enumerate_adapters_sync(), key=lambda adapter: adapter.info["adapter_type"] == "CPU")
    if not adapters:
        progress.add(error="no Vulkan device")
        return
    info = adapters[0].info
    device, is_software = f"{info['device']} ({info['description']})", info["adapter_type"] == "CPU"
    progress.at("rendering", device=device, is_software=is_software)
    try:
        pixels = _render(wgpu, adapters[0])
    except (RuntimeError, wgpu.GPUError) as error:
        progress.add(error=f"{type(error).__name__}: {error}")
        return
    progress.at("end", wrong_pixels=count_wrong_pixels(pixels))


def _render(wgpu: Any, adapter: Any) -> bytes:
    """Return RGBA bytes, the top row first."""
    device = adapter.request_device_sync()
    size = (SIZE, SIZE, 1)
    usage = wgpu.TextureUsage.RENDER_ATTACHMENT | wgpu.TextureUsage.COPY_SRC
    texture = device.create_texture(size=size, format=_FORMAT, usage=usage)
    pairs = zip(VERTICES[::2], VERTICES[1::2], strict=True)
    code = _SHADER.format(
        corners=", ".join(f"vec2({x}, {y})" for x, y in pairs), colour=", ".join(map(str, TRIANGLE_COLOUR))
    )
    shader = device.create_shader_module(code=code)
    pipeline = device.create_render_pipeline(
        layout="auto",
        vertex={"module": shader, "entry_point": "vertex"},
        fragment={"module": shader, "entry_point": "fragment", "targets": [{"format": _FORMAT}]},
        primitive={"topology": "triangle-list"},
    )
    target = {
        "view": texture.create_view(),
        "load_op": "clear",
        "store_op": "store",
        "clear_value": CLEAR_COLOUR,
    }
    encoder = device.create_command_encoder()
    render_pass = encoder.begin_render_pass(color_attachments=[target])
    render_pass.set_pipeline(pipeline)
    render_pass.draw(3)
    render_pass.end()
    device.queue.submit([encoder.finish()])
    return bytes(device.queue.read_texture({"texture": texture}, {"bytes_per_row": SIZE * 4}, size))


if __name__ == "__main__":
    answer_with({"devices": list_vulkan_devices, "driver": ask_driver, "frame": draw_vulkan_frame})
