"""Put a set into a version: files, ``report.toml``, the figures and hashes, all of it or nothing."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from reports.figures import tables
from reports.sets.manifest import MANIFEST, Entry
from reports.submit.target import Target
from reports.verification.hashes import SIGNATURE, write_hashes
from reports.verification.weaknesses import WEAKNESSES
from suite.records.folders import CASES

# The only finding that counts the sets of a version; the submitted one has its plan.
_WITHOUT_PLAN: Final = re.compile(r'^(got = "missing in \d+ of )(\d+)( sets")$', re.MULTILINE)


@contextmanager
def built(source: Path, content: Mapping[Path, bytes], target: Target) -> Iterator[Path]:
    """Yield the version with the new set, in a temporary folder beside the versions. Raises OSError.

    The folder has the version's name, and is gone after the block unless ``put_in_place`` moved it.
    """
    with TemporaryDirectory(prefix=".submit-", dir=target.version.parent, ignore_cleanup_errors=True) as temporary:
        version = Path(temporary) / target.version.name
        if target.version.is_dir():
            shutil.copytree(target.version, version, symlinks=True)
        _write(source, content, version / target.entry.folder)
        _count_in_weaknesses(version, target.entry)
        with (version / MANIFEST).open("a", encoding="utf-8") as manifest:
            manifest.write(manifest_entry(target.entry, is_first=not manifest.tell()))
        tables.write(version)
        write_hashes(version / target.entry.folder)
        (version / SIGNATURE).unlink(missing_ok=True)  # it is of the hashes before
        write_hashes(version)
        yield version


def put_in_place(version: Path, final: Path) -> None:
    """Move the built version to its place. What was there stays if that fails. Raises OSError."""
    if not final.exists():
        version.rename(final)
        return
    before = version.with_name(f"{version.name}-before")
    final.rename(before)
    try:
        version.rename(final)
    except BaseException:
        before.rename(final)
        raise


def manifest_entry(entry: Entry, *, is_first: bool) -> str:
    """Return the ``[[set]]``. JSON writes a line of text as TOML reads it."""
    values = {name: value for name, value in entry.model_dump(exclude_defaults=True).items() if value is not None}
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    return "\n".join([*([] if is_first else [""]), "[[set]]", *lines, ""])


def _write(source: Path, content: Mapping[Path, bytes], folder: Path) -> None:
    for path, text in content.items():
        copy = folder / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(text)


def _count_in_weaknesses(version: Path, entry: Entry) -> None:
    """Count the new set in the known weakness that says how many sets of the version have no plan."""
    path = version / WEAKNESSES
    if not path.is_file():
        return
    before = sum((one / CASES).is_dir() for one in version.iterdir() if one.name != entry.folder)

    def counted_anew(match: re.Match[str]) -> str:
        return f"{match[1]}{before + 1}{match[3]}" if int(match[2]) == before else match[0]

    path.write_text(_WITHOUT_PLAN.sub(counted_anew, path.read_text(encoding="utf-8")), encoding="utf-8")
