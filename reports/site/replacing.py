"""Puts a finished folder of pages in the place of an earlier one. What anybody else put there is never removed."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reports.sets.file_errors import told_when_unwritable
from suite.errors import ReportError

LIST: Final = "assets/files.txt"  # paths of all files that labscale wrote, a line each
STAMP: Final = "assets/inputs.sha256"  # what ``publish`` adds to the folder of a version


def check_replaceable(out_dir: Path) -> None:
    """A folder is replaced only if all of it is an earlier report. Raises ReportError for any other."""
    with told_when_unwritable(out_dir):
        if not out_dir.exists():
            return
        if not out_dir.is_dir():
            raise ReportError(f"{out_dir} is a file, so no report can be written there. Choose another folder.")
        known = {LIST, STAMP}
        if (out_dir / LIST).is_file():
            known |= {*(out_dir / LIST).read_text(encoding="utf-8").splitlines()}
        if foreign := sorted(set(files_in(out_dir)) - known):
            raise ReportError(
                f"{out_dir} holds files that are no report, and a report would replace them: {foreign[0]}"
                f"{f' and {len(foreign) - 1} more' * (len(foreign) > 1)}. Move them away, or choose a new folder."
            )


def files_in(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()]


def replace_folder(out_dir: Path, parts: Sequence[Path]) -> None:
    """Put together what ``parts`` hold. It is made beside ``out_dir``, so whoever looks there sees one or the other."""
    new, old = (out_dir.with_name(f".{out_dir.name}.{word}") for word in ("new", "old"))
    with told_when_unwritable(out_dir):
        for left in (new, old):  # by one that was killed
            shutil.rmtree(left, ignore_errors=True)
        for part in parts:
            shutil.copytree(part, new, dirs_exist_ok=True)
        names = sorted(set(files_in(new)) - {LIST, STAMP})  # one folder as a copy of another is equal to it
        (new / LIST).parent.mkdir(exist_ok=True)
        (new / LIST).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        if out_dir.exists():
            out_dir.rename(old)
        new.rename(out_dir)
        shutil.rmtree(old, ignore_errors=True)
