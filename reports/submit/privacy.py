"""Find what names a host, its user or their folders in files that are about to be published."""

import contextlib
import getpass
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.errors import NotFitToSubmit
from suite.files.cache import home
from suite.records.redaction import public

_TEXT: Final = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?')  # of JSON; a key has a colon after it
_FIELD: Final = re.compile(r"[\w.]+")  # a key of the format, which names nobody
_GPU: Final = re.compile(r"\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{27}")
_PATH: Final = re.compile(r"(?<![\w.>-])(?<!:/)/(?!(?:home|Users)/USER\b)([A-Za-z_][\w.+@-]*)/")
# Every machine has these folders. env_check stores where drivers and libraries lie in them.
_OF_ANY_SYSTEM: Final = frozenset(
    {"bin", "dev", "etc", "lib", "lib32", "lib64", "opt", "proc", "run", "sbin", "sys", "tmp", "usr", "var"}
)
# Where packages were built; messages of Warp, torch and NCCL name their sources there.
_OF_PACKAGES: Final = frozenset({"builds", "pytorch", "__w"})
# Users that images and cloud machines come with.
_NOBODY: Final = frozenset({"root", "user", "admin", "ubuntu", "debian", "nvidia", "runner", "nobody"})
_SHORT: Final = 3  # a name with so few characters may be any word
_SHOWN: Final = 100  # characters of a text in a message


@dataclass(frozen=True, kw_only=True)
class Private:
    """A text in a file that must not be published."""

    path: Path
    line: int
    why: str
    text: str


def refuse_private(folder: Path, files: Sequence[Path]) -> None:
    """Read every file.

    Raises:
        NotFitToSubmit: one of them names the machine, its user, a folder of theirs, or a GPU; the message has file and
            line of each place.
    """
    found = list(private_texts(files))
    if found:
        listed = "\n".join(f"{one.path.relative_to(folder)} line {one.line} {one.why}: {one.text}" for one in found)
        raise NotFitToSubmit(
            f"{listed}\nNothing was copied from {folder}: what is published stays public. Put a word such as HOST in"
            " the place of each name, in these texts only and never in a number, and run the same command again."
        )


def private_texts(files: Sequence[Path]) -> Iterator[Private]:
    """Yield each text of JSON files that names somebody or some machine."""
    users = _user_names()
    known: dict[str, str | None] = {}  # most texts are there many times
    for path in files:
        if path.suffix != ".json":
            continue  # a picture
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for quoted, colon in _TEXT.findall(line):
                if quoted not in known:
                    known[quoted] = _fault(json.loads(quoted, strict=False), users)
                if (why := known[quoted]) and not (colon and _FIELD.fullmatch(quoted[1:-1])):
                    shown = quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}…"
                    yield Private(path=path, line=number, why=why, text=shown)


def _fault(text: str, users: Sequence[str]) -> str | None:
    if _GPU.search(text):
        return "has the number of a single GPU"
    if public(text) != text:
        return "names this host, or a folder of its user or of labscale"
    if any(re.search(rf"(?<![\w-]){re.escape(user)}(?![\w-])", text) for user in users):
        return "names its user"
    if {*_PATH.findall(text)} - _OF_ANY_SYSTEM - _OF_PACKAGES:
        return "has a path of one machine"
    return None


def _user_names() -> list[str]:
    folder = home()
    names = {folder.name} if folder else set()
    with contextlib.suppress(OSError, KeyError):  # a container's user may have no name
        names.add(getpass.getuser())
    return sorted(name for name in names if len(name) > _SHORT and name not in _NOBODY)
