"""Reads TOML files strictly: reports all faults at once, each with its line, the value and what is allowed."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Strict, ValidationError
from pydantic_core import ErrorDetails

from suite.errors import MatrixError
from suite.files.input_file import check_depth, read_input
from suite.files.wording import counted

LARGEST_BYTES: Final = 2**20  # labscale's own files have 23 kB at most

STRINGS: Final = (r'"{3}(?:\\.|[^\\])*?"{3,5}', r"'{3}.*?'{3,5}", r'"(?:\\.|[^"\\])*"', r"'[^']*'")
TOKENS: Final = re.compile("|".join([*STRINGS, r"#[^\n]*", r"[][{}\n]"]), re.DOTALL)  # also comments, and what nests
type Location = tuple[int | str, ...]  # keys and list indices from the root of the document
type Fault = tuple[Location, str]  # where it is, and what is wrong there
# Strict pydantic requires a tuple, but TOML gives a list; the elements stay strict.
type Tuple[T] = Annotated[tuple[T, ...], Strict(strict=False)]


def _not_empty[T](items: tuple[T, ...]) -> tuple[T, ...]:
    """Refuse an empty tuple. Unlike pydantic's own min_length it does not count faulty items as missing."""
    if not items:
        raise ValueError("should have at least one item")
    return items


type NonEmptyTuple[T] = Annotated[tuple[T, ...], Strict(strict=False), AfterValidator(_not_empty)]


class TomlTable(BaseModel):
    """A table with fixed keys: unknown keys and values of another type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


@dataclass(frozen=True, kw_only=True)
class TomlFile:
    """A parsed file that knows the line of each key."""

    path: Path
    data: dict[str, Any]
    text: str

    @cached_property
    def lines(self) -> dict[Location, int]:
        """Line of each key. Only messages need them, and finding them takes much longer than reading the file."""
        return _key_lines(self.text)

    def validate[T: TomlTable](self, model: type[T]) -> T:
        """Return the document as ``model``. Raises MatrixError with every problem found."""
        try:
            return model.model_validate(self.data)
        except ValidationError as error:
            raise self.error(_fault(model, details) for details in error.errors(include_url=False)) from None

    def error(self, faults: Iterable[Fault]) -> MatrixError:
        """Return all faults as one error, in the order of their lines."""
        lines = [(self._line(location), f"{_dotted(location)}: {message}") for location, message in faults]
        report = "".join(f"\n  line {line}: {text}" for line, text in sorted(lines, key=lambda line: line[0]))
        return MatrixError(f"{self.path}: {counted(len(lines), 'problem')}; correct the file and run again.{report}")

    def _line(self, location: Location) -> int:
        """Line of the nearest enclosing key: a missing key is reported at the beginning of its table."""
        while location and location not in self.lines:
            location = location[:-1]
        return self.lines.get(location, 1)


def read_toml(path: Path) -> TomlFile:
    """Read and parse a file. Raises MatrixError if it cannot be read, or is not TOML."""
    try:
        text = read_input(path, largest_bytes=LARGEST_BYTES).decode("utf-8").replace("\r\n", "\n")
        data = tomllib.loads(text)
        check_depth(data)
    except OSError as error:
        raise MatrixError(f"{path}: cannot be read ({error.strerror}); give the path of a TOML file.") from None
    except UnicodeDecodeError as error:
        raise MatrixError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start}); TOML must be.") from None
    except RecursionError:
        raise MatrixError(f"{path}: nested too deeply; take brackets or parts of keys away and run again.") from None
    except ValueError as error:  # from tomllib, or from Python for an integer with too many digits
        raise MatrixError(
            f"{path}: not valid TOML: {str(error).partition(';')[0]}. Correct the syntax there and run again."
        ) from None
    return TomlFile(path=path, data=data, text=text)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a suggestion for the end of a message, or nothing."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _key_lines(text: str) -> dict[Location, int]:
    """Line of every key of a valid document, without those of inline tables.

    tomllib keeps no positions, but each statement of a document, of one line or several, is a document too.
    """
    lines: dict[Location, int] = {}
    counts: dict[Location, int] = {}  # of the tables so far in each array of tables
    table: Location = ()
    for line, statement in _statements(text):
        node: Any = tomllib.loads(statement)
        is_header = statement.lstrip().startswith("[")
        location = () if is_header else table
        while isinstance(node, dict) and node:
            key, node = next(iter(node.items()))
            location = (*location, key)
            if is_header and isinstance(node, list):
                counts[location] = counts.get(location, 0) + 1
            if is_header and location in counts:
                location = (*location, counts[location] - 1)
            lines.setdefault(location, line)
        table = location if is_header else table
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement of a valid document, with its first line. Its last line leaves no bracket or string open."""
    line, first, start, depth = 1, 1, 0, 0
    for token in TOKENS.finditer(f"{text}\n"):
        line += token[0].count("\n")
        depth += (token[0] in "[{") - (token[0] in "]}")
        if token[0] == "\n" and depth == 0:
            yield first, text[start : token.end()]
            first, start = line, token.end()


def _fault(model: type[BaseModel], details: ErrorDetails) -> Fault:
    location = details["loc"]
    if details["type"] == "extra_forbidden":
        allowed = _keys_allowed(model, location)
        return location, f"unknown key; allowed here: {', '.join(allowed)}.{did_you_mean(str(location[-1]), allowed)}"
    if details["type"] == "missing":
        return location, "required, but missing."
    wanted = details["msg"][details["msg"].find("should") :]  # without "Input", "String", "Value error,"
    got = f"got {details['input']!r}; " if location else ""  # else the whole file
    return location, f"{got}{wanted}."


def _keys_allowed(model: type[BaseModel], location: Location) -> list[str]:
    """Keys of the table that contains the last element of ``location``; list indices and free keys are skipped."""
    for part in location[:-1]:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_inside(model.model_fields[part].annotation) or model
    return list(model.model_fields)


def _model_inside(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_inside, get_args(annotation))), None)


def _dotted(location: Location) -> str:
    """``series[2].num_envs``, as a reader would write it."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".") or "file"
