"""Read a file that Isaac Lab's benchmark wrote: all that is wrong in it at once, by field."""

import hashlib
import json
import reprlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from reports.sets.imported.bundle import FORMAT, SCHEMA_VERSION, Bundle
from reports.sets.imported.contradictions import contradictions
from suite.errors import ForeignResultError
from suite.files.input_file import read_input
from suite.files.wording import counted

NEXT_STEP: Final = "Take the file as `isaaclab benchmark training` wrote it, or run that benchmark again."
_SAYS_FREELY: Final = "extra"  # the one field whose keys are the producer's


@dataclass(frozen=True, kw_only=True)
class ImportedRun:
    """One file: one process of rank 0, with the samples of nobody."""

    name: str  # of the file
    sha256: str
    bundle: Bundle


def read_run(path: Path) -> ImportedRun:
    """Raises ForeignResultError with everything that is wrong in the file, field by field."""
    try:
        content = read_input(path)
    except OSError as error:
        raise ForeignResultError(f"{path} cannot be read: {error.strerror}. Check the path.") from error
    return ImportedRun(name=path.name, sha256=hashlib.sha256(content).hexdigest(), bundle=parse(content, path))


def parse(content: bytes, path: Path) -> Bundle:
    """``path``: to name the file by. Raises ForeignResultError."""
    try:
        stored = json.loads(content, object_pairs_hook=_without_repeated_keys)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise ForeignResultError(f"{path} is no JSON file: {error}. {NEXT_STEP}") from error
    _check_kind(stored, path)
    try:
        bundle = Bundle.model_validate_json(json.dumps(stored))
    except ValidationError as error:
        raise _refusal(path, list(dict.fromkeys(map(_sentence, error.errors(include_url=False))))) from None
    found = list(contradictions(bundle))
    if found:
        raise _refusal(path, found)
    return bundle


def _without_repeated_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice} is there twice, so it is not known which value holds")
    return found


def _check_kind(stored: Any, path: Path) -> None:
    """Before the fields, which another version or another kind of bundle has other ones of."""
    if not isinstance(stored, dict):
        raise ForeignResultError(f"{path} holds a {type(stored).__name__}; allowed is an object: {FORMAT}. {NEXT_STEP}")
    version = stored.get("schema_version", "missing")
    if version != SCHEMA_VERSION:
        raise ForeignResultError(
            f"{path}: schema_version is {version!r}; allowed is {SCHEMA_VERSION!r}."
            " Isaac Lab 3.0 writes that; use a labscale that knows the other, or run the benchmark with Isaac Lab 3.0."
        )
    if "learning" not in stored and ({"reward", "phases"} & stored.keys() or "runtime" in stored):
        raise ForeignResultError(
            f"{path}: learning is missing; allowed are bundles of `isaaclab benchmark training`, and not of startup,"
            " runtime or play, which train nothing."
        )


def _sentence(details: ErrorDetails) -> str:
    location = details["loc"][:2] if details["loc"][:1] == (_SAYS_FREELY,) else details["loc"]
    field = ".".join(map(str, location)) or "the file"
    if details["type"] == "missing":
        return f"{field} is missing; it must be there"
    if details["type"] == "extra_forbidden":
        return f"{field} is {reprlib.repr(details['input'])}; schema {SCHEMA_VERSION} has no such field"
    if len(location) != len(details["loc"]):
        return f"{field} is {reprlib.repr(details['input'])}; it must be a finite number, a text, true or false"
    return f"{field} is {reprlib.repr(details['input'])}; it {_wanted(details['msg'])}"


def _wanted(message: str) -> str:
    """``must be greater than 0`` of ``Input should be greater than 0``."""
    return "must" + message[message.index("should") + len("should") :] if "should" in message else f"({message})"


def _refusal(path: Path, found: Sequence[str]) -> ForeignResultError:
    return ForeignResultError("\n".join(_lines(path, found)))


def _lines(path: Path, found: Sequence[str]) -> Iterator[str]:
    count = counted(len(found), "fault")
    yield f"{path} is no {FORMAT}: {count}. {NEXT_STEP}"
    yield from (f"  {sentence}." for sentence in found)
