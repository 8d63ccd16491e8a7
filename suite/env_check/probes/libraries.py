"""Loads libraries as a program would (dlopen) and looks for their symbols: ``probes.libraries JSON PATIENCE_S``.

JSON is an object, library -> list of symbols; a library is a path or a bare name for the dynamic loader. Each is
loaded in its own fork, for at most PATIENCE_S whole seconds. So a library that aborts or hangs affects no other, and
none helps another to load.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterable
from typing import Any, Final

from suite.env_check.probes.answer import open_answer

_RTLD_DI_LINKMAP: Final = 2  # dlfcn.h


class _LinkMap(ctypes.Structure):
    _fields_ = (("l_addr", ctypes.c_void_p), ("l_name", ctypes.c_char_p))


def load(library: str, symbols: Iterable[str]) -> dict[str, Any]:
    """Return ``error`` (dlerror's message or None), ``path`` (the loaded file) and ``symbols`` (those it exports)."""
    try:
        handle = ctypes.CDLL(library, mode=os.RTLD_LAZY | os.RTLD_LOCAL)
    except OSError as error:
        return {"error": str(error), "path": None, "symbols": []}
    return {"error": None, "path": _path(handle), "symbols": [name for name in symbols if hasattr(handle, name)]}


def _path(handle: ctypes.CDLL) -> str | None:
    dlinfo = ctypes.CDLL(None).dlinfo
    dlinfo.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    link = ctypes.POINTER(_LinkMap)()
    if dlinfo(handle._handle, _RTLD_DI_LINKMAP, ctypes.byref(link)) != 0:  # noqa: SLF001  (the only way to the handle)
        return None
    return os.fsdecode(link.contents.l_name)


def load_in_fork(library: str, symbols: Iterable[str], patience_s: int) -> dict[str, Any]:
    """Add ``end`` to the answer of ``load``: "loaded", "refused", "hung", or how it died ("SIGABRT", "exit code 3")."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(patience_s)  # its default action ends the process
        os.write(writer, json.dumps(load(library, symbols)).encode())
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


def main() -> None:
    answer = open_answer()
    wanted: dict[str, list[str]] = json.loads(sys.argv[1])
    loaded: dict[str, Any] = {}
    for library, symbols in wanted.items():
        loaded[library] = load_in_fork(library, symbols, int(sys.argv[2]))
        answer(loaded)


if __name__ == "__main__":
    main()
