"""Judges the driver manifests: each fault has its own word and repair. These functions are pure."""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.env_check.check import Fault, Judgement, Subject
from suite.env_check.graphics.icd_manifests import NVIDIA, SYMBOLS, Manifest, ManifestsSeen
from suite.env_check.graphics.icd_search import Kind
from suite.env_check.libraries.driver_libraries import version_mismatch
from suite.env_check.libraries.elf import host
from suite.env_check.libraries.library import describe, repair
from suite.files.wording import counted

_STALE_API: Final = ("", "1.0")  # the loader then hides Vulkan 1.1 and later, and so driver names and UUIDs
# Kind -> where NVIDIA's manifest is in Ubuntu, and in RHEL and Fedora, whose name containers' tools may not know.
_MANIFESTS: Final[Mapping[Kind, tuple[str, str]]] = {
    "vulkan": (
        "/usr/share/vulkan/icd.d/nvidia_icd.json",
        f"/usr/share/vulkan/icd.d/nvidia_icd.{platform.machine()}.json",
    ),
    "egl": ("/usr/share/glvnd/egl_vendor.d/10_nvidia.json",) * 2,
}


def faults_of(manifest: Manifest, seen: ManifestsSeen) -> Iterator[Fault]:
    """Yield every fault of one manifest, in the loader's order. The loader drops a driver for any that is a failure."""
    if manifest.fault:
        yield _file_fault(manifest)
        return
    library = manifest.library
    if library is None:
        return
    if library.fault:
        text = f"{manifest.path}: {describe(library)}"
        yield Fault(word=library.fault, found=text, repair=repair(library, seen.container))
        return
    if not library.symbols:
        wanted = " or ".join(SYMBOLS[seen.kind])
        yield Fault(
            word="symbol_missing",
            found=f"{manifest.path}: {library.path} has no {wanted}: it is not a {seen.kind} driver",
            repair=f"correct library_path in {manifest.path} (NVIDIA: {NVIDIA[seen.kind][0]}), or remove it",
        )
        return
    if mismatch := version_mismatch(library, seen.driver_version, seen.container):
        found = f"{manifest.path}: {mismatch.found}"
        yield Fault(word=mismatch.word, found=found, repair=mismatch.repair)
    if seen.kind == "vulkan" and _is_stale(manifest.api_version or ""):
        yield Fault(
            word="manifest_api_version_stale",
            found=f'{manifest.path}: api_version "{manifest.api_version}", so the loader hides Vulkan 1.1 and later',
            repair=f"set api_version in {manifest.path} to the driver's own, 1.3 or later",
            verdict="warning",
        )


def _is_stale(api_version: str) -> bool:
    return ".".join(api_version.split(".")[:2]) in _STALE_API


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


def usable(seen: ManifestsSeen) -> tuple[Manifest, ...]:
    """Return the manifests whose drivers the loader accepts."""
    return tuple(
        manifest
        for manifest in seen.manifests
        if not manifest.filtered_by and not any(fault.verdict == "failure" for fault in faults_of(manifest, seen))
    )


def all_faults(seen: ManifestsSeen) -> list[Fault]:
    """Return every fault, the most severe first: no driver is left, no NVIDIA driver is left, then the rest."""
    active = [manifest for manifest in seen.manifests if not manifest.filtered_by]
    good = usable(seen)
    single = [fault for manifest in active for fault in faults_of(manifest, seen)]
    if good:  # a 32-bit driver next to a 64-bit one is normal
        single = [fault for fault in single if fault.word != "manifest_library_arch"]
    single.sort(key=lambda fault: fault.verdict != "failure")
    if not seen.manifests:
        return [_no_manifest(seen)]
    if not active:
        return [_all_filtered(seen)]
    if seen.driver_version and not any(manifest.is_nvidia for manifest in good):
        of_nvidia = [fault for manifest in active if _names_nvidia(manifest) for fault in faults_of(manifest, seen)]
        return [*(of_nvidia or [_no_nvidia_manifest(seen)]), *(fault for fault in single if fault not in of_nvidia)]
    return [*single, *_doubled(good, seen)]


def _names_nvidia(manifest: Manifest) -> bool:
    return manifest.is_nvidia or "nvidia" in Path(manifest.path).name


def _no_manifest(seen: ManifestsSeen) -> Fault:
    searched = ", ".join(seen.folders) or ", ".join(f"{name}={value!r}" for name, value in seen.variables.items())
    overriding = [name for name in seen.variables if name.startswith(("VK_DRIVER", "VK_ICD", "__EGL"))]
    return Fault(
        word="no_manifest",
        found=f"no {seen.kind} driver manifest in {searched}",
        repair=f"unset {' and '.join(overriding)}" if overriding else _manifest_repair(seen),
    )


def _manifest_repair(seen: ManifestsSeen) -> str:
    """Return the next step where NVIDIA's manifest is missing, with its library or without it."""
    name = NVIDIA[seen.kind][0]
    library, (path, of_rhel) = seen.nvidia[name], _MANIFESTS[seen.kind]
    if seen.driver_version is None and seen.container.is_container:
        return seen.container.repair_without_gpus
    if library.fault == "library_missing":
        return seen.container.repair_of("graphics", name)
    if library.fault:
        return repair(library, seen.container)
    version = ', "api_version": "1.3"' if seen.kind == "vulkan" else ""
    text = f'{{"file_format_version": "1.0.0", "ICD": {{"library_path": "{name}"{version}}}}}'
    names = path if path == of_rhel else f"{of_rhel} (RHEL, Fedora) or {path}"
    mount = f"mount the host's {names} as {path}, or " if seen.container.is_container else ""
    return f"{name} loads, so only its manifest is missing: {mount}write {path}: {text}"


def _all_filtered(seen: ManifestsSeen) -> Fault:
    names = sorted({manifest.filtered_by or "" for manifest in seen.manifests})
    set_to = ", ".join(f"{name}={seen.variables[name]!r}" for name in names)
    return Fault(
        word="drivers_disabled",
        found=f"{counted(len(seen.manifests), 'driver')} found, all switched off by {set_to}",
        repair=f"unset {' and '.join(names)}",
    )


def _no_nvidia_manifest(seen: ManifestsSeen) -> Fault:
    disabled = [manifest for manifest in seen.manifests if manifest.filtered_by and _names_nvidia(manifest)]
    if disabled:
        return Fault(
            word="drivers_disabled",
            found=f"{disabled[0].path} is switched off by {disabled[0].filtered_by}",
            repair=f"unset {disabled[0].filtered_by}",
        )
    return Fault(
        word="no_nvidia_manifest",
        found=f"NVIDIA driver {seen.driver_version}, but no {seen.kind} manifest names {NVIDIA[seen.kind][0]}",
        repair=_manifest_repair(seen),
    )


def _doubled(good: tuple[Manifest, ...], seen: ManifestsSeen) -> Iterator[Fault]:
    """Yield drivers that two manifests name: each GPU is listed twice, and a program may use the wrong entry."""
    chooser = "VK_DRIVER_FILES" if seen.kind == "vulkan" else "__EGL_VENDOR_LIBRARY_FILENAMES"
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


def blocking_fault(seen: ManifestsSeen) -> Fault | None:
    """Return the most severe fault for which the loader drops a driver."""
    return next((fault for fault in all_faults(seen) if fault.verdict == "failure"), None)


def judge_manifests(seen: ManifestsSeen) -> Judgement:
    good = usable(seen)
    of_version = f", of the kernel driver's version {seen.driver_version}" if seen.driver_version else ""
    subject = Subject(f"a manifest of every driver, its library loadable{of_version}", seen)
    faults = all_faults(seen)
    if not faults:
        return subject.ok(", ".join(f"{Path(manifest.path).name} ({manifest.library_path})" for manifest in good))
    works = bool(good) and (seen.driver_version is None or any(manifest.is_nvidia for manifest in good))
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return subject.faulty(replace(faults[0], found=faults[0].found + more, verdict="warning" if works else "failure"))
