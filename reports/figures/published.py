"""What others published, from ``published.toml``: numbers with their rounding, as figures beside ours.

Reading the file is the only I/O. A printed number stands for every number that is rounded to it, so what follows from
two of them is a range: only what is above 1 in all of it is surely more than ideal.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from reports.figures.compare import Row
from reports.figures.kinds import Declaration
from suite.errors import ReportError

PATH: Final = Path(__file__).with_name("published.toml")
PLAIN: Final[Mapping[str, object]] = {  # what a configuration as shipped has, which is trained alone on GPUs
    "device": "cuda", "is_tuned": False, "is_deterministic": False, "trainings_per_gpu": 1, "packages": "",
    "kernel_cache": "kept", "workload": "train",
}  # fmt: skip
_NUMBER: Final = re.compile(r"(\d+)(?:\.(\d+))?([kMdh]?)")
_FACTORS: Final = {"": 1.0, "k": 1e3, "M": 1e6, "h": 1.0, "d": 24.0}


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A printed number and the range that is rounded to it."""

    value: float
    least: float
    most: float

    def side(self, table: "Table", gpus: int) -> Mapping[str, str]:
        """Return it as a declaration has it."""
        numbers = {name: f"{getattr(self, name):.9g}" for name in ("value", "least", "most")}
        return {"source": table.source, "table": table.name, "gpus": str(gpus), **numbers}


def parse_number(text: object) -> Printed:
    """Raises ValueError for what is no number with an optional k, M, h or d."""
    match = _NUMBER.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is no number like 896156, 950k, 2.7M, 12.4h or 1.4d")
    whole, decimals, unit = match[1], match[2] or "", match[3]
    value = float(f"{whole}.{decimals or 0}") * _FACTORS[unit]
    half = 0.5 * _FACTORS[unit] * 10.0 ** -len(decimals)
    if unit == "k" and len(whole) == 3 and whole.endswith("0"):  # noqa: PLR2004 - three digits
        half *= 10  # 950k stands beside 64k and 1.1M: two digits are what such a table gives
    return Printed(value=value, least=value - half, most=value + half)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


type _Number = Annotated[Printed, BeforeValidator(parse_number)]


class Source(Strict):
    name: str
    title: str
    author: str
    gpu: str
    date: str
    read: str
    terms: str
    url: str | None = None


class TableRow(Strict):
    """Either frames per second or the hours of a whole training."""

    gpus: int
    step: _Number | None = None
    rollout: _Number | None = None
    training: _Number | None = None
    hours: _Number | None = None

    @property
    def rates(self) -> Mapping[str, Printed]:
        """What is more when it is faster, by the column of runs that has the same."""
        if self.hours:
            hours = self.hours
            return {"trainings_per_hour": Printed(value=1 / hours.value, least=1 / hours.most, most=1 / hours.least)}
        known = {
            "step_frames_per_s": self.step,
            "rollout_frames_per_s": self.rollout,
            "frames_per_s": self.training,
        }
        return {column: number for column, number in known.items() if number}


class Table(Strict):
    source: str
    name: str  # the same for tables of the same work
    title: str
    ours: Mapping[str, str | int] | None = None  # columns of runs: the configurations that stand beside it
    rows: tuple[TableRow, ...]

    def is_beside(self, row: Row) -> bool:
        """Whether a configuration of ours is the same work on as many GPUs as one of its rows."""
        wanted = {**PLAIN, "physics": "kitless", "nodes": 1, **(self.ours or {})}
        is_same = self.ours is not None and all(row[name] == value for name, value in wanted.items())
        return is_same and row["gpus"] in {own.gpus for own in self.rows}


class Published(Strict):
    source: tuple[Source, ...]
    table: tuple[Table, ...]


@cache
def read_published(path: Path = PATH) -> Published:
    """Raises ReportError when the file is not valid."""
    try:
        published = TypeAdapter(Published).validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise ReportError(
            f"{path} is not valid: {error}. Correct it; its head says what a number looks like."
        ) from error
    unknown = {table.source for table in published.table} - {source.name for source in published.source}
    if unknown:
        raise ReportError(
            f"{path}: no [[source]] is named {', '.join(sorted(unknown))}. Add it, with where it is from."
        )
    return published


def printed_declarations(configurations: Sequence[Row]) -> Iterator[Declaration]:
    """Yield every printed number, its share of the ideal speed, and what our configurations make of it."""
    starts = {(row["set"], row["series"]) for row in configurations if row["kernel_cache"] == "empty"}
    for table in read_published().table:
        yield from _of_table(table)
        known = (row for row in configurations if (row["set"], row["series"]) not in starts)
        for row in filter(table.is_beside, known):
            theirs = next(own for own in table.rows if own.gpus == row["gpus"])
            if theirs.training:
                yield Declaration(
                    id=f"{row['set']}/{row['configuration']}/frames_per_s_of_{table.source}",
                    kind="published",
                    column="frames_per_s",
                    of={"set": row["set"], "configuration": row["configuration"]},
                    over=theirs.training.side(table, theirs.gpus),
                )


def _of_table(table: Table) -> Iterator[Declaration]:
    base = min(table.rows, key=lambda row: row.gpus)
    for row in table.rows:
        for column, number in row.rates.items():
            name, of = f"{table.source}/{table.name}/{row.gpus}/{column}", number.side(table, row.gpus)
            yield Declaration(id=name, kind="published", column=column, of=of)
            if row is not base:
                over = base.rates[column].side(table, base.gpus)
                yield Declaration(id=f"{name}_kept", kind="published", column=column, of=of, over=over)
