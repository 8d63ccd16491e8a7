"""Checks that the libraries of the driver stack load with all their dependencies, and explains why one does not.

Child processes load them: the distribution's loaders and the NVIDIA driver's own. If one fails, this module reads its
ELF file and looks for its dependencies where the dynamic loader does (ld.so(8)), without loading any.
"""

import functools
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

from suite.env_check.check import Fault, Judgement, Subject, parts
from suite.env_check.container import Container, Part, read_container
from suite.env_check.probes.run import run_probe

_MAGIC: Final = b"\x7fELF"
_CACHE_LINE: Final = re.compile(r"^\s+(\S+) \(.*\) => (\S+)$")
_CACHE_TIMEOUT_S: Final = 10.0
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
EGL_LOADER: Final = ("libEGL.so.1", "libGLdispatch.so.0")
LIBGL: Final = ("libGL.so.1",)
VULKAN_LOADER: Final = ("libvulkan.so.1",)
VULKAN_DRIVER: Final = ("libGLX_nvidia.so.0",)
CUDA_DRIVER: Final = ("libcuda.so.1",)


ElfFault = Literal["absent", "library_unreadable", "library_not_elf", "library_truncated"]


@dataclass(frozen=True, kw_only=True)
class Elf:
    """One ELF file. If ``fault`` is set, the fields that could not be read are None or empty."""

    path: str
    fault: ElfFault | None = None
    bits: int | None = None  # 32 or 64
    machine: str | None = None  # "EM_X86_64"
    needed: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()  # folders to search for its dependencies, with $ORIGIN replaced

    @property
    def loads_here(self) -> bool:
        """Return whether its header allows this process to load it."""
        return self.fault is None and (self.bits, self.machine) == (host().bits, host().machine)


def read_elf(path: Path) -> Elf:
    """Read ``path``. A file that is absent, unreadable, truncated or not ELF gives a fault, never an exception."""
    try:
        with path.open("rb") as stream:
            if stream.read(len(_MAGIC)) != _MAGIC:
                return Elf(path=str(path), fault="library_not_elf")
            return _parse(path, ELFFile(stream), path.stat().st_size)
    except FileNotFoundError:
        return Elf(path=str(path), fault="absent")
    except OSError:
        return Elf(path=str(path), fault="library_unreadable")
    except (ELFError, ValueError):
        return Elf(path=str(path), fault="library_truncated")


@functools.cache
def host() -> Elf:
    """Return the running Python, whose word size and machine every library it loads must share."""
    return read_elf(Path("/proc/self/exe"))


def _parse(path: Path, elf: ELFFile, size_bytes: int) -> Elf:
    segments = list(elf.iter_segments())
    if any(segment["p_offset"] + segment["p_filesz"] > size_bytes for segment in segments):
        return Elf(path=str(path), fault="library_truncated")
    tags: dict[str, list[str]] = {"DT_NEEDED": [], "DT_RPATH": [], "DT_RUNPATH": []}
    for segment in segments:
        if isinstance(segment, DynamicSegment):
            for tag in segment.iter_tags():
                if tag.entry.d_tag in tags:
                    name = tag.entry.d_tag.removeprefix("DT_").lower()
                    tags[tag.entry.d_tag].append(getattr(tag, name))
    return Elf(
        path=str(path),
        bits=elf.elfclass,
        machine=elf["e_machine"],
        needed=tuple(tags["DT_NEEDED"]),
        runpath=tuple(
            folder.replace("$ORIGIN", str(path.parent)).replace("${ORIGIN}", str(path.parent))
            for entry in tags["DT_RUNPATH"] or tags["DT_RPATH"]
            for folder in entry.split(":")
        ),
    )


@dataclass(frozen=True, kw_only=True)
class SearchPath:
    library_path: tuple[str, ...]  # LD_LIBRARY_PATH
    cache: Mapping[str, tuple[str, ...]]  # name -> files, as ldconfig stored them
    default_folders: tuple[str, ...]

    def candidates(self, name: str, runpath: tuple[str, ...] = ()) -> Iterator[Path]:
        """Yield every path that ``name`` could mean, in the loader's order. A name with a slash is a path itself."""
        if "/" in name:
            yield Path(name)
            return
        yield from (Path(folder or ".") / name for folder in (*self.library_path, *runpath))
        yield from map(Path, self.cache.get(name, ()))
        yield from (Path(folder) / name for folder in self.default_folders)

    def find(self, name: str, runpath: tuple[str, ...] = ()) -> Elf | None:
        """Return the file that the loader would load; else one for another machine, which it skips; else None."""
        files = [elf for path in self.candidates(name, runpath) if (elf := read_elf(path)).fault != "absent"]
        return next((elf for elf in files if elf.fault or elf.loads_here), files[0] if files else None)

    def find_missing(self, elf: Elf) -> tuple[str, str] | None:
        """Return the first missing dependency of ``elf`` or of its dependencies, and the file that needs it."""
        todo, done = [elf], {Path(elf.path).name}
        while todo:
            user = todo.pop(0)
            for name in user.needed:
                if name in done:
                    continue
                done.add(name)
                dependency = self.find(name, user.runpath)
                if dependency is None or not dependency.loads_here:
                    return name, user.path
                todo.append(dependency)
        return None


def read_search_path(environ: Mapping[str, str]) -> SearchPath:
    multiarch = f"{platform.machine()}-linux-gnu"
    return SearchPath(
        library_path=tuple(re.split("[:;]", text)) if (text := environ.get("LD_LIBRARY_PATH")) else (),
        cache=_read_cache(environ),
        default_folders=(f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"),
    )


def _read_cache(environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the output of ``ldconfig -p``. Without ldconfig it is empty, and only the default folders remain."""
    ldconfig = shutil.which("ldconfig", path=os.pathsep.join((environ.get("PATH", ""), "/sbin", "/usr/sbin")))
    if ldconfig is None:
        return {}
    done = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False, timeout=_CACHE_TIMEOUT_S)
    files: dict[str, tuple[str, ...]] = {}
    for line in done.stdout.splitlines():
        if match := _CACHE_LINE.match(line):
            name, path = match.groups()
            files[name] = (*files.get(name, ()), path)
    return files


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
    run = run_probe("machine", "libraries", request, str(patience_s), environ=environ, timeout_s=timeout_s)
    search = read_search_path(environ)
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
    missing = needed_by = None
    text = loaded["error"] or loaded["end"]
    if loaded["end"] in ("refused", "SIGBUS"):  # SIGBUS: a truncated file crashes the loader itself
        fault, missing, needed_by = _why_refused(elf, search)
    elif loaded["end"] == "hung":
        fault, text = "library_hung", f"no answer in {patience_s} s"
    else:
        fault, text = "library_aborted", f"ended by {loaded['end']}"
    path = str(Path(elf.path).resolve())
    return Library(name=name, path=path, fault=fault, missing=missing, needed_by=needed_by, loader_text=text)


def _why_refused(elf: Elf, search: SearchPath) -> tuple[str, str | None, str | None]:
    """Return the fault and, for a missing dependency, its name and the file that needs it."""
    if elf.fault is not None:
        return elf.fault, None, None
    if elf.bits != host().bits:
        return "library_wrong_class", None, None
    if elf.machine != host().machine:
        return "library_wrong_machine", None, None
    if gone := search.find_missing(elf):
        return "dependency_missing", *gone
    return "library_unloadable", None, None


def library_fault(library: Library, container: Container) -> Fault | None:
    """Return why a library does not load, and the next step in ``container``; None if it loads."""
    if library.fault is None:
        return None
    name, path = Path(library.missing or library.name).name, library.path
    bits, machine = host().bits, host().machine
    package = f" (package {PACKAGES[name]})" if name in PACKAGES else ""
    again = f"install {path} again{package}: dpkg -S {path} names its package"
    for_this_host = f"install the {bits}-bit {machine} build of {path} and remove this one from the library path"
    found, repair = {
        "library_missing": ("no such library", _get(name, container)),
        "dependency_missing": (
            f"{library.missing} is missing or does not load (needed by {library.needed_by})",
            _get(name, container, option="--reinstall "),  # it may be there and broken, which a plain install leaves
        ),
        "library_truncated": (f"{path} is truncated or damaged", again),
        "library_not_elf": (f"{path} is not an ELF file", again),
        "library_unreadable": (f"{path} cannot be read", again),
        "library_wrong_class": (f"{path} is not a {bits}-bit library", for_this_host),
        "library_wrong_machine": (f"{path} is for another machine than {machine}", for_this_host),
    }.get(
        library.fault,
        (
            f"{path} does not load: {library.loader_text}",
            f"install {path} and its dependencies again; the loader reports: {library.loader_text}",
        ),
    )
    return Fault(word=library.fault, found=f"{library.name}: {found}", repair=repair)


def _get(name: str, container: Container, *, option: str = "") -> str:
    """Return how to get a library that is missing."""
    if is_nvidia(name):
        return f"{name} comes with the NVIDIA driver. {container.repair_of(part_of(name), name)}"
    if name in PACKAGES:
        return f"apt-get install {option}{PACKAGES[name]} (it holds {name})"
    return f"install the package that contains {name} (apt-file search {name}), or correct the file that names it"


def part_of(name: str) -> Part:
    """Return the part of the driver that a library of NVIDIA belongs to."""
    return next((part for start, part in _PARTS.items() if name.startswith(start)), "graphics")


def egl_driver(driver_version: str | None) -> tuple[str, ...]:
    """Return the names of the driver's EGL libraries. The second exists only with the driver version in its name."""
    return ("libEGL_nvidia.so.0", *((f"libnvidia-eglcore.so.{driver_version}",) if driver_version else ()))


@dataclass(frozen=True, kw_only=True)
class LibraryFacts:
    driver_version: str | None  # the NVIDIA kernel driver's; None if there is no driver
    container: Container
    libraries: tuple[Library, ...]

    def named(self, *names: str) -> tuple[Library, ...]:
        return tuple(library for library in self.libraries if library.name in names)


def read_driver_libraries(environ: Mapping[str, str], *, driver_version: str | None) -> LibraryFacts:
    """Load every library of the stack, each in its own child process."""
    names = (*EGL_LOADER, *LIBGL, *VULKAN_LOADER, *egl_driver(driver_version), *VULKAN_DRIVER, *CUDA_DRIVER)
    loaded = read_libraries(dict.fromkeys(names, ()), environ)
    return LibraryFacts(
        driver_version=driver_version, container=read_container(environ), libraries=tuple(loaded.values())
    )


def judge_libraries(facts: LibraryFacts, names: tuple[str, ...]) -> Judgement:
    """Check that the named libraries load with all their dependencies."""
    libraries = facts.named(*names)
    subject = Subject(
        f"{', '.join(library.name for library in libraries)} load with all dependencies",
        replace(facts, libraries=libraries),
    )
    for library in libraries:
        if fault := library_fault(library, facts.container):
            return subject.faulty(fault)
    return subject.ok(", ".join(library.path or library.name for library in libraries))


def judge_driver_libraries(facts: LibraryFacts, names: tuple[str, ...]) -> Judgement:
    """Check that the named NVIDIA libraries load and have the kernel driver's version. Needs a driver."""
    libraries = facts.named(*names)
    version = facts.driver_version or ""
    subject = Subject(
        f"{', '.join(library.name for library in libraries)} of the kernel driver's version {version}".strip(),
        replace(facts, libraries=libraries),
    )
    if facts.driver_version is None and all(library.fault == "library_missing" for library in libraries):
        return subject.not_checked("no NVIDIA driver")
    for library in libraries:
        if mismatch := version_mismatch(library, facts.driver_version, facts.container):
            return subject.faulty(mismatch)
    return judge_libraries(facts, names)


def version_mismatch(library: Library, driver_version: str | None, container: Container) -> Fault | None:
    """Return a fault if an NVIDIA library's version differs from the kernel driver's."""
    if not library.is_nvidia or driver_version is None or library.version in (None, driver_version):
        return None
    if library.is_compat and parts(library.version) > parts(driver_version):
        return None
    return Fault(
        word="version_mismatch",
        found=f"{library.path} is version {library.version}, the kernel driver is {driver_version}",
        repair=container.repair_of_mismatch(library.path or library.name),
    )
