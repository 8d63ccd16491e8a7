"""Asks one Vulkan driver without the loader: ``python -m suite.env_check.probes.icd LIBRARY``.

The loader turns every refusal into VK_ERROR_INCOMPATIBLE_DRIVER, and zero devices into VK_ERROR_INITIALIZATION_FAILED.
This probe calls the driver as the loader does (Vulkan-Loader's docs/LoaderDriverInterface.md), so it gets the driver's
own codes. It prints one JSON object per stage. Keys: ``stage``, ``negotiate_result``, ``interface_version``,
``create_result``, ``enumerate_result``, ``num_devices``; null if not reached. ``missing``: the function whose address
the driver gives as null; calling that would be a crash of this probe, not of the driver.
"""

import ctypes
import sys
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_int, c_uint32, c_void_p
from typing import Any, Final

from suite.env_check.graphics import vulkan_api as vk
from suite.env_check.probes.answer import open_answer

_NEGOTIATE: Final = "vk_icdNegotiateLoaderICDInterfaceVersion"
_GET_PROC_ADDRESS: Final = ("vk_icdGetInstanceProcAddr", "vkGetInstanceProcAddr")
_INTERFACE_VERSION: Final = 5  # from this one on, the loader passes the application's version on unchanged

_CreateInstance = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
_EnumerateDevices = CFUNCTYPE(c_int, c_void_p, POINTER(c_uint32), c_void_p)


def probe(path: str, answer: Callable[[object], None]) -> None:
    seen: dict[str, Any] = {"stage": "dlopen", "negotiate_result": None, "interface_version": None,
                            "create_result": None, "enumerate_result": None, "num_devices": None,
                            "missing": None}  # fmt: skip
    answer(seen)
    library = ctypes.CDLL(path)
    if hasattr(library, _NEGOTIATE):
        seen["stage"] = "negotiation"
        answer(seen)
        version = c_uint32(_INTERFACE_VERSION)
        seen["negotiate_result"] = library[_NEGOTIATE](byref(version))
        seen["interface_version"] = version.value
        if seen["negotiate_result"] != 0:
            answer(seen)
            return
    seen["stage"] = "vkCreateInstance"
    answer(seen)
    find = next(library[name] for name in _GET_PROC_ADDRESS if hasattr(library, name))
    find.restype, find.argtypes = c_void_p, (c_void_p, c_char_p)
    create = find(None, b"vkCreateInstance")
    if not create:
        answer({**seen, "missing": "vkCreateInstance"})
        return
    instance, seen["create_result"] = _create_instance(create)
    answer(seen)
    if seen["create_result"] == 0:
        seen["stage"] = "vkEnumeratePhysicalDevices"
        answer(seen)
        count = c_uint32()
        enumerate_devices = find(instance, b"vkEnumeratePhysicalDevices")
        if not enumerate_devices:
            answer({**seen, "missing": "vkEnumeratePhysicalDevices"})
            return
        seen["enumerate_result"] = _EnumerateDevices(enumerate_devices)(instance, byref(count), None)
        seen["num_devices"] = count.value if seen["enumerate_result"] == 0 else None
        answer({**seen, "stage": "end"})


def _create_instance(create: int) -> tuple[c_void_p, int]:
    application = vk.ApplicationInfo(sType=vk.APPLICATION_INFO, apiVersion=vk.pack_version(1, 1))
    create_info = vk.InstanceCreateInfo(sType=vk.INSTANCE_CREATE_INFO, pApplicationInfo=ctypes.pointer(application))
    instance = c_void_p()
    result = _CreateInstance(create)(byref(create_info), None, byref(instance))
    return instance, result


if __name__ == "__main__":
    probe(sys.argv[1], open_answer())
