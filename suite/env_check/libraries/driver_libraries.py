"""Checks the libraries of the driver stack: the distribution's loaders and the NVIDIA driver's own libraries."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from suite.env_check.check import Fault, Judgement, Subject
from suite.env_check.gpu.driver_table import parts
from suite.env_check.host.container import Container, read_container
from suite.env_check.libraries.library import Library, describe, read_libraries, repair

EGL_LOADER: Final = ("libEGL.so.1", "libGLdispatch.so.0")
LIBGL: Final = ("libGL.so.1",)
VULKAN_LOADER: Final = ("libvulkan.so.1",)
VULKAN_DRIVER: Final = ("libGLX_nvidia.so.0",)
CUDA_DRIVER: Final = ("libcuda.so.1",)


def egl_driver(driver_version: str | None) -> tuple[str, ...]:
    """Return the names of the driver's EGL libraries. The second exists only with the driver version in its name."""
    return ("libEGL_nvidia.so.0", *((f"libnvidia-eglcore.so.{driver_version}",) if driver_version else ()))


@dataclass(frozen=True, kw_only=True)
class LibrariesSeen:
    driver_version: str | None  # the NVIDIA kernel driver's; None if there is no driver
    container: Container
    libraries: tuple[Library, ...]

    def named(self, *names: str) -> tuple[Library, ...]:
        return tuple(library for library in self.libraries if library.name in names)


def read(environ: Mapping[str, str], *, driver_version: str | None) -> LibrariesSeen:
    """Load every library of the stack, each in its own child process."""
    names = (*EGL_LOADER, *LIBGL, *VULKAN_LOADER, *egl_driver(driver_version), *VULKAN_DRIVER, *CUDA_DRIVER)
    found = read_libraries(dict.fromkeys(names, ()), environ)
    return LibrariesSeen(
        driver_version=driver_version, container=read_container(environ), libraries=tuple(found.values())
    )


def judge_libraries(seen: LibrariesSeen, names: tuple[str, ...]) -> Judgement:
    """Check that the named libraries load with all their dependencies."""
    libraries = seen.named(*names)
    subject = Subject(
        f"{', '.join(library.name for library in libraries)} load with all dependencies",
        replace(seen, libraries=libraries),
    )
    for library in libraries:
        if library.fault:
            return subject.failure(library.fault, describe(library), repair(library, seen.container))
    return subject.ok(", ".join(library.path or library.name for library in libraries))


def judge_driver_libraries(seen: LibrariesSeen, names: tuple[str, ...]) -> Judgement:
    """Check that the named NVIDIA libraries load and have the kernel driver's version. Needs a driver."""
    libraries = seen.named(*names)
    version = seen.driver_version or ""
    subject = Subject(
        f"{', '.join(library.name for library in libraries)} of the kernel driver's version {version}".strip(),
        replace(seen, libraries=libraries),
    )
    if seen.driver_version is None and all(library.fault == "library_missing" for library in libraries):
        return subject.not_checked("no NVIDIA driver")
    for library in libraries:
        if mismatch := version_mismatch(library, seen.driver_version, seen.container):
            return subject.faulty(mismatch)
    return judge_libraries(seen, names)


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
