"""Reads JSON files and checks their shape, and replaces them in one step."""

import json
import reprlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from suite.errors import StoreError
from suite.files.input_file import read_input
from suite.schema.stored import stored_name

STRICT: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
STORED: Final = ConfigDict(**STRICT, alias_generator=stored_name)
_SHOWN: Final = 3  # wrong places that a message names
_ADAPTERS: Final[dict[type, TypeAdapter[Any]]] = {}


def read_json[T](path: Path, shape: type[T], *, next_step: str) -> T | None:
    """Return the file's content; None if there is no file. ``shape`` is a type that pydantic knows.

    Raises:
        StoreError: it cannot be read, or does not have this shape.
    """
    try:
        return _adapter(shape).validate_json(read_input(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Check the path and its permissions.") from error
    except ValidationError as error:
        raise StoreError(f"{path} is not readable: {explained(error)}. {next_step}") from error


def _adapter[T](shape: type[T]) -> TypeAdapter[T]:
    """The same for a type: one takes far longer to make than to read a file with."""
    if shape not in _ADAPTERS:
        _ADAPTERS[shape] = TypeAdapter(shape)
    return _ADAPTERS[shape]


def read_json_or_none[T](path: Path, shape: type[T]) -> T | None:
    """Return the content of a file that can be made again; None if it is missing, damaged, or has another shape."""
    try:
        return read_json(path, shape, next_step="")
    except StoreError:
        return None


def read_json_lines[T](path: Path, shape: TypeAdapter[T]) -> tuple[list[T], str | None]:
    """Return the valid lines of a file, and why the first invalid line is none, or None.

    An incomplete last line is skipped: its writer was killed. Raises OSError if the file cannot be read.
    """
    events: list[T] = []
    corrupt = None
    *lines, last = read_input(path).split(b"\n")
    for number, line in enumerate((*lines, last) if last else lines, start=1):
        try:
            events.append(shape.validate_json(line))
        except ValidationError as error:
            if number <= len(lines) and corrupt is None:
                corrupt = f"{path.name} line {number} is not an event: {explained(error)}"
    return events, corrupt


def replace_json(document: Any, path: Path, *, sort_keys: bool = False) -> None:
    """Replace the file ``path`` by ``document`` in one step.

    Raises:
        StoreError: it cannot be written; the old file is unchanged.
    """
    partial = path.with_suffix(".tmp")
    try:
        try:
            partial.write_text(json.dumps(document, indent=1, sort_keys=sort_keys) + "\n", encoding="utf-8")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error.strerror}. Make room or give access, then run the same command again:"
            " what has finished is kept."
        ) from error


def explained(error: ValidationError, *, skip: int = 0, name: Callable[[str], str] = str) -> str:
    """Name the first wrong places, as ``ranks.0.samples.iteration_time_s.3: … (got …)``.

    ``skip``: number of first steps into the document that are left out. ``name`` gives each step its stored name.
    """
    shown = [
        f"{'.'.join(name(str(step)) for step in item['loc'][skip:]) or 'document'}: {item['msg']}"
        f" (got {reprlib.repr(item['input'])})"
        for item in error.errors(include_url=False)[:_SHOWN]
    ]
    more = error.error_count() - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")
