"""Which files belong to results, and their hashes.

``SHA256SUMS`` of a set and of a version is as ``sha256sum --check`` reads it: every file, none missing, none extra.
Whoever signs it beside, as ``SHA256SUMS.sig``, does so with ``ssh-keygen``, which also checks the signature.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reports.verification.finding import Finding, Place
from suite.files.input_file import read_input
from suite.records.folders import ALONE, CASES, PLAN_FILE, RUN_LOG, TWINS, json_files

PAIRS: Final = "upstream.json"
BESIDE: Final = (PAIRS, PLAN_FILE, RUN_LOG)
MANIFEST: Final = "report.toml"  # a folder with it is a version
SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = "SHA256SUMS.sig"
_HASH_AGAIN: Final = "Restore the file; or, if it was added on purpose, write the hashes again with --write-hashes."


def case_paths(folder: Path) -> list[Path]:
    """Return the file of every case of a set. Raise StoreError for a folder that cannot be read."""
    return sorted(path for name in (CASES, TWINS, ALONE) for path in json_files(folder / name))


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
    lines = read_input(folder / SUMS).decode(errors="replace").splitlines()
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
    return hashlib.sha256(read_input(path)).hexdigest()
