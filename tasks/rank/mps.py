"""Whether this process shares its GPU through a server of CUDA MPS. Imports no torch."""

import ctypes
from typing import Final

MPS_ENABLED: Final = 133  # CU_DEVICE_ATTRIBUTE_MPS_ENABLED of cuda.h


def is_used(index: int, library: str = "libcuda.so.1") -> bool | None:
    """Ask the CUDA driver about GPU ``index`` in CUDA's numbering; None if it does not answer, as before CUDA 12.4.

    The driver says whether contexts of this process are shared via MPS: a server that runs is not enough if this
    process was told of another folder for its pipes.
    """
    try:
        cuda = ctypes.CDLL(library)
        device, value = ctypes.c_int(), ctypes.c_int()
        results = (
            cuda.cuInit(0),
            cuda.cuDeviceGet(ctypes.byref(device), index),
            cuda.cuDeviceGetAttribute(ctypes.byref(value), MPS_ENABLED, device),
        )
    except (OSError, AttributeError):
        return None
    return None if any(results) else bool(value.value)
