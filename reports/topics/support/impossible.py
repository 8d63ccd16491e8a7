"""What cannot run, with reasons and sources, from ``impossible.toml``. Reading the file is the only I/O."""

from datetime import date
from pathlib import Path
from typing import Final

from suite.files.toml_file import NonEmptyTuple, TomlTable, read_toml

PATH: Final = Path(__file__).with_name("impossible.toml")


class Refusal(TomlTable):
    """What labscale answers to whoever asks for it."""

    by: str  # the command
    says: str  # fault or message


class Impossible(TomlTable):
    """One thing that cannot run."""

    what: str  # Markdown's backquotes around names of code
    reason: str  # in sentences
    sources: NonEmptyTuple[str]  # addresses, or a package with a file in it
    looked_up: date
    refusal: Refusal | None = None  # None where nobody can ask labscale for it


class ImpossibleTable(TomlTable):
    impossible: NonEmptyTuple[Impossible]


def read_impossible(path: Path = PATH) -> tuple[Impossible, ...]:
    """Read the file. Raises MatrixError with every problem in it."""
    return read_toml(path).validate(ImpossibleTable).impossible
