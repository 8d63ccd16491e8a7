"""Whether a library can be loaded here with all its dependencies; and if not, what exactly is in the way."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from suite.env_check.libraries import search_path
from suite.env_check.libraries.elf import Elf, host
from suite.env_check.libraries.search_path import SearchPath
from suite.env_check.probes.run import run_probe

PATIENCE_S: Final = 10  # for one library: loading a driver with a compiler inside takes 0.1 s
_START_S: Final = 30.0  # for Python itself, on a busy machine

# What holds a library in Debian and Ubuntu. Missing libraries that are not here are named without a package.
PACKAGES: Final = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libGLdispatch.so.0": "libglvnd0",
    "libOpenGL.so.0": "libopengl0",
    "libX11.so.6": "libx11-6",
    "libXau.so.6": "libxau6",
    "libXdmcp.so.6": "libxdmcp6",
    "libXext.so.6": "libxext6",
    "libbsd.so.0": "libbsd0",
    "libdrm.so.2": "libdrm2",
    "libexpat.so.1": "libexpat1",
    "libgbm.so.1": "libgbm1",
    "libmd.so.0": "libmd0",
    "libvulkan.so.1": "libvulkan1",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-server.so.0": "libwayland-server0",
    "libxcb.so.1": "libxcb1",
    "libxshmfence.so.1": "libxshmfence1",
}
# What the NVIDIA driver brings. It must come with the driver: a package of another version does harm.
_NVIDIA: Final = re.compile(r"^lib(nvidia|GLX_nvidia|EGL_nvidia|GLESv\d_\w*nvidia|cuda\.so|nv)")
_VERSION: Final = re.compile(r"\.so\.(\d+(?:\.\d+){1,2})$")  # libGLX_nvidia.so.580.159.04


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library and, when it does not load, why. All fields are what was seen; texts of the loader are evidence."""

    name: str  # as it was asked for: a path or a bare name
    path: str | None  # the file, links followed; None when there is none
    fault: str | None  # "library_missing", "dependency_missing", … ; None when it loads
    missing: str | None = None  # the library that is not there: itself or a dependency
    needed_by: str | None = None  # the file that asks for ``missing``
    loader_text: str | None = None  # what dlerror said, or how the loading process died
    symbols: tuple[str, ...] = ()  # of those asked for, the ones it has

    @property
    def version(self) -> str | None:
        """The driver version in the file's name; None where it says none, as ``libvulkan_lvp.so``."""
        match = _VERSION.search(Path(self.path or self.name).name)
        return match.group(1) if match else None

    @property
    def is_nvidia(self) -> bool:
        return is_nvidia(self.name)

    @property
    def is_compat(self) -> bool:
        return is_compat(Path(self.path or ""))


def is_nvidia(name: str) -> bool:
    return _NVIDIA.match(Path(name).name) is not None


def is_compat(file: Path) -> bool:
    """Whether the file is of the package cuda-compat: its libcuda may be newer than the kernel driver."""
    return "compat" in file.parts


def read_libraries(
    wanted: Mapping[str, Sequence[str]], environ: Mapping[str, str], *, patience_s: int = PATIENCE_S
) -> dict[str, Library]:
    """Load every library of ``wanted`` (name -> symbols to look for) in a child process and explain each that fails."""
    if not wanted:
        return {}
    request = json.dumps({name: list(symbols) for name, symbols in wanted.items()})
    timeout_s = patience_s * len(wanted) + _START_S
    run = run_probe("probes.libraries", request, str(patience_s), environ=environ, timeout_s=timeout_s)
    search = search_path.read(environ)
    nothing: dict[str, Any] = {"error": run.stderr or None, "path": None, "symbols": [], "end": run.signal or run.end}
    return {name: _explain(name, run.answer.get(name, nothing), search, patience_s) for name in wanted}


def _explain(name: str, loaded: Mapping[str, Any], search: SearchPath, patience_s: int) -> Library:
    if loaded["end"] == "loaded":
        path = loaded["path"]
        return Library(name=name, path=str(Path(path).resolve()) if path else None, fault=None,
                       symbols=tuple(loaded["symbols"]))  # fmt: skip
    elf = search.find(name)
    if elf is None:
        return Library(name=name, path=None, fault="library_missing", missing=name, loader_text=loaded["error"])
    path = str(Path(elf.path).resolve())
    if loaded["end"] in ("refused", "SIGBUS"):  # SIGBUS: the loader itself, on a file that is cut short
        fault, missing, needed_by = _why_refused(elf, search)
        return Library(
            name=name,
            path=path,
            fault=fault,
            missing=missing,
            needed_by=needed_by,
            loader_text=loaded["error"] or loaded["end"],
        )
    fault = "library_hung" if loaded["end"] == "hung" else "library_aborted"
    text = f"{patience_s} s without an end" if fault == "library_hung" else f"ended by {loaded['end']}"
    return Library(name=name, path=path, fault=fault, loader_text=text)


def _why_refused(elf: Elf, search: SearchPath) -> tuple[str, str | None, str | None]:
    """The fault, and for a missing dependency its name and the file that needs it."""
    if elf.fault is not None:
        words = {"not_elf": "library_not_elf", "truncated": "library_truncated", "unreadable": "library_unreadable"}
        return words[elf.fault], None, None
    if elf.bits != host().bits:
        return "library_wrong_class", None, None
    if elf.machine != host().machine:
        return "library_wrong_machine", None, None
    if gone := search.find_missing(elf):
        return "dependency_missing", *gone
    return "library_unloadable", None, None


def describe(library: Library) -> str:
    """What is wrong with a library that does not load, on one line."""
    texts = {
        "library_missing": "no such library",
        "dependency_missing": f"{library.missing} is not there or does not load (needed by {library.needed_by})",
        "library_truncated": f"{library.path} is cut short or damaged",
        "library_not_elf": f"{library.path} is not an ELF file",
        "library_unreadable": f"{library.path} cannot be read",
        "library_wrong_class": f"{library.path} is not a {host().bits}-bit library",
        "library_wrong_machine": f"{library.path} is for another machine than {host().machine}",
    }
    text = texts.get(library.fault or "", f"{library.path} does not load: {library.loader_text}")
    return f"{library.name}: {text}"


def repair(library: Library) -> str:
    """The next step for a library that does not load."""
    name = Path(library.missing or library.name).name
    if library.fault in ("library_missing", "dependency_missing"):
        if is_nvidia(name):
            return nvidia_repair(name)
        if name in PACKAGES:
            return f"apt-get install {PACKAGES[name]} (it holds {name})"
        return f"install the package that holds {name} (apt-file search {name}), or correct what names it"
    if library.fault in ("library_wrong_class", "library_wrong_machine"):
        bits, machine = host().bits, host().machine
        return f"install the {bits}-bit {machine} build of {library.path} and remove this one from the library path"
    if library.fault in ("library_truncated", "library_not_elf", "library_unreadable"):
        package = f" (package {PACKAGES[name]})" if name in PACKAGES else ""
        return f"install {library.path} again{package}: dpkg -S {library.path} names its package"
    return f"install {library.path} and its dependencies again; what the loader said: {library.loader_text}"


def nvidia_repair(name: str) -> str:
    """The next step for a part of the NVIDIA driver that is missing or does not load."""
    return (
        f"{Path(name).name} comes with the NVIDIA driver: in a container start it with"
        " NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics; on the host install the driver's GL packages of the very"
        " same version (Ubuntu: libnvidia-gl-<branch>-server), then run ldconfig"
    )
