"""JSON files beside results: read and checked for their shape, and written anew in one step."""

import json
import reprlib
from pathlib import Path
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from suite.errors import StoreError

STRICT: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_SHOWN: Final = 3  # places that are wrong


def parsed(content: bytes) -> Any:
    """What JSON text says. Raises ValueError for what is none, with why."""
    try:
        return json.loads(content.decode())
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json[T](path: Path, shape: type[T], *, next_step: str) -> T | None:
    """What is in the file; None where there is none. ``shape`` is one that pydantic knows.

    Raises:
        StoreError: it cannot be read, or is not of this shape.
    """
    try:
        return TypeAdapter(shape).validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}. Check the path and its permissions.") from error
    except ValidationError as error:
        raise StoreError(f"{path} is not readable: {explained(error)}. {next_step}") from error


def read_json_or_none[T](path: Path, shape: type[T]) -> T | None:
    """What is in a file that can be made again: None where it is missing, damaged, or of another labscale's shape."""
    try:
        return read_json(path, shape, next_step="")
    except StoreError:
        return None


def replace_json(document: Any, path: Path, *, sort_keys: bool = False) -> None:
    """Put ``document`` in the place of what ``path`` holds, in one step.

    Raises:
        StoreError: it cannot be written; what was there is there still.
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


def fault_of(document: object, shape: type) -> str | None:
    """What of a document that was read already is not of the shape, in one line."""
    try:
        TypeAdapter(shape).validate_python(document, strict=True)
    except ValidationError as error:
        return explained(error)
    return None


def explained(error: ValidationError, *, skip: int = 0) -> str:
    """The first places that are wrong, as ``ranks.0.samples.iteration_time_s.3: … (got …)``.

    ``skip``: how many steps into the document are no concern of the reader's.
    """
    shown = [
        f"{'.'.join(map(str, item['loc'][skip:])) or 'document'}: {item['msg']} (got {reprlib.repr(item['input'])})"
        for item in error.errors(include_url=False)[:_SHOWN]
    ]
    more = error.error_count() - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")
