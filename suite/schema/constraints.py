"""What stored numbers and names may be, beyond their types. pydantic looks at it; without pydantic it does nothing.

The worker imports it too, so it imports the standard library only.
"""

from collections.abc import Callable
from dataclasses import dataclass
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
