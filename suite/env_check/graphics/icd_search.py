"""Finds driver manifests where the Vulkan loader and GLVND's libEGL do, in the same order.

Sources: Vulkan-Loader's docs/LoaderDriverInterface.md and LoaderInterfaceArchitecture.md, libglvnd's
src/EGL/icd_enumeration.md, and for what these omit, tests with loader 1.3.239 and GLVND 1.6.0. Both ignore the
variables in a program with raised privileges, which labscale is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from suite.env_check.host.exists import is_folder

Kind = Literal["vulkan", "egl"]

_VULKAN_VARIABLES: Final = (
    "VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES",
    "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE", "VK_LOADER_DEVICE_SELECT", "MESA_VK_DEVICE_SELECT",
    "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS",
)  # fmt: skip
_EGL_VARIABLES: Final = ("__EGL_VENDOR_LIBRARY_FILENAMES", "__EGL_VENDOR_LIBRARY_DIRS")
_EGL_FOLDERS: Final = "/etc/glvnd/egl_vendor.d:/usr/share/glvnd/egl_vendor.d"
_ALL: Final = ("~all~", "*", "**")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A manifest that the loader would open, whether it exists or not."""

    path: Path
    source: str  # the folder that contains it, or the variable that names it
    filtered_by: str | None = None  # the variable that makes the loader skip it


@dataclass(frozen=True, kw_only=True)
class Search:
    variables: Mapping[str, str]  # variables that are set and change what the loader finds
    folders: tuple[str, ...]  # the searched folders; empty if a variable names the files
    candidates: tuple[Candidate, ...]  # in the order in which the loader opens them


def search(kind: Kind, root: Path, environ: Mapping[str, str]) -> Search:
    """Find the manifests that the loader would open. ``root`` replaces ``/``."""
    return _search_vulkan(root, environ) if kind == "vulkan" else _search_egl(root, environ)


def _search_vulkan(root: Path, environ: Mapping[str, str]) -> Search:
    # A variable that is set but empty counts as set: the loader then finds no driver.
    override = next((name for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES") if name in environ), None)
    folders = () if override else _vulkan_folders(environ)
    found = _from_variable(override or "VK_ADD_DRIVER_FILES", root, environ)
    for folder in folders:
        found += _from_folder(_below(root, folder), folder)
    return Search(
        variables={name: environ[name] for name in _VULKAN_VARIABLES if name in environ},
        folders=folders,
        candidates=tuple(_filter(candidate, environ) for candidate in found),
    )


def _vulkan_folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    home = environ.get("HOME")
    roots = [
        environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else ""),
        *(environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":"),
        "/etc",
        environ.get("XDG_DATA_HOME") or (f"{home}/.local/share" if home else ""),
        *(environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":"),
    ]
    return tuple(str(Path(folder) / "vulkan" / "icd.d") for folder in dict.fromkeys(roots) if folder)


def _search_egl(root: Path, environ: Mapping[str, str]) -> Search:
    names, folders = _EGL_VARIABLES
    searched = () if names in environ else tuple(environ.get(folders, _EGL_FOLDERS).split(":"))
    named = filter(None, environ.get(names, "").split(":"))
    found = [Candidate(path=_below(root, name), source=names) for name in named]
    for folder in filter(None, searched):
        found += _from_folder(_below(root, folder), folders if folders in environ else folder)
    return Search(
        variables={name: environ[name] for name in _EGL_VARIABLES if name in environ},
        folders=searched,
        candidates=tuple(found),
    )


def _from_variable(variable: str, root: Path, environ: Mapping[str, str]) -> list[Candidate]:
    """Return the files that a Vulkan variable names; each entry is a file or a folder of files."""
    found: list[Candidate] = []
    for entry in filter(None, environ.get(variable, "").split(":")):
        path = _below(root, entry)
        found += _from_folder(path, variable) if is_folder(path) else [Candidate(path=path, source=variable)]
    return found


def _from_folder(folder: Path, source: str) -> list[Candidate]:
    # The Vulkan loader reads a folder's files in no fixed order. Sorting makes reports reproducible.
    return [Candidate(path=path, source=source) for path in sorted(folder.glob("*.json") if is_folder(folder) else ())]


def _below(root: Path, path: str | Path) -> Path:
    """Return ``path`` with ``root`` in place of ``/``. A relative path starts at the working directory."""
    return root / str(path).lstrip("/") if str(path).startswith("/") else Path(path).absolute()


def _filter(candidate: Candidate, environ: Mapping[str, str]) -> Candidate:
    select, disable = environ.get("VK_LOADER_DRIVERS_SELECT", ""), environ.get("VK_LOADER_DRIVERS_DISABLE", "")
    selected = _matches(candidate.path.name, select)
    skipped_by = None
    if select and not selected:
        skipped_by = "VK_LOADER_DRIVERS_SELECT"
    elif _matches(candidate.path.name, disable) and not selected:  # a selected driver cannot be disabled
        skipped_by = "VK_LOADER_DRIVERS_DISABLE"
    return Candidate(path=candidate.path, source=candidate.source, filtered_by=skipped_by)


def _matches(name: str, globs: str) -> bool:
    """Return whether a comma-separated glob matches. Stars work only at either end; case is ignored."""
    name = name.lower()
    for glob in filter(None, globs.lower().split(",")):
        core = glob.strip("*")
        if glob in _ALL or (
            core in name
            and (glob.startswith("*") or name.startswith(core))
            and (glob.endswith("*") or name.endswith(core))
            and ("*" in glob or name == core)
        ):
            return True
    return False
