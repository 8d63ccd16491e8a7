"""Reads driver manifests as the loaders do, Vulkan's ICD manifests and GLVND's EGL vendor manifests, and judges them.

VK_ERROR_INCOMPATIBLE_DRIVER has about ten causes, and libEGL reports none of them. So this module finds and parses each
file, and loads its library in a child process. Each fault has its own word and repair.

Sources of the search: Vulkan-Loader's docs/LoaderDriverInterface.md and LoaderInterfaceArchitecture.md, libglvnd's
src/EGL/icd_enumeration.md, and for what these omit, tests with loader 1.3.239 and GLVND 1.6.0. Both ignore the
variables in a program with raised privileges, which labscale is not.
"""

import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from suite.env_check.check import Fault, Judgement, Subject
from suite.env_check.container import Container, is_folder, read_container
from suite.env_check.libraries import Library, host, library_fault, read_libraries, version_mismatch
from suite.files.input_file import read_input
from suite.files.wording import counted

Kind = Literal["vulkan", "egl"]

# The variables that change what the loader finds.
_VARIABLES: Final[Mapping[Kind, tuple[str, ...]]] = {
    "vulkan": (
        "VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES",
        "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE", "VK_LOADER_DEVICE_SELECT", "MESA_VK_DEVICE_SELECT",
        "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS",
    ),
    "egl": ("__EGL_VENDOR_LIBRARY_FILENAMES", "__EGL_VENDOR_LIBRARY_DIRS"),
}  # fmt: skip
_EGL_FOLDERS: Final = "/etc/glvnd/egl_vendor.d:/usr/share/glvnd/egl_vendor.d"
_ALL: Final = ("~all~", "*", "**")
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
_STALE_API: Final = ("", "1.0")  # the loader then hides Vulkan 1.1 and later, and so driver names and UUIDs
# Kind -> where NVIDIA's manifest is in Ubuntu, and in RHEL and Fedora, whose name containers' tools may not know.
_MANIFEST_PATHS: Final[Mapping[Kind, tuple[str, str]]] = {
    "vulkan": (
        "/usr/share/vulkan/icd.d/nvidia_icd.json",
        f"/usr/share/vulkan/icd.d/nvidia_icd.{platform.machine()}.json",
    ),
    "egl": ("/usr/share/glvnd/egl_vendor.d/10_nvidia.json",) * 2,
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
class ManifestFacts:
    kind: Kind
    driver_version: str | None  # the NVIDIA kernel driver's; None if there is none
    variables: Mapping[str, str]  # variables that are set and change what the loader finds
    folders: tuple[str, ...]  # the searched folders; empty if a variable names the files
    manifests: tuple[Manifest, ...]
    container: Container
    nvidia: Mapping[str, Library]  # the libraries of NVIDIA, whether a manifest names them or not


def read_manifests(
    kind: Kind, environ: Mapping[str, str], *, driver_version: str | None, root: Path = Path("/")
) -> ManifestFacts:
    """Read every manifest that the loader would open. ``root`` replaces ``/`` in the search, not for libraries."""
    named, folders = (_search_vulkan if kind == "vulkan" else _search_egl)(root, environ)
    manifests = [_read_file(kind, blank) for blank in named]
    # Filtered drivers are not loaded: the loader skips them too, and a user may have disabled them because they crash.
    names = [_library_name(kind, manifest) for manifest in manifests]
    libraries = read_libraries({name: SYMBOLS[kind] for name in (*names, *NVIDIA[kind]) if name}, environ)
    return ManifestFacts(
        kind=kind,
        driver_version=driver_version,
        variables={name: environ[name] for name in _VARIABLES[kind] if name in environ},
        folders=folders,
        manifests=tuple(
            replace(manifest, library=libraries[name]) if name else manifest
            for manifest, name in zip(manifests, names, strict=True)
        ),
        container=read_container(environ, root),
        nvidia={name: libraries[name] for name in NVIDIA[kind]},
    )


def _search_vulkan(root: Path, environ: Mapping[str, str]) -> tuple[list[Manifest], tuple[str, ...]]:
    """Return the manifests that the loader would open, in its order and unread, and the folders that it searches."""
    # A variable that is set but empty counts as set: the loader then finds no driver.
    override = next((name for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES") if name in environ), None)
    folders = () if override else _vulkan_folders(environ)
    variable = override or "VK_ADD_DRIVER_FILES"
    manifests: list[Manifest] = []
    for entry in filter(None, environ.get(variable, "").split(":")):  # a file or a folder of files
        path = _below(root, entry)
        manifests += _in_folder(path, variable) if is_folder(path) else [Manifest(path=str(path), source=variable)]
    for folder in folders:
        manifests += _in_folder(_below(root, folder), folder)
    return [
        replace(manifest, filtered_by=_filter(Path(manifest.path).name, environ)) for manifest in manifests
    ], folders


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


def _search_egl(root: Path, environ: Mapping[str, str]) -> tuple[list[Manifest], tuple[str, ...]]:
    names, folders = _VARIABLES["egl"]
    searched = () if names in environ else tuple(environ.get(folders, _EGL_FOLDERS).split(":"))
    named = filter(None, environ.get(names, "").split(":"))
    manifests = [Manifest(path=str(_below(root, name)), source=names) for name in named]
    for folder in filter(None, searched):
        manifests += _in_folder(_below(root, folder), folders if folders in environ else folder)
    return manifests, searched


def _in_folder(folder: Path, source: str) -> list[Manifest]:
    # The Vulkan loader reads a folder's files in no fixed order. Sorting makes reports reproducible.
    paths = sorted(folder.glob("*.json")) if is_folder(folder) else []
    return [Manifest(path=str(path), source=source) for path in paths]


def _below(root: Path, path: str | Path) -> Path:
    """Return ``path`` with ``root`` in place of ``/``. A relative path starts at the working directory."""
    return root / str(path).lstrip("/") if str(path).startswith("/") else Path(path).absolute()


def _filter(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the variable that makes the loader skip a manifest. A selected driver cannot be disabled."""
    select, disable = environ.get("VK_LOADER_DRIVERS_SELECT", ""), environ.get("VK_LOADER_DRIVERS_DISABLE", "")
    if _matches(name, select):
        return None
    if select:
        return "VK_LOADER_DRIVERS_SELECT"
    return "VK_LOADER_DRIVERS_DISABLE" if _matches(name, disable) else None


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


def _read_file(kind: Kind, blank: Manifest) -> Manifest:
    path = Path(blank.path)
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
        return _read_icd(kind, blank, json.loads(content))
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested too deeply
        return replace(blank, fault="manifest_malformed", detail=str(error))


def _read_icd(kind: Kind, blank: Manifest, document: Any) -> Manifest:
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


def faults_of(manifest: Manifest, facts: ManifestFacts) -> Iterator[Fault]:
    """Yield every fault of one manifest, in the loader's order. The loader drops a driver for any that is a failure."""
    if manifest.fault:
        yield _file_fault(manifest)
        return
    library = manifest.library
    if library is None:
        return
    if fault := library_fault(library, facts.container):
        yield replace(fault, found=f"{manifest.path}: {fault.found}")
        return
    if not library.symbols:
        wanted = " or ".join(SYMBOLS[facts.kind])
        yield Fault(
            word="symbol_missing",
            found=f"{manifest.path}: {library.path} has no {wanted}: it is not a {facts.kind} driver",
            repair=f"correct library_path in {manifest.path} (NVIDIA: {NVIDIA[facts.kind][0]}), or remove it",
        )
        return
    if mismatch := version_mismatch(library, facts.driver_version, facts.container):
        found = f"{manifest.path}: {mismatch.found}"
        yield Fault(word=mismatch.word, found=found, repair=mismatch.repair)
    if facts.kind == "vulkan" and ".".join((manifest.api_version or "").split(".")[:2]) in _STALE_API:
        yield Fault(
            word="manifest_api_version_stale",
            found=f'{manifest.path}: api_version "{manifest.api_version}", so the loader hides Vulkan 1.1 and later',
            repair=f"set api_version in {manifest.path} to the driver's own, 1.3 or later",
            verdict="warning",
        )


def _file_fault(manifest: Manifest) -> Fault:
    path, source = manifest.path, manifest.source
    restore = f"correct {path} or remove it; reinstalling the driver writes it anew"
    named = f"unset {source}, or set it to a manifest that exists" if not source.startswith("/") else f"remove {path}"
    words = {
        "manifest_missing": (f"{path} does not exist (named by {source})", named),
        "manifest_unreadable": (f"{path}: {manifest.detail}", f"chmod a+r {path}"),
        "manifest_not_json_name": (
            f"{path} does not end in .json: the loader ignores it",
            f"rename it to {path}.json",
        ),
        "manifest_empty": (f"{path} is empty", restore),
        "manifest_malformed": (f"{path} is not JSON: {manifest.detail}", restore),
        "manifest_no_icd": (f"{path} has no ICD object", restore),
        "manifest_no_library_path": (f"{path} has no ICD.library_path", restore),
        "manifest_no_api_version": (f"{path} has no ICD.api_version: the loader ignores it", restore),
        "manifest_format_version": (
            f"{path}: file_format_version {manifest.format_version}, libEGL accepts only 1.0.x",
            f'set "file_format_version": "1.0.0" in {path}',
        ),
        "manifest_library_arch": (
            f"{path}: library_arch {manifest.library_arch}, this is a {host().bits}-bit program",
            f"install the {host().bits}-bit driver, whose manifest says library_arch {host().bits}",
        ),
    }
    word = manifest.fault or ""
    found, repair = words[word]
    return Fault(word=word, found=found, repair=repair)


def usable(facts: ManifestFacts) -> tuple[Manifest, ...]:
    """Return the manifests whose drivers the loader accepts."""
    return tuple(
        manifest
        for manifest in facts.manifests
        if not manifest.filtered_by and not any(fault.verdict == "failure" for fault in faults_of(manifest, facts))
    )


def all_faults(facts: ManifestFacts) -> list[Fault]:
    """Return every fault, the most severe first: no driver is left, no NVIDIA driver is left, then the rest."""
    active = [manifest for manifest in facts.manifests if not manifest.filtered_by]
    good = usable(facts)
    single = [fault for manifest in active for fault in faults_of(manifest, facts)]
    if good:  # a 32-bit driver next to a 64-bit one is normal
        single = [fault for fault in single if fault.word != "manifest_library_arch"]
    single.sort(key=lambda fault: fault.verdict != "failure")
    if not facts.manifests:
        return [_no_manifest(facts)]
    if not active:
        return [_all_filtered(facts)]
    if facts.driver_version and not any(manifest.is_nvidia for manifest in good):
        of_nvidia = [fault for manifest in active if _names_nvidia(manifest) for fault in faults_of(manifest, facts)]
        return [*(of_nvidia or [_no_nvidia_manifest(facts)]), *(fault for fault in single if fault not in of_nvidia)]
    return [*single, *_doubled(good, facts)]


def _names_nvidia(manifest: Manifest) -> bool:
    return manifest.is_nvidia or "nvidia" in Path(manifest.path).name


def _no_manifest(facts: ManifestFacts) -> Fault:
    searched = ", ".join(facts.folders) or ", ".join(f"{name}={value!r}" for name, value in facts.variables.items())
    overriding = [name for name in facts.variables if name.startswith(("VK_DRIVER", "VK_ICD", "__EGL"))]
    return Fault(
        word="no_manifest",
        found=f"no {facts.kind} driver manifest in {searched}",
        repair=f"unset {' and '.join(overriding)}" if overriding else _manifest_repair(facts),
    )


def _manifest_repair(facts: ManifestFacts) -> str:
    """Return the next step where NVIDIA's manifest is missing, with its library or without it."""
    name = NVIDIA[facts.kind][0]
    library, (path, of_rhel) = facts.nvidia[name], _MANIFEST_PATHS[facts.kind]
    if facts.driver_version is None and facts.container.is_container:
        return facts.container.repair_without_gpus
    if library.fault == "library_missing":
        return facts.container.repair_of("graphics", name)
    if fault := library_fault(library, facts.container):
        return fault.repair
    version = ', "api_version": "1.3"' if facts.kind == "vulkan" else ""
    text = f'{{"file_format_version": "1.0.0", "ICD": {{"library_path": "{name}"{version}}}}}'
    names = path if path == of_rhel else f"{of_rhel} (RHEL, Fedora) or {path}"
    mount = f"mount the host's {names} as {path}, or " if facts.container.is_container else ""
    return f"{name} loads, so only its manifest is missing: {mount}write {path}: {text}"


def _all_filtered(facts: ManifestFacts) -> Fault:
    names = sorted({manifest.filtered_by or "" for manifest in facts.manifests})
    set_to = ", ".join(f"{name}={facts.variables[name]!r}" for name in names)
    return Fault(
        word="drivers_disabled",
        found=f"{counted(len(facts.manifests), 'driver')} found, all switched off by {set_to}",
        repair=f"unset {' and '.join(names)}",
    )


def _no_nvidia_manifest(facts: ManifestFacts) -> Fault:
    disabled = [manifest for manifest in facts.manifests if manifest.filtered_by and _names_nvidia(manifest)]
    if disabled:
        return Fault(
            word="drivers_disabled",
            found=f"{disabled[0].path} is switched off by {disabled[0].filtered_by}",
            repair=f"unset {disabled[0].filtered_by}",
        )
    return Fault(
        word="no_nvidia_manifest",
        found=f"NVIDIA driver {facts.driver_version}, but no {facts.kind} manifest names {NVIDIA[facts.kind][0]}",
        repair=_manifest_repair(facts),
    )


def _doubled(good: tuple[Manifest, ...], facts: ManifestFacts) -> Iterator[Fault]:
    """Yield drivers that two manifests name: each GPU is listed twice, and a program may use the wrong entry."""
    chooser = "VK_DRIVER_FILES" if facts.kind == "vulkan" else "__EGL_VENDOR_LIBRARY_FILENAMES"
    for position, later in enumerate(good):
        for first in good[:position]:
            repair = f"keep one: remove {later.path}, or set {chooser}={first.path}"
            if _file_name(first) == _file_name(later):
                found = f"{first.path} and {later.path} both name {_file_name(first)}"
                yield Fault(word="duplicate_driver", found=found, repair=repair, verdict="warning")
            elif first.is_nvidia and later.is_nvidia:
                names = [f"{manifest.library_path} ({manifest.path})" for manifest in (first, later)]
                found = f"two manifests name an NVIDIA driver: {' and '.join(names)}"
                yield Fault(word="conflicting_drivers", found=found, repair=repair, verdict="warning")


def _file_name(manifest: Manifest) -> str:
    """Return the library's file name: a copy in another folder is the same driver."""
    return Path((manifest.library.path if manifest.library else None) or manifest.path).name


def judge_manifests(facts: ManifestFacts) -> Judgement:
    good = usable(facts)
    of_version = f", of the kernel driver's version {facts.driver_version}" if facts.driver_version else ""
    subject = Subject(f"a manifest of every driver, its library loadable{of_version}", facts)
    faults = all_faults(facts)
    if not faults:
        return subject.ok(", ".join(f"{Path(manifest.path).name} ({manifest.library_path})" for manifest in good))
    works = bool(good) and (facts.driver_version is None or any(manifest.is_nvidia for manifest in good))
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return subject.faulty(replace(faults[0], found=faults[0].found + more, verdict="warning" if works else "failure"))
