"""Loads a library with all its dependencies in a child process; if that fails, finds the cause."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from suite.env_check.host.container import Container, Part
from suite.env_check.libraries import search_path
from suite.env_check.libraries.elf import Elf, host
from suite.env_check.libraries.search_path import SearchPath
from suite.env_check.probes.run import run_probe

PATIENCE_S: Final = 10  # for one library; a driver that contains a compiler loads in 0.1 s
_START_S: Final = 30.0  # for the start of Python on a busy machine

# The package that contains a library in Debian and Ubuntu. Repairs name no package for other libraries.
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
# The NVIDIA driver's own libraries. They must come with the driver: a package of another version breaks it.
_NVIDIA: Final = re.compile(r"^lib(nvidia|GLX_nvidia|EGL_nvidia|GLESv\d_\w*nvidia|cuda\.so|nv)")
_VERSION: Final = re.compile(r"\.so\.(\d{3}(?:\.\d+){1,2})$")  # libGLX_nvidia.so.580.159.04; not WSL's libcuda.so.1.1
_PARTS: Final[dict[str, Part]] = {"libcuda": "compute", "libnvidia-ml": "utility", "libnvidia-ptxjit": "compute"}


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library and, if it does not load, the cause."""

    name: str  # as requested: a path or a bare name
    path: str | None  # the file, with links resolved; None if there is no file
    fault: str | None  # "library_missing", "dependency_missing", … ; None if it loads
    missing: str | None = None  # the library that is missing: itself or a dependency
    needed_by: str | None = None  # the file that needs ``missing``
    loader_text: str | None = None  # dlerror's message, or how the loading process died
    symbols: tuple[str, ...] = ()  # the requested symbols that it exports

    @property
    def version(self) -> str | None:
        return version_of(Path(self.path or self.name).name)

    @property
    def is_nvidia(self) -> bool:
        return is_nvidia(self.name)

    @property
    def is_compat(self) -> bool:
        return is_compat(Path(self.path or ""))


def version_of(file_name: str) -> str | None:
    """Return the driver version in a file's name; None if it has none, as in ``libvulkan_lvp.so``."""
    match = _VERSION.search(file_name)
    return match.group(1) if match else None


def is_nvidia(name: str) -> bool:
    return _NVIDIA.match(Path(name).name) is not None


def is_compat(file: Path) -> bool:
    """Return whether the file is from the package cuda-compat, whose libcuda may be newer than the kernel driver."""
    return "compat" in file.parts


def read_libraries(
    wanted: Mapping[str, Sequence[str]], environ: Mapping[str, str], *, patience_s: int = PATIENCE_S
) -> dict[str, Library]:
    """Load every library of ``wanted`` (name -> symbols to look for) in a child process and explain each failure."""
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
    if loaded["end"] in ("refused", "SIGBUS"):  # SIGBUS: a truncated file crashes the loader itself
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
    text = f"no answer in {patience_s} s" if fault == "library_hung" else f"ended by {loaded['end']}"
    return Library(name=name, path=path, fault=fault, loader_text=text)


def _why_refused(elf: Elf, search: SearchPath) -> tuple[str, str | None, str | None]:
    """Return the fault and, for a missing dependency, its name and the file that needs it."""
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
    """Return on one line why a library does not load."""
    texts = {
        "library_missing": "no such library",
        "dependency_missing": f"{library.missing} is missing or does not load (needed by {library.needed_by})",
        "library_truncated": f"{library.path} is truncated or damaged",
        "library_not_elf": f"{library.path} is not an ELF file",
        "library_unreadable": f"{library.path} cannot be read",
        "library_wrong_class": f"{library.path} is not a {host().bits}-bit library",
        "library_wrong_machine": f"{library.path} is for another machine than {host().machine}",
    }
    text = texts.get(library.fault or "", f"{library.path} does not load: {library.loader_text}")
    return f"{library.name}: {text}"


def repair(library: Library, container: Container) -> str:
    """Return the next step for a library that does not load in ``container``."""
    name = Path(library.missing or library.name).name
    if library.fault in ("library_missing", "dependency_missing"):
        if is_nvidia(name):
            return f"{name} comes with the NVIDIA driver. {container.repair_of(part_of(name), name)}"
        if name in PACKAGES:  # a dependency may be there and broken, which a plain install leaves
            again = "" if library.fault == "library_missing" else "--reinstall "
            return f"apt-get install {again}{PACKAGES[name]} (it holds {name})"
        return f"install the package that contains {name} (apt-file search {name}), or correct the file that names it"
    if library.fault in ("library_wrong_class", "library_wrong_machine"):
        bits, machine = host().bits, host().machine
        return f"install the {bits}-bit {machine} build of {library.path} and remove this one from the library path"
    if library.fault in ("library_truncated", "library_not_elf", "library_unreadable"):
        package = f" (package {PACKAGES[name]})" if name in PACKAGES else ""
        return f"install {library.path} again{package}: dpkg -S {library.path} names its package"
    return f"install {library.path} and its dependencies again; the loader reports: {library.loader_text}"


def part_of(name: str) -> Part:
    """Return the part of the driver that a library of NVIDIA belongs to."""
    return next((part for start, part in _PARTS.items() if name.startswith(start)), "graphics")
