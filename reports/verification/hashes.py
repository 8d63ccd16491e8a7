"""``SHA256SUMS`` of a set and of a version, as ``sha256sum --check`` reads it: every file, none missing, none extra."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from reports.verification.finding import Finding, differing
from reports.verification.regular_file import read_bytes
from reports.verification.run_log import RUN_LOG
from reports.verification.samples.stored import PLAN, case_paths

MANIFEST: Final = "report.toml"  # a folder with it is a version
SUMS: Final = "SHA256SUMS"
SIGNATURE: Final = "SHA256SUMS.sig"
VIDEOS: Final = "videos"
VIDEOS_LIST: Final = "videos.json"
_HASH_AGAIN: Final = "Restore the file; or, if it was added on purpose, write the hashes again with --write-hashes."


def is_version(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def members(folder: Path) -> list[Path]:
    """Return what belongs to a version or to a set. Raw files and a report that was built in a set do not."""
    if is_version(folder):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return [path for path in files if path.parent != folder or path.name not in {SUMS, SIGNATURE}]
    beside = [path for name in ("upstream.json", PLAN, RUN_LOG) if (path := folder / name).is_file()]
    return [*case_paths(folder), *beside, *_of_videos(folder)]


def _of_videos(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / VIDEOS_LIST, *(folder / VIDEOS).rglob("*")) if path.is_file())


def write_hashes(folder: Path) -> Path:
    lines = [f"{_sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in members(folder)]
    path = folder / SUMS
    path.write_text("".join(lines), encoding="utf-8")
    return path


def read_hashes(folder: Path) -> Mapping[str, str]:
    path = folder / SUMS
    if not path.is_file():
        return {}
    lines = read_bytes(path).decode(errors="replace").splitlines()
    pairs = (line.partition(" ") for line in lines if line.strip())
    # A line that is none of sha256sum's names no file, and is missing as one.
    return {name.strip().removeprefix("*") or digest: digest for digest, _, name in pairs}


def is_of_hashes(finding: Finding) -> bool:
    """Return whether a finding is about hashes or a signature, which new hashes settle."""
    return "SHA-256" in finding.what or SUMS in f"{finding.got} {finding.where} {finding.expected}"


def check_hashes(folder: Path, *, root: Path) -> Iterator[Finding]:
    """Check the hashes of a set or a version. A campaign that just ended has none yet."""
    is_published = is_version(folder) or is_version(folder.parent)
    if not (folder / SUMS).is_file():
        if is_published:
            where = (folder / SUMS).relative_to(root).as_posix()
            expected = f"there, with the hash of every file of the {'version' if is_version(folder) else 'set'}"
            step = "Restore it; for new results, write it with --write-hashes."
            yield Finding(where=where, what="the file", got="missing", expected=expected, next_step=step)
        return
    yield from _check_listed(folder, root, members(folder))


def _check_listed(folder: Path, root: Path, found: Sequence[Path]) -> Iterator[Finding]:
    listed = read_hashes(folder)
    there = {path.relative_to(folder).as_posix(): path for path in found}
    sums = (folder / SUMS).relative_to(root).as_posix()
    for name in sorted({*listed, *there}):
        where = (folder / name).relative_to(root).as_posix() if folder != root else name
        if name not in there:
            yield Finding(where=where, what="the file", got="missing", expected=f"there, as {sums} says")
        elif name not in listed:
            got, expected = f"not in {sums}", "listed there"
            yield Finding(where=where, what="the file", got=got, expected=expected, next_step=_HASH_AGAIN)
        else:
            digest = _sha256(there[name])
            yield from differing(where, f"its SHA-256 in {sums}", digest, listed[name], next_step=_HASH_AGAIN)


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()
