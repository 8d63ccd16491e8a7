"""Enumerates Vulkan devices through the loader: ``python -m suite.env_check.probes.vulkan``.

It prints one JSON object per stage. Keys: ``stage`` (the call that was running), ``loader_error`` (libvulkan.so.1 does
not load), ``loader_version``, ``create_result`` and ``enumerate_result`` (VkResult), ``messages`` (severity and text,
from the loader and the drivers), ``devices``.
"""

import ctypes
import uuid
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_uint32, c_void_p
from typing import Any, Final

from suite.env_check.graphics import vulkan_api as vk
from suite.env_check.probes.answer import open_answer

_DEBUG_UTILS: Final = b"VK_EXT_debug_utils"
_MESSAGES_KEPT: Final = 40


def probe(answer: Callable[[object], None]) -> None:
    seen: dict[str, Any] = {"stage": "dlopen libvulkan.so.1", "messages": [], "devices": []}
    answer(seen)
    try:
        library = ctypes.CDLL("libvulkan.so.1")
    except OSError as error:
        answer({**seen, "loader_error": str(error)})
        return
    version = c_uint32(vk.pack_version(1, 0))
    if hasattr(library, "vkEnumerateInstanceVersion"):  # a 1.0 loader has no such function
        library.vkEnumerateInstanceVersion(byref(version))
    seen |= {"loader_version": vk.version_text(version.value), "stage": "vkCreateInstance"}
    answer(seen)
    instance, seen["create_result"], callback = _create_instance(library, version.value, seen["messages"])
    answer(seen)
    if seen["create_result"] != 0:
        return
    seen["stage"] = "vkEnumeratePhysicalDevices"
    answer(seen)
    devices, seen["enumerate_result"] = _enumerate(library, instance)
    for device in devices:
        seen["devices"].append(_describe(library, device))
    seen["stage"] = "vkDestroyInstance"
    answer(seen)
    library.vkDestroyInstance.argtypes = (c_void_p, c_void_p)
    library.vkDestroyInstance(instance, None)
    del callback  # the loader may call it until here
    answer({**seen, "stage": "end"})


def _create_instance(
    library: ctypes.CDLL, loader_version: int, messages: list[dict[str, str]]
) -> tuple[c_void_p, int, object]:
    """Return the instance, the VkResult, and the callback, which must live as long as the instance."""

    def remember(severity: int, _kind: int, data: Any, _user: int | None) -> int:
        if len(messages) < _MESSAGES_KEPT:
            text = (data[0].pMessage or b"").decode(errors="replace")
            messages.append({"severity": vk.SEVERITIES.get(severity, str(severity)), "text": text})
        return 0

    on_message = vk.MessengerCallback(remember)
    application = vk.ApplicationInfo(
        sType=vk.APPLICATION_INFO,
        pApplicationName=b"labscale",
        apiVersion=min(loader_version, vk.pack_version(1, 3)),
    )
    messenger = vk.MessengerCreateInfo(
        sType=vk.DEBUG_UTILS_MESSENGER_CREATE_INFO,
        messageSeverity=vk.WARNINGS_AND_ERRORS,
        messageType=vk.ALL_MESSAGE_TYPES,
        pfnUserCallback=on_message,
    )
    create_info = vk.InstanceCreateInfo(
        sType=vk.INSTANCE_CREATE_INFO,
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
    driver = vk.DriverProperties(sType=vk.DRIVER_PROPERTIES)
    identity = vk.IdProperties(sType=vk.ID_PROPERTIES, pNext=ctypes.cast(ctypes.pointer(driver), c_void_p))
    properties = vk.Properties2(sType=vk.PROPERTIES_2, pNext=ctypes.cast(ctypes.pointer(identity), c_void_p))
    library.vkGetPhysicalDeviceProperties2.argtypes = (c_void_p, c_void_p)
    library.vkGetPhysicalDeviceProperties2(device, byref(properties))
    basic = properties.properties
    kind = basic.deviceType
    device_uuid = bytes(identity.deviceUUID)
    return {
        "name": basic.deviceName.decode(errors="replace"),
        "type": vk.DEVICE_TYPES[kind] if kind in range(len(vk.DEVICE_TYPES)) else str(kind),
        "vendor_id": f"0x{basic.vendorID:04x}",
        "api_version": vk.version_text(basic.apiVersion),
        "driver_id": driver.driverID or None,
        "driver_name": driver.driverName.decode(errors="replace") or None,
        "driver_info": driver.driverInfo.decode(errors="replace") or None,
        "uuid": str(uuid.UUID(bytes=device_uuid)) if any(device_uuid) else None,
        "ray_tracing": sorted(vk.RAY_TRACING & _extensions(library, device)),
    }


def _extensions(library: ctypes.CDLL, device: int) -> set[str]:
    function = library.vkEnumerateDeviceExtensionProperties
    function.argtypes = (c_void_p, c_char_p, POINTER(c_uint32), c_void_p)
    count = c_uint32()
    if function(device, None, byref(count), None) != 0:
        return set()
    found = (vk.ExtensionProperties * count.value)()
    function(device, None, byref(count), found)
    return {extension.extensionName.decode() for extension in found[: count.value]}


if __name__ == "__main__":
    probe(open_answer())
