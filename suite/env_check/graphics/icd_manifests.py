"""Reads driver manifests as the loaders do: Vulkan's ICD manifests and GLVND's EGL vendor manifests.

VK_ERROR_INCOMPATIBLE_DRIVER has about ten causes, and libEGL reports none of them. So this module finds and parses each
file, and loads its library in a child process.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from suite.env_check.graphics.icd_search import Candidate, Kind, search
from suite.env_check.host.container import Container, read_container
from suite.env_check.libraries.elf import host
from suite.env_check.libraries.library import Library, read_libraries
from suite.files.input_file import read_input

# The library must export one of these, or the loader drops it.
SYMBOLS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "vulkan": ("vk_icdGetInstanceProcAddr", "vkGetInstanceProcAddr"),
    "egl": ("__egl_Main",),
}
# Without it the Vulkan half of NVIDIA's driver refuses: 580.159.04 returns -3 when asked for its interface, others give
# a null vkCreateInstance.
LIBEGL: Final = "libEGL.so.1"
# NVIDIA's driver, and what it loads by itself.
NVIDIA: Final[Mapping[Kind, tuple[str, ...]]] = {
    "vulkan": ("libGLX_nvidia.so.0", LIBEGL),
    "egl": ("libEGL_nvidia.so.0",),
}


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One manifest file. Fields that it does not give are None."""

    path: str
    source: str  # the searched folder, or the variable that names the file
    filtered_by: str | None = None  # the variable that makes the loader skip it
    fault: str | None = None  # fault of the file itself: "manifest_missing", "manifest_malformed", …
    detail: str | None = None  # the message of the parser or the operating system
    format_version: str | None = None
    api_version: str | None = None
    library_arch: str | None = None  # "32" or "64"
    library_path: str | None = None  # exactly as in the file
    library: Library | None = None

    @property
    def is_nvidia(self) -> bool:
        return self.library is not None and self.library.is_nvidia


@dataclass(frozen=True, kw_only=True)
class ManifestsSeen:
    kind: Kind
    driver_version: str | None  # the NVIDIA kernel driver's; None if there is none
    variables: Mapping[str, str]  # variables that are set and change what the loader finds
    folders: tuple[str, ...]  # the searched folders; empty if a variable names the files
    manifests: tuple[Manifest, ...]
    container: Container
    nvidia: Mapping[str, Library]  # the libraries of NVIDIA, whether a manifest names them or not


def read(
    kind: Kind, environ: Mapping[str, str], *, driver_version: str | None, root: Path = Path("/")
) -> ManifestsSeen:
    """Read every manifest that the loader would open. ``root`` replaces ``/`` in the search, not for libraries."""
    where = search(kind, root, environ)
    manifests = [_read_file(kind, candidate) for candidate in where.candidates]
    # Filtered drivers are not loaded: the loader skips them too, and a user may have disabled them because they crash.
    names = [_library_name(kind, manifest) for manifest in manifests]
    libraries = read_libraries({name: SYMBOLS[kind] for name in (*names, *NVIDIA[kind]) if name}, environ)
    return ManifestsSeen(
        kind=kind,
        driver_version=driver_version,
        variables=where.variables,
        folders=where.folders,
        manifests=tuple(
            replace(manifest, library=libraries[name]) if name else manifest
            for manifest, name in zip(manifests, names, strict=True)
        ),
        container=read_container(environ, root),
        nvidia={name: libraries[name] for name in NVIDIA[kind]},
    )


def _read_file(kind: Kind, candidate: Candidate) -> Manifest:
    path = candidate.path
    blank = Manifest(path=str(path), source=candidate.source, filtered_by=candidate.filtered_by)
    if kind == "vulkan" and path.suffix != ".json":
        return replace(blank, fault="manifest_not_json_name")
    try:
        content = read_input(path)
    except OSError as error:
        fault = "manifest_missing" if isinstance(error, FileNotFoundError) else "manifest_unreadable"
        return replace(blank, fault=fault, detail=error.strerror)
    if not content.strip():
        return replace(blank, fault="manifest_empty")
    try:
        return _describe(kind, blank, json.loads(content))
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested too deeply
        return replace(blank, fault="manifest_malformed", detail=str(error))


def _describe(kind: Kind, blank: Manifest, document: Any) -> Manifest:
    icd = document.get("ICD") if isinstance(document, dict) else None
    if not isinstance(icd, dict):
        return replace(blank, fault="manifest_no_icd")
    manifest = replace(
        blank,
        format_version=_text(document.get("file_format_version")),
        api_version=_text(icd.get("api_version")),
        library_arch=_text(icd.get("library_arch")),
        library_path=_text(icd.get("library_path")),
    )
    if not manifest.library_path:
        return replace(manifest, fault="manifest_no_library_path")
    if kind == "vulkan" and manifest.api_version is None:
        return replace(manifest, fault="manifest_no_api_version")
    if kind == "vulkan" and manifest.library_arch not in (None, str(host().bits)):
        return replace(manifest, fault="manifest_library_arch")
    if kind == "egl" and (manifest.format_version or "").split(".")[:2] not in (["1", "0"], ["1"]):
        return replace(manifest, fault="manifest_format_version")
    return manifest


def _text(value: object) -> str | None:
    """Return a string unchanged, and None for anything else, which the loaders ignore too."""
    return value if isinstance(value, str) else None


def _library_name(kind: Kind, manifest: Manifest) -> str | None:
    """Return the name that the loader passes to dlopen; None if it stops before that."""
    if manifest.library_path is None or manifest.fault or manifest.filtered_by:
        return None
    # Vulkan resolves a relative path from the manifest's folder. GLVND passes it to dlopen: from the working directory.
    if kind == "vulkan" and "/" in manifest.library_path:
        return str(Path(manifest.path).parent / manifest.library_path)
    return manifest.library_path
