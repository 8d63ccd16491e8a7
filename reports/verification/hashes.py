"""Which files belong to results, how they are read, and their hashes.

``SHA256SUMS`` of a set and of a version is as ``sha256sum --check`` reads it: every file, none missing, none extra.
Whoever signs it beside, as ``SHA256SUMS.sig``, does so with ``ssh-keygen``, which also checks the signature.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reports.verification.finding import Finding, Place

CASES: Final = "cases"
REPEATS: Final = "a_a"
ALONE: Final = "alone"  # copies of cases in turns
BESIDE: Final = ("upstream.json", "plan.json", "runs.log")
PAIRS, PLAN, RUN_LOG = BESIDE
MANIFEST: Final = "report.toml"  # a folder with it is a version
SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = "SHA256SUMS.sig"
LARGEST_BYTES: Final = 2 * 2**30
_HASH_AGAIN: Final = "Restore the file; or, if it was added on purpose, write the hashes again with --write-hashes."


def read_bytes(path: Path) -> bytes:
    """Raise OSError for a file that cannot be read, is too large, or is none: a pipe or a device may never end."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        if status.st_size > LARGEST_BYTES:
            raise OSError(errno.EFBIG, f"Larger than {LARGEST_BYTES / 2**30:.0f} GiB", str(path))
        return file.read()


def set_folders(folder: Path) -> list[Path]:
    """Return every set at or below a folder. A set within a set repeats its cases as a download, and is left out."""
    sets = []
    for at, folders, _ in folder.walk(on_error=_refuse):
        if CASES in folders:
            sets.append(at)
            folders.clear()
    return sorted(sets)


def case_paths(folder: Path) -> list[Path]:
    """Return the file of every case of a set. Raise OSError for a folder that cannot be read."""
    kinds = [folder / name for name in (CASES, REPEATS, ALONE) if (folder / name).is_dir()]
    walks = (walk for kind in kinds for walk in kind.walk(on_error=_refuse))
    return sorted(at / name for at, _, names in walks for name in names if name.endswith(".json"))


def _refuse(error: OSError) -> None:
    raise error


def is_version(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def members(folder: Path) -> list[Path]:
    """Return what belongs to a version or to a set. Raw files and a report that was built in a set do not."""
    if is_version(folder):
        own = {folder / SUMS, folder / SIGNATURE}
        return sorted(path for path in folder.rglob("*") if path.is_file() and path not in own)
    videos = [*sorted((folder / "videos").rglob("*")), folder / "videos.json"]
    beside = [*(folder / name for name in BESIDE), *videos]
    return [*case_paths(folder), *(path for path in beside if path.is_file())]


def write_hashes(folder: Path) -> Path:
    lines = [f"{_sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in members(folder)]
    path = folder / SUMS
    path.write_text("".join(lines), encoding="utf-8")
    return path


def read_hashes(folder: Path) -> Mapping[str, str]:
    if not (folder / SUMS).is_file():
        return {}
    lines = read_bytes(folder / SUMS).decode(errors="replace").splitlines()
    pairs = (line.partition(" ") for line in lines if line.strip())
    # A line that is none of sha256sum's names no file, and is missing as one.
    return {name.strip().removeprefix("*") or digest: digest for digest, _, name in pairs}


def is_of_hashes(finding: Finding) -> bool:
    """Return whether new hashes settle a finding."""
    return "SHA-256" in finding.what or SUMS in f"{finding.got} {finding.where} {finding.expected}"


def check_hashes(place: Place) -> None:
    """Check the hashes of a set or a version. A campaign that just ended has none yet."""
    folder = place.path
    own = place.at(folder / SUMS)
    if not own.path.is_file():
        if is_version(folder) or is_version(folder.parent):
            step = "Restore it; for new results, write it with --write-hashes."
            own.fault("the file", "missing", "there, with the hash of every file", step)
        return
    listed, there = read_hashes(folder), {path.relative_to(folder).as_posix(): path for path in members(folder)}
    for name in sorted({*listed, *there}):
        file = place.at(folder / name)
        if name not in there:
            file.fault("the file", "missing", f"there, as {own.where} says")
        elif name not in listed:
            file.fault("the file", f"not in {own.where}", "listed there", _HASH_AGAIN)
        else:
            file.same(f"its SHA-256 in {own.where}", _sha256(there[name]), listed[name], _HASH_AGAIN)


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()
