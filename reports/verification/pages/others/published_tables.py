"""The tables of others in ``published.toml``, and the efficiencies that they imply.

A printed number is a range: all that is rounded to it. So an efficiency made of two of them is a range too, and only
one whose whole range is above 1 is surely more than ideal. Hours of a training count as trainings per hour.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from reports.verification.finding import Json

REPORTS: Final = Path(__file__).parents[3]
PATH: Final = REPORTS / "topics" / "others" / "published.toml"  # not there where the topic was deleted
KINDS: Final = {"step": "step", "inference": "step_and_inference", "total": "total"}  # as rows and figures name them
FACTORS: Final = {"k": 1e3, "M": 1e6}

type Span = tuple[float, float, float]  # as printed, the least, the most


@cache
def read() -> Mapping[str, Sequence[Json]]:
    """Return ``source`` and ``table``; both are empty without the file."""
    empty: dict[str, Sequence[Json]] = {"source": (), "table": ()}
    return empty | (tomllib.loads(PATH.read_text(encoding="utf-8")) if PATH.is_file() else {})


def name_of(table: Json) -> str:
    return f"{table['source']}: {table['title']}"


def figures(tables: Mapping[str, Sequence[Json]]) -> dict[str, Json]:
    """Return what is implied over all, by source, and by table and row."""
    sources, found = [source["name"] for source in tables["source"]], tables["table"]
    by_source = {name: _implied(table for table in found if table["source"] == name) for name in sources}
    rows = {f"{name_of(table)}: {row['gpus']} GPUs": _of_row(table, row) for table in found for row in table["rows"]}
    return {"all": {"sources": len(sources), **_implied(found)}, **by_source, **rows}


def most_frames(table: Json) -> tuple[int, float] | None:
    """Return the most GPUs of a table, and the frames per second that it prints of them."""
    last = max((row for row in table["rows"] if "total" in row), key=lambda row: int(row["gpus"]), default=None)
    return last and (last["gpus"], printed(last["total"])[0])


def printed(text: str) -> Span:
    """Half of its last digit is open. ``950k`` beside ``64k`` and ``1.1M`` shows that a table gives two digits."""
    digits, factor = text.rstrip("kM"), FACTORS.get(text[-1], 1.0)
    last_digit = factor / 10 ** len(digits.partition(".")[2])
    if text.endswith("0k") and len(digits) == 3:  # noqa: PLR2004 - three digits, of which two were kept
        last_digit *= 10
    value = float(digits) * factor
    return value, value - last_digit / 2, value + last_digit / 2


def _rates(row: Json) -> dict[str, Span]:
    if "hours" not in row:
        return {name: printed(row[key]) for key, name in KINDS.items() if key in row}
    hours, half = row["hours"], row.get("hours_known_to", 0.0) / 2
    return {"total": (1 / hours, 1 / (hours + half), 1 / (hours - half))}


def _efficiencies(table: Json, row: Json) -> dict[str, Span]:
    """Compare the throughput of a GPU with that in the row of the fewest, whose own efficiency is 1."""
    base = min(table["rows"], key=lambda other: int(other["gpus"]))
    own, first = _rates(row), _rates(base)
    if row is base:
        return dict.fromkeys(own, (1.0, 1.0, 1.0))
    more = row["gpus"] / base["gpus"]
    return {
        name: (value / first[name][0] / more, low / first[name][2] / more, high / first[name][1] / more)
        for name, (value, low, high) in own.items()
        if name in first
    }


def _of_row(table: Json, row: Json) -> Json:
    frames, found = {} if "hours" in row else _rates(row), _efficiencies(table, row)
    said: Json = {}
    for name in KINDS.values():
        value, *span = found.get(name, (None,))
        said[f"{name}_frames_per_s"] = frames[name][0] if name in frames else None
        said[f"{name}_efficiency"] = value
        said[f"{name}_efficiency_range"] = span or None
    return said


def _implied(tables: Iterable[Json]) -> Json:
    """Count the efficiencies of every row but that of the fewest GPUs."""
    found = [
        span
        for table in tables
        for row in sorted(table["rows"], key=lambda row: int(row["gpus"]))[1:]
        for span in _efficiencies(table, row).values()
    ]
    return {
        "efficiencies": len(found),
        "above_as_printed": sum(value > 1 for value, _, _ in found),
        "above_surely": sum(low > 1 for _, low, _ in found),
    }
