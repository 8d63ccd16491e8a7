"""What others published, from ``published.toml``: figures with their rounding, and the efficiencies they imply.

Reading the file is the only I/O. A figure that was rounded is a range, so an efficiency made of two figures is one too:
only what is above 1 in all of it is surely more than ideal.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from suite.errors import ReportError
from suite.statistics.intervals import Interval

PATH: Final = Path(__file__).with_name("published.toml")
KINDS: Final = ("step", "step and inference", "total")
_FIGURE: Final = re.compile(r"(\d+)(?:\.(\d+))?([kM]?)")
_FACTORS: Final = {"": 1.0, "k": 1e3, "M": 1e6}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A printed number and the range that is rounded to it."""

    value: float
    low: float
    high: float


def parse_figure(text: object) -> Figure:
    """Raises ValueError for what is no number with an optional k or M."""
    match = _FIGURE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(f"{text!r} is no figure like 896156, 950k or 2.7M")
    whole, decimals, unit = match[1], match[2] or "", match[3]
    value = float(f"{whole}.{decimals or 0}") * _FACTORS[unit]
    half = 0.5 * _FACTORS[unit] * 10.0 ** -len(decimals)
    if unit == "k" and len(whole) == 3 and whole.endswith("0"):  # noqa: PLR2004 - three digits
        half *= 10  # 950k stands beside 64k and 1.1M: two digits are what such a table gives
    return Figure(value=value, low=value - half, high=value + half)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


type _Printed = Annotated[Figure, BeforeValidator(parse_figure)]


class Source(Strict):
    name: str
    title: str
    author: str
    date: str
    read: str
    terms: str
    url: str | None = None


class Row(Strict):
    """Either frames per second or the hours of a whole training."""

    gpus: int
    step: _Printed | None = None
    inference: _Printed | None = None
    total: _Printed | None = None
    hours: float | None = None
    hours_known_to: float = 0.0

    @property
    def rates(self) -> Mapping[str, Figure]:
        """What scaling is judged by: frames per second by kind, or trainings per hour."""
        if self.hours is not None:
            half = self.hours_known_to / 2
            return {"total": Figure(value=1 / self.hours, low=1 / (self.hours + half), high=1 / (self.hours - half))}
        printed = {"step": self.step, "step and inference": self.inference, "total": self.total}
        return {kind: figure for kind, figure in printed.items() if figure is not None}


class Table(Strict):
    source: str
    title: str
    remark: str
    rows: tuple[Row, ...]
    cpu: str | None = None  # None: not stated
    series: str | None = None  # of labscale, which comes nearest
    tuned: str | None = None  # of labscale's open division, the same task tuned
    rl_library: str | None = None
    ours: str | None = None


class Published(Strict):
    source: tuple[Source, ...]
    table: tuple[Table, ...]


@cache
def read_published(path: Path = PATH) -> Published:
    """Raises ReportError when the file is not valid."""
    try:
        found = TypeAdapter(Published).validate_python(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise ReportError(
            f"{path} is not valid: {error}. Correct it; its head says what a figure looks like."
        ) from error
    unknown = {table.source for table in found.table} - {source.name for source in found.source}
    if unknown:
        raise ReportError(
            f"{path}: no [[source]] is named {', '.join(sorted(unknown))}. Add it, with where it is from."
        )
    return found


def efficiency(table: Table, row: Row, kind: str = "total") -> tuple[float, Interval] | None:
    """Of ``row`` against the row with the fewest GPUs: as printed, and the range that rounding leaves.

    None where either has no figure of this kind.
    """
    base = min(table.rows, key=lambda other: other.gpus)
    if kind not in row.rates or kind not in base.rates:
        return None
    if row is base:
        return 1.0, (1.0, 1.0)
    ideal, own, its_base = row.gpus / base.gpus, row.rates[kind], base.rates[kind]
    return own.value / its_base.value / ideal, (own.low / its_base.high / ideal, own.high / its_base.low / ideal)


def implied(table: Table) -> list[tuple[float, Interval]]:
    """The efficiencies of every row beyond the first, of each kind that it has."""
    found = (efficiency(table, row, kind) for row in sorted(table.rows, key=lambda row: row.gpus)[1:] for kind in KINDS)
    return [one for one in found if one is not None]


def most_frames(table: Table) -> tuple[int, float] | None:
    """Return the most GPUs of a table and their total frames per second; None for a table of hours."""
    return max(((row.gpus, row.total.value) for row in table.rows if row.total), default=None)
