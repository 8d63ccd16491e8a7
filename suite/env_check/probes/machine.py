"""Asks the parts of a machine that may hang or crash: ``python -m suite.env_check.probes.machine QUESTION …``.

``cores``: how fast each core is. ``cuda``: whether CUDA starts. ``nodes``: whether device nodes open. ``nvml``: the
state of the GPUs. ``libraries``: whether libraries load.
"""

import ctypes
import dataclasses
import errno
import json
import os
import signal
import statistics
import time
from collections.abc import Iterable
from typing import Any, Final

from suite.env_check.probes.run import Answer, answer_with
from suite.external.core_probe import core_probe_s

WARM_S: Final = 0.01  # an idle core needs time to reach its full clock
PROBES: Final = 5
MEMORY_POOLS_SUPPORTED: Final = 115  # CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED of cuda.h
SUCCESS: Final = 0
_RTLD_DI_LINKMAP: Final = 2  # dlfcn.h


def time_cores(answer: Answer, passes: str, *cores: str) -> None:
    """Time the cores one after another: seconds of a probe for each pass over all, the median of ``PROBES``."""
    looks_s: dict[int, list[float]] = {int(core): [] for core in cores}
    for _ in range(int(passes)):
        for core, values in looks_s.items():
            os.sched_setaffinity(0, {core})
            until_s = time.perf_counter() + WARM_S
            while time.perf_counter() < until_s:
                pass
            values.append(statistics.median(core_probe_s() for _ in range(PROBES)))
    answer({"looks_s": looks_s})


class DriverError(Exception):
    """The CUDA driver does not load, or one of its functions is missing or fails with ``code``."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


def start_cuda(answer: Answer) -> None:
    """Tell the CUDA version that the driver supports, and for each visible GPU whether it has memory pools.

    No context is created. Without an answer of the driver: its message, and the code of the call that failed.
    """
    try:
        answer(_ask_cuda())
    except DriverError as error:
        answer({"message": str(error), "code": error.code})


def _ask_cuda() -> dict[str, Any]:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DriverError(str(error)) from error
    _call(cuda, "cuInit", 0)
    version, count = ctypes.c_int(), ctypes.c_int()
    _call(cuda, "cuDriverGetVersion", ctypes.byref(version))
    _call(cuda, "cuDeviceGetCount", ctypes.byref(count))
    pools = []
    for ordinal in range(count.value):
        device, value = ctypes.c_int(), ctypes.c_int()
        _call(cuda, "cuDeviceGet", ctypes.byref(device), ordinal)
        _call(cuda, "cuDeviceGetAttribute", ctypes.byref(value), MEMORY_POOLS_SUPPORTED, device)
        pools.append(bool(value.value))
    return {
        "driver_version": f"{version.value // 1000}.{version.value % 1000 // 10}",
        "memory_pools": pools,
    }


def _call(cuda: ctypes.CDLL, name: str, *arguments: Any) -> None:
    try:
        code = int(getattr(cuda, name)(*arguments))
    except AttributeError as error:
        raise DriverError(f"the driver has no {name}") from error
    if code != SUCCESS:
        word = ctypes.c_char_p()
        has_word = hasattr(cuda, "cuGetErrorName") and cuda.cuGetErrorName(code, ctypes.byref(word)) == SUCCESS
        raise DriverError(f"{name} returns {code}{f' ({(word.value or b"").decode()})' if has_word else ''}", code)


def open_nodes(answer: Answer, *paths: str) -> None:
    """Open each file, and answer after each: file -> the error's name ("EPERM"), or null if it opens."""
    refusals: dict[str, str | None] = {}
    for path in paths:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
            refusals[path] = None
        except OSError as error:
            refusals[path] = errno.errorcode.get(error.errno or 0, str(error.errno))
        answer(refusals)


def ask_nvml(answer: Answer) -> None:
    from suite.external.nvml.gpus import read_state  # noqa: PLC0415  (NVML's package, which no other question needs)

    answer(dataclasses.asdict(read_state()))


def load_libraries(answer: Answer, wanted: str, patience_s: str) -> None:
    """Load libraries as a program would (dlopen) and look for their symbols.

    ``wanted``: a JSON object, library -> list of symbols; a library is a path or a bare name for the dynamic loader.
    Each is loaded in its own fork, for at most ``patience_s`` whole seconds. So a library that aborts or hangs affects
    no other, and none helps another to load.
    """
    loaded: dict[str, Any] = {}
    for library, symbols in json.loads(wanted).items():
        loaded[library] = _load_in_fork(library, symbols, int(patience_s))
        answer(loaded)


def _load_in_fork(library: str, symbols: Iterable[str], patience_s: int) -> dict[str, Any]:
    """Add ``end`` to the answer of ``_load``: "loaded", "refused", "hung", or how it died ("SIGABRT", …)."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(patience_s)  # its default action ends the process
        os.write(writer, json.dumps(_load(library, symbols)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    exit_code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if text:
        facts: dict[str, Any] = json.loads(text)
        return {**facts, "end": "loaded" if facts["error"] is None else "refused"}
    if exit_code == -signal.SIGALRM:
        end = "hung"
    else:
        end = signal.Signals(-exit_code).name if exit_code < 0 else f"exit code {exit_code}"
    return {"error": None, "path": None, "symbols": [], "end": end}


def _load(library: str, symbols: Iterable[str]) -> dict[str, Any]:
    """Return ``error`` (dlerror's message or None), ``path`` (the loaded file) and ``symbols`` (those it exports)."""
    try:
        handle = ctypes.CDLL(library, mode=os.RTLD_LAZY | os.RTLD_LOCAL)
    except OSError as error:
        return {"error": str(error), "path": None, "symbols": []}
    return {"error": None, "path": _path(handle), "symbols": [name for name in symbols if hasattr(handle, name)]}


class _LinkMap(ctypes.Structure):
    _fields_ = (("l_addr", ctypes.c_void_p), ("l_name", ctypes.c_char_p))


def _path(handle: ctypes.CDLL) -> str | None:
    dlinfo = ctypes.CDLL(None).dlinfo
    dlinfo.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    link = ctypes.POINTER(_LinkMap)()
    if dlinfo(handle._handle, _RTLD_DI_LINKMAP, ctypes.byref(link)) != 0:  # noqa: SLF001  (the only way to the handle)
        return None
    return os.fsdecode(link.contents.l_name)


if __name__ == "__main__":
    answer_with(
        {
            "cores": time_cores,
            "cuda": start_cuda,
            "nodes": open_nodes,
            "nvml": ask_nvml,
            "libraries": load_libraries,
        }
    )
