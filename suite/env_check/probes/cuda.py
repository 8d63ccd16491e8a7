"""Asks the CUDA driver without creating a context. ``suite.env_check.gpu.cuda_start`` starts it in its own process."""

import ctypes
from typing import Any, Final

from suite.env_check.probes.answer import open_answer

MEMORY_POOLS_SUPPORTED: Final = 115  # CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED of cuda.h
SUCCESS: Final = 0


class DriverError(Exception):
    """The CUDA driver does not load, or one of its functions is missing or fails with ``code``."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def ask() -> dict[str, Any]:
    """Return the CUDA version that the driver supports, and for each visible GPU whether it has memory pools.

    Raises:
        DriverError: the driver does not load, or a function of it is missing or fails.

    """
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
        raise DriverError(f"{name} returns {code}{_error_name(cuda, code)}", code)


def _error_name(cuda: ctypes.CDLL, code: int) -> str:
    name = ctypes.c_char_p()
    if not hasattr(cuda, "cuGetErrorName") or cuda.cuGetErrorName(code, ctypes.byref(name)) != SUCCESS:
        return ""
    return f" ({(name.value or b'').decode()})"


if __name__ == "__main__":
    answer = open_answer()
    try:
        answer(ask())
    except DriverError as error:
        answer({"message": str(error), "code": error.code})
