"""The libraries of the driver stack: the loaders, which the distribution brings, and what the NVIDIA driver brings."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from suite.env_check.check import Check, Feature
from suite.env_check.finding import Finding
from suite.env_check.gpu.driver_table import parts
from suite.env_check.libraries.library import Library, describe, read_libraries, repair

EGL_LOADER: Final = ("libEGL.so.1", "libGLdispatch.so.0")
LIBGL: Final = ("libGL.so.1",)
VULKAN_LOADER: Final = ("libvulkan.so.1",)
EGL_DRIVER: Final = ("libEGL_nvidia.so.0",)
VULKAN_DRIVER: Final = ("libGLX_nvidia.so.0",)
CUDA_DRIVER: Final = ("libcuda.so.1",)
EGL_CORE: Final = "libnvidia-eglcore.so."  # and the driver version: its name has no other form


@dataclass(frozen=True, kw_only=True)
class LibrariesSeen:
    driver_version: str | None  # of the NVIDIA kernel driver; None when there is none
    libraries: tuple[Library, ...]

    def named(self, *names: str) -> tuple[Library, ...]:
        return tuple(library for library in self.libraries if library.name in names)


def read(environ: Mapping[str, str], *, driver_version: str | None) -> LibrariesSeen:
    """Load every library of the stack, each by itself in a child process."""
    names = (*EGL_LOADER, *LIBGL, *VULKAN_LOADER, *EGL_DRIVER, *VULKAN_DRIVER, *CUDA_DRIVER)
    core = (EGL_CORE + driver_version,) if driver_version else ()
    found = read_libraries(dict.fromkeys((*names, *core), ()), environ)
    return LibrariesSeen(driver_version=driver_version, libraries=tuple(found.values()))


def check_egl_loader(seen: LibrariesSeen) -> Check[LibrariesSeen]:
    return _check("egl_loader", "egl", seen, seen.named(*EGL_LOADER))


def check_libgl(seen: LibrariesSeen) -> Check[LibrariesSeen]:
    """libGL.so.1: PhysX without Isaac Sim (stack ovphysx) does not start without it."""
    return _check("libgl", "egl", seen, seen.named(*LIBGL))


def check_vulkan_loader(seen: LibrariesSeen) -> Check[LibrariesSeen]:
    return _check("vulkan_loader", "vulkan", seen, seen.named(*VULKAN_LOADER))


def check_egl_driver(seen: LibrariesSeen) -> Check[LibrariesSeen]:
    core = EGL_CORE + (seen.driver_version or "")
    return _check_driver("egl_driver", "egl", seen, seen.named(*EGL_DRIVER, core))


def check_vulkan_driver(seen: LibrariesSeen) -> Check[LibrariesSeen]:
    return _check_driver("vulkan_driver", "vulkan", seen, seen.named(*VULKAN_DRIVER))


def check_cuda_driver(seen: LibrariesSeen) -> Check[LibrariesSeen]:
    return _check_driver("cuda_driver", "cuda", seen, seen.named(*CUDA_DRIVER))


def _check(name: str, feature: Feature, seen: LibrariesSeen, libraries: tuple[Library, ...]) -> Check[LibrariesSeen]:
    evidence = LibrariesSeen(driver_version=seen.driver_version, libraries=libraries)
    wanted = f"{', '.join(library.name for library in libraries)} load with all dependencies"
    for library in libraries:
        if library.fault:
            finding = Finding(word=library.fault, found=describe(library), repair=repair(library))
            return finding.check(name=name, feature=feature, wanted=wanted, evidence=evidence)
    found = f"{', '.join(library.path or library.name for library in libraries)}"
    return Check(name=name, feature=feature, verdict="ok", found=found, wanted=wanted, evidence=evidence)


def _check_driver(
    name: str, feature: Feature, seen: LibrariesSeen, libraries: tuple[Library, ...]
) -> Check[LibrariesSeen]:
    """As ``_check``, for what the NVIDIA driver brings: nothing to check where there is no driver, and one version."""
    evidence = LibrariesSeen(driver_version=seen.driver_version, libraries=libraries)
    version = seen.driver_version or ""
    wanted = f"{', '.join(library.name for library in libraries)} of the kernel driver's version {version}".strip()
    if seen.driver_version is None and all(library.fault == "library_missing" for library in libraries):
        return Check(name=name, feature=feature, verdict="not_checked", found="no NVIDIA driver", wanted=wanted,
                     evidence=evidence)  # fmt: skip
    for library in libraries:
        if mismatch := version_mismatch(library, seen.driver_version):
            return mismatch.check(name=name, feature=feature, wanted=wanted, evidence=evidence)
    return _check(name, feature, seen, libraries)


def version_mismatch(library: Library, driver_version: str | None) -> Finding | None:
    """An NVIDIA library of another version than the kernel driver."""
    if not library.is_nvidia or driver_version is None or library.version in (None, driver_version):
        return None
    if library.is_compat and parts(library.version) > parts(driver_version):
        return None
    return Finding(
        word="version_mismatch",
        found=f"{library.path} is version {library.version}, the kernel driver is {driver_version}",
        repair=f"install the driver's libraries of version {driver_version}, or reboot into the kernel driver"
        f" {library.version}; in an image remove the copy that it brought: {library.path}",
    )
