"""Finds the GPUs that a process sees, by number, UUID or the beginning of a UUID, as CUDA does."""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

import pynvml

_UUID: Final = "GPU-"
_NUMBER: Final = re.compile("[0-9]{1,4}")  # NVML would read 2**32 as 0


def whole_uuids(names: Sequence[str]) -> tuple[str, ...]:
    """Complete the UUIDs in ``names``, of which CUDA_VISIBLE_DEVICES may have only the beginning.

    Names that NVML does not know stay unchanged: the container engine may be on another machine.
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
    """Yield devices by number, UUID or the beginning of one, and stop at the first unknown one, as CUDA does."""
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
    """Find a GPU by the beginning of its UUID, as CUDA does; NVML accepts only whole UUIDs."""
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
