"""Asks the CUDA driver in a process of its own, which makes no context; ``gpu.cuda_graphs`` starts it."""

import ctypes
from typing import Any, Final

from suite.env_check.probes.answer import open_answer

MEMORY_POOLS_SUPPORTED: Final = 115  # CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED of cuda.h
SUCCESS: Final = 0


class DriverError(Exception):
    """A function of the driver, and what it answered."""


def ask() -> dict[str, Any]:
    """Version of CUDA that the driver is of, and whether each visible GPU has memory pools. Raises DriverError."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DriverError(str(error)) from error
    _call(cuda, "cuInit", 0)
    version, count = ctypes.c_int(), ctypes.c_int()
    _call(cuda, "cuDriverGetVersion", ctypes.byref(version))
    _call(cuda, "cuDeviceGetCount", ctypes.byref(count))
    return {
        "driver_version": f"{version.value // 1000}.{version.value % 1000 // 10}",
        "memory_pools": [_has_memory_pools(cuda, ordinal) for ordinal in range(count.value)],
    }


def _has_memory_pools(cuda: ctypes.CDLL, ordinal: int) -> bool:
    device, value = ctypes.c_int(), ctypes.c_int()
    _call(cuda, "cuDeviceGet", ctypes.byref(device), ordinal)
    _call(cuda, "cuDeviceGetAttribute", ctypes.byref(value), MEMORY_POOLS_SUPPORTED, device)
    return bool(value.value)


def _call(cuda: ctypes.CDLL, name: str, *arguments: Any) -> None:
    try:
        code = int(getattr(cuda, name)(*arguments))
    except AttributeError as error:
        raise DriverError(f"the driver has no {name}") from error
    if code != SUCCESS:
        raise DriverError(f"{name} returns {code}")


if __name__ == "__main__":
    answer = open_answer()
    try:
        answer(ask())
    except DriverError as error:
        answer({"message": str(error)})
