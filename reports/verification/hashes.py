"""``SHA256SUMS`` of a set: every file that belongs to it, as ``sha256sum --check`` reads it."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from reports.foreign.foreign_set import bundle_paths
from reports.interference import FILE, FOLDER
from reports.verification.finding import Finding, differing
from suite.records.folders import CASES, json_files

SUMS: Final = "SHA256SUMS"
_HASH_AGAIN: Final = "Restore the file; or, if it was added on purpose, write the hashes again with --write-hashes."


def case_paths(folder: Path) -> list[Path]:
    """Raises StoreError for a folder that cannot be read: it would look as if it held no case."""
    return sorted(path for name in (CASES, "a_a", FOLDER) for path in json_files(folder / name))


def write_hashes(folder: Path) -> Path:
    lines = [f"{_sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in members(folder)]
    path = folder / SUMS
    path.write_text("".join(lines), encoding="utf-8")
    return path


def members(folder: Path) -> list[Path]:
    """What belongs to a set. Raw files and a report that was built there do not."""
    beside = [path for name in ("upstream.json", "noise.json", FILE) if (path := folder / name).is_file()]
    return [*case_paths(folder), *bundle_paths(folder), *beside]


def read_hashes(folder: Path) -> Mapping[str, str]:
    path = folder / SUMS
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    pairs = (line.partition(" ") for line in lines if line.strip())
    # A line that is none of sha256sum's names no file, and is missing as one.
    return {name.strip().removeprefix("*") or digest: digest for digest, _, name in pairs}


def check_hashes(folder: Path, root: Path, *, is_sealed: bool) -> Iterator[Finding]:
    """``is_sealed``: there must be hashes. A campaign that just ended has none yet.

    ``root``: what paths are said relative to.
    """
    if not (folder / SUMS).is_file():
        if is_sealed:
            yield Finding(
                where=below(folder / SUMS, root),
                what="the file",
                got="missing",
                expected="there, with the hash of every file of the set",
                next_step="Restore it; for a set that is new, write it with --write-hashes.",
            )
        return
    listed = read_hashes(folder)
    there = {path.relative_to(folder).as_posix(): path for path in members(folder)}
    for name in sorted({*listed, *there}):
        where = name if folder == root else f"{below(folder, root)}/{name}"
        if name not in there:
            yield Finding(where=where, what="the file", got="missing", expected=f"there, as {SUMS} says")
        elif name not in listed:
            yield Finding(
                where=where, what="the file", got=f"not in {SUMS}", expected="listed there", next_step=_HASH_AGAIN
            )
        else:
            digest = _sha256(there[name])
            yield from differing(where, "its SHA-256", digest, listed[name], next_step=_HASH_AGAIN)


def below(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() or "."


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
