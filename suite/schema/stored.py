"""What stored numbers and names may be beyond their types, and the names of stored fields.

pydantic looks at the constraints; without pydantic they do nothing. The worker imports this file too, so it imports the
standard library only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Final

LARGEST: Final = 10**18  # of all numbers: their sums and squares still fit into a float
MIN_ITERATIONS: Final = 2  # the first never counts


@dataclass(frozen=True)
class Between:
    """A number from ``least`` to ``most``."""

    least: int
    most: int = LARGEST

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {**handler(source), "ge": self.least, "le": self.most}


@dataclass(frozen=True)
class Matching:
    """A text that a regular expression describes as a whole."""

    pattern: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        return {**handler(source), "pattern": f"^(?:{self.pattern})$"}


_NAME: Final = "[A-Za-z0-9][A-Za-z0-9_.-]*"  # of a series, and of each folder and the file of a case

type Number = Annotated[float, Between(-LARGEST)]
type Whole = Annotated[int, Between(-LARGEST)]
type Count = Annotated[int, Between(0)]
type Size = Annotated[int, Between(1)]
type Iterations = Annotated[int, Between(MIN_ITERATIONS)]
type Name = Annotated[str, Matching(_NAME)]
type CaseId = Annotated[str, Matching(f"{_NAME}(?:/{_NAME})*")]


# ---- names, where pages use another than the code ----


NAMES: Final[Mapping[str, str]] = {
    "case": "configuration",
    "case_id": "configuration_id",
    "environment": "machine",
    "round": "run",
    "rounds": "runs",
    "seed_per_round": "seed_per_run",
}


def stored_name(field: str) -> str:
    return NAMES.get(field, field)


def plain(value: Any) -> Any:
    """Convert dataclasses and mappings to dicts and sequences to lists; keep everything else."""
    if is_dataclass(value):
        return {stored_name(item.name): plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value
