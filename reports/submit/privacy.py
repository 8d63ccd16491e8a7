"""Keep what names a machine, its user or their folders out of files that are about to be published.

A text that a person or a foreign program wrote is published only if all of its words are known: numbers, words of
labscale's own sources, names of hardware that the record has anyway, and paths of drivers. Any other text is replaced
by its fault word. What is no text, such as a setting, is refused if it looks like a name, an address or a secret.
"""

import contextlib
import functools
import getpass
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from detect_secrets.core.scan import scan_line
from detect_secrets.settings import default_settings

from suite.errors import NotFitToSubmit
from suite.files.cache import home
from suite.files.input_file import read_input
from suite.files.paths import ROOT
from suite.records.redaction import public
from suite.records.store import layout
from suite.statistics.stopping_rule import CUT_OFF, is_cut_off

_FREE_TEXTS: Final = frozenset({"found", "reason", "error", "telemetry_note", "ended_because", "notes"})
_WORD: Final = re.compile(r"[A-Za-z][\w.+-]*")
_PLAIN: Final = re.compile(
    r"[<>~±+-]*\d{1,9}(?:[.,x]\d{1,9}){0,2}(?:%|[A-Za-zµ/]{1,4})?|GB/s|µs"  # a number, its unit, or a version
    r"|/(?:usr/(?:lib|local/nvidia|share)|lib\d*|dev/nvidia|etc/(?:vulkan|glvnd))[\w.+/-]*"  # a file of a driver
    r"|(?:CACHE|LABSCALE)(?:/[\w.+-]+){0,4}"  # see suite.records.redaction
)
_BETWEEN: Final = re.compile(r"[\s(),;]+")
_HARDWARE: Final = ("cpu_model", "os", "kernel", "driver_version", "cuda_driver_version", "suite_version")
_SOURCES: Final = frozenset({".py", ".toml"})
_AROUND: Final = "[]{}<>:.!?'\"`|%"
_HIDDEN: Final = "not published"
_QUOTED: Final = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?')  # of JSON; a key has a colon after it
_VERSION: Final = re.compile(r'\s*"versions\.[\w.-]+": "\d[\w.+]*",?')  # one of four numbers is no address
_ERROR: Final = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b")
_FIELD: Final = re.compile(r"[\w.]+")  # a key of the format, which names nobody
_PATH: Final = re.compile(r"(?<![\w.>-])(?<!:/)/(?!(?:home|Users)/USER\b)([A-Za-z_][\w.+@-]*)/")
# Every machine has these folders. env_check stores where drivers and libraries lie in them.
_OF_ANY_SYSTEM: Final = frozenset({"bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "sys", "tmp", "usr"})
# Where packages were built; messages of Warp, torch and NCCL name their sources there.
_OF_PACKAGES: Final = frozenset({"builds", "pytorch", "__w"})
_SECRET: Final = (
    (re.compile(r"\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{27}", re.IGNORECASE), "has the number of a single GPU"),
    (re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"), "has a network address"),
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:])", re.IGNORECASE), "has a network address"),
    (re.compile(r"(?<![\w:])(?=[\da-f:]*::|(?:[\da-f]+:){7})[\da-f:]{3,}", re.IGNORECASE), "has a network address"),
    (re.compile(r"\b[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.\d\b", re.IGNORECASE), "has the place of a device"),
    (re.compile(r"[\w.+-]+@[\w-]+\.\w"), "has an e-mail address"),
    (re.compile(r"(?:secret|passw(?:or)?d|token|api_?key)\w*\s*[=:]|Bearer\s", re.IGNORECASE), "has a secret"),
    (re.compile(r"\b[A-Za-z]:\\|^\\\\\w"), "has a path of one machine"),
)  # fmt: skip
# Detectors that take a hash, or a word before "=", for a secret.
_GUESSES: Final = ("Base64HighEntropyString", "HexHighEntropyString", "KeywordDetector")
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


@dataclass(frozen=True, kw_only=True)
class Published:
    """The content of each file as it will be public, and its texts."""

    content: Mapping[Path, bytes]
    texts: frozenset[str]  # kept, since all of their words are known
    replaced: int


def published(files: Sequence[Path]) -> Published:
    """Read every file, and replace each text of JSON files that has an unknown word. Raises OSError."""
    content: dict[Path, bytes] = {}
    texts: set[str] = set()
    replaced = 0
    for path in files:
        content[path] = read_input(path)
        if path.suffix == ".json":
            document = json.loads(content[path])
            known = _source_words() | _words_of_hardware(document)
            hidden = 0
            for owner, key, text in _free_texts(document):
                if _is_plain(text, known):
                    texts.add(text)
                else:
                    owner[key] = _fault_word(owner, key, text, known)
                    hidden += 1
            if hidden:
                content[path] = (layout(document) + "\n").encode()
            replaced += hidden
    return Published(content=content, texts=frozenset(texts), replaced=replaced)


def _free_texts(value: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield each text with what contains it: an object and a key, or a list and a place in it."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _FREE_TEXTS and isinstance(item, str):
                yield value, key, item
            elif key in _FREE_TEXTS and isinstance(item, list):
                yield from ((item, place, text) for place, text in enumerate(item) if isinstance(text, str))
            else:
                yield from _free_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _free_texts(item)


@functools.cache
def _source_words() -> frozenset[str]:
    """The words of labscale's own code: a text made of them says nothing of a machine that is not public."""
    sources = (path for folder in ("suite", "tasks") for path in (ROOT / folder).rglob("*") if path.suffix in _SOURCES)
    return frozenset(_words("\n".join(path.read_text(encoding="utf-8") for path in sources)))


def _words_of_hardware(value: Any) -> frozenset[str]:
    """The words of models and versions in the records of a document."""
    if isinstance(value, list):
        return frozenset[str]().union(*map(_words_of_hardware, value))
    if not isinstance(value, dict):
        return frozenset()
    own = (value[key] for key in _HARDWARE if isinstance(value.get(key), str))
    gpus = (
        gpu["name"] for gpu in value.get("gpus") or () if isinstance(gpu, dict) and isinstance(gpu.get("name"), str)
    )
    return frozenset(_words(" ".join((*own, *gpus)))).union(*map(_words_of_hardware, value.values()))


def _words(text: str) -> Iterator[str]:
    return (word.rstrip(_AROUND).lower() for word in _WORD.findall(text))


def _is_plain(text: str, known: frozenset[str]) -> bool:
    words = (word.strip(_AROUND).removesuffix("'s") for word in _BETWEEN.split(text))
    return all(not word or word.lower() in known or _PLAIN.fullmatch(word) for word in words)


def _fault_word(owner: Any, key: Any, text: str, known: frozenset[str]) -> str:
    """What stands for a text: a check's fault or verdict, a type of error, or the outcome of a run."""
    if key == "ended_because" and is_cut_off(text):
        return CUT_OFF
    errors: list[str] = [word for word in _ERROR.findall(text) if _is_plain(word, known)]
    named = (owner.get("fault"), owner.get("verdict"), owner.get("outcome")) if isinstance(owner, dict) else ()
    return next((str(word) for word in (*errors, *named) if word), _HIDDEN)


def refuse_private(folder: Path, content: Mapping[Path, bytes]) -> None:
    """Look into every file.

    Raises:
        NotFitToSubmit: one of them names the machine, its user, a folder of theirs, or a GPU; the message has file and
            line of each place.
    """
    private = list(private_texts(content))
    if private:
        listed = "\n".join(
            f"{item.path.relative_to(folder)} line {item.line} {item.why}: {item.text}" for item in private
        )
        raise NotFitToSubmit(
            f"{listed}\nNothing was copied from {folder}: what is published stays public. Put a word such as HOST in"
            " the place of each name, in these texts only and never in a number, and run the same command again."
        )


def private_texts(content: Mapping[Path, bytes]) -> Iterator[Private]:
    """Yield each text of JSON files and the run log that names somebody or some machine."""
    users, texts = _user_names(), (path for path in content if path.suffix in {".json", ".log"})  # others are pictures
    known: dict[str, str | None] = {}  # most texts are there many times
    with default_settings() as scanner:
        scanner.disable_plugins(*_GUESSES)
        for path in texts:
            for number, line in enumerate(content[path].decode().splitlines(), start=1):
                for quoted, colon in _QUOTED.findall(line) if not _VERSION.fullmatch(line) else ():
                    if quoted not in known:
                        known[quoted] = _fault(json.loads(quoted, strict=False), users)
                    if (why := known[quoted]) and not (colon and _FIELD.fullmatch(quoted[1:-1])):
                        shown = quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}…"
                        yield Private(path=path, line=number, why=why, text=shown)


def _fault(text: str, users: Sequence[str]) -> str | None:
    if why := next((why for pattern, why in _SECRET if pattern.search(text)), None):
        return why
    if secret := next(scan_line(text), None):
        return f"has a secret ({secret.type})"
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
