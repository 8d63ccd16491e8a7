"""Which GPUs a process sees, by number, by UUID or by the beginning of one, as CUDA takes them."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

import pynvml

_UUID: Final = "GPU-"
_NUMBER: Final = re.compile("[0-9]{1,4}")  # NVML would take 2**32 for 0


def whole_uuids(names: Sequence[str]) -> tuple[str, ...]:
    """Names as CUDA_VISIBLE_DEVICES has them, with the UUIDs of which it has the beginning written out.

    What NVML does not know stays as it is: a container engine may be another machine's.
    """
    if not any(name.startswith(_UUID) for name in names):
        return tuple(names)
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return tuple(names)
    try:
        return tuple(_whole_uuid(name) if name.startswith(_UUID) else name for name in names)
    finally:
        pynvml.nvmlShutdown()


def _whole_uuid(name: str) -> str:
    try:
        return str(pynvml.nvmlDeviceGetUUID(_handle_by_uuid(name)))
    except pynvml.NVMLError:
        return name


def visible_handles() -> Iterator[object]:
    """Follow CUDA: devices by number, UUID or the beginning of one, and none from the first unknown one on."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = [str(number) for number in range(pynvml.nvmlDeviceGetCount())] if visible is None else visible.split(",")
    for name in map(str.strip, names):
        try:
            if _NUMBER.fullmatch(name):
                yield pynvml.nvmlDeviceGetHandleByIndex(int(name))
            else:
                yield _handle_by_uuid(name)
        except (pynvml.NVMLError_InvalidArgument, pynvml.NVMLError_NotFound):
            return


def _handle_by_uuid(name: str) -> object:
    """NVML wants a UUID whole, CUDA as much of it as no other GPU has."""
    try:
        return pynvml.nvmlDeviceGetHandleByUUID(name)
    except (pynvml.NVMLError_InvalidArgument, pynvml.NVMLError_NotFound):
        if not name.startswith(_UUID):
            raise
        handles = map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount()))
        found = [handle for handle in handles if pynvml.nvmlDeviceGetUUID(handle).startswith(name)]
        if len(found) != 1:
            raise
        return found[0]
