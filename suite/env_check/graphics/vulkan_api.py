"""Defines the structures and codes of Vulkan that the probes use, as ctypes. The specification gives the values."""

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_int, c_int32, c_uint8, c_uint32, c_void_p
from typing import Final

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


def result_name(code: int) -> str:
    return RESULTS.get(code, f"VkResult {code}")


def version_text(version: int) -> str:
    """Return a packed version as text, such as ``1.3.239``."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"


def pack_version(major: int, minor: int) -> int:
    return major << 22 | minor << 12


class ApplicationInfo(ctypes.Structure):
    _fields_ = (
        ("sType", c_int),
        ("pNext", c_void_p),
        ("pApplicationName", c_char_p),
        ("applicationVersion", c_uint32),
        ("pEngineName", c_char_p),
        ("engineVersion", c_uint32),
        ("apiVersion", c_uint32),
    )


class InstanceCreateInfo(ctypes.Structure):
    _fields_ = (
        ("sType", c_int),
        ("pNext", c_void_p),
        ("flags", c_uint32),
        ("pApplicationInfo", POINTER(ApplicationInfo)),
        ("enabledLayerCount", c_uint32),
        ("ppEnabledLayerNames", c_void_p),
        ("enabledExtensionCount", c_uint32),
        ("ppEnabledExtensionNames", POINTER(c_char_p)),
    )


class MessengerCallbackData(ctypes.Structure):
    """The beginning of VkDebugUtilsMessengerCallbackDataEXT; the rest is not read."""

    _fields_ = (
        ("sType", c_int),
        ("pNext", c_void_p),
        ("flags", c_uint32),
        ("pMessageIdName", c_char_p),
        ("messageIdNumber", c_int32),
        ("pMessage", c_char_p),
    )


MessengerCallback = ctypes.CFUNCTYPE(c_uint32, c_int, c_uint32, POINTER(MessengerCallbackData), c_void_p)


class MessengerCreateInfo(ctypes.Structure):
    _fields_ = (
        ("sType", c_int),
        ("pNext", c_void_p),
        ("flags", c_uint32),
        ("messageSeverity", c_uint32),
        ("messageType", c_uint32),
        ("pfnUserCallback", MessengerCallback),
        ("pUserData", c_void_p),
    )


class DeviceProperties(ctypes.Structure):
    """The beginning of VkPhysicalDeviceProperties. ``rest`` has room for ``limits`` and later fields (below 1 KiB)."""

    _fields_ = (
        ("apiVersion", c_uint32),
        ("driverVersion", c_uint32),
        ("vendorID", c_uint32),
        ("deviceID", c_uint32),
        ("deviceType", c_int),
        ("deviceName", c_char * 256),
        ("pipelineCacheUUID", c_uint8 * 16),
        ("rest", ctypes.c_uint64 * 256),
    )


class DriverProperties(ctypes.Structure):
    _fields_ = (
        ("sType", c_int),
        ("pNext", c_void_p),
        ("driverID", c_int),
        ("driverName", c_char * 256),
        ("driverInfo", c_char * 256),
        ("conformanceVersion", c_uint8 * 4),
    )


class IdProperties(ctypes.Structure):
    _fields_ = (
        ("sType", c_int),
        ("pNext", c_void_p),
        ("deviceUUID", c_uint8 * 16),
        ("driverUUID", c_uint8 * 16),
        ("deviceLUID", c_uint8 * 8),
        ("deviceNodeMask", c_uint32),
        ("deviceLUIDValid", c_uint32),
    )


class Properties2(ctypes.Structure):
    _fields_ = (("sType", c_int), ("pNext", c_void_p), ("properties", DeviceProperties))


class ExtensionProperties(ctypes.Structure):
    _fields_ = (("extensionName", c_char * 256), ("specVersion", c_uint32))
