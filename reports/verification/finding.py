"""What differs, in the words of an error: where, what, got, expected, next step."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

# Samples are stored to 9 digits and everything else is computed from those, so only the order of additions is open.
RELATIVE_TOLERANCE: Final = 1e-9
RESTORE: Final = "Restore the file from git or from the campaign's folder; results are never edited."
RUN_AGAIN: Final = "Leave this round out of what is published, and run it again."
STORE_ANEW: Final = "Store the case anew from the records of its rounds, with `nox -s bench` in its folder."


@dataclass(frozen=True, kw_only=True)
class Finding:
    where: str  # path below the folder that was checked
    what: str
    got: str
    expected: str
    next_step: str = RESTORE

    def __str__(self) -> str:
        return f"{self.where}: {self.what} is {self.got}, expected {self.expected}. {self.next_step}"


def as_far_as_it_makes_sense(where: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """All of them, up to a value that no labscale writes: from there on nothing can be said, which is a finding too."""
    try:
        yield from findings
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        got = f"such that it cannot be checked to its end ({type(error).__name__}: {error})"
        yield Finding(where=where, what="the file", got=got, expected="as labscale writes it")


def differing(
    where: str, what: str, got: Any, expected: Any, *, next_step: str = RESTORE, tolerance: float = RELATIVE_TOLERANCE
) -> Iterator[Finding]:
    """Every place in which two plain values differ: numbers by ``tolerance``, all else exactly."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for name in sorted({*expected, *got}):
            there, wanted = got.get(name, "missing"), expected.get(name, "nothing")
            yield from differing(where, f"{what}.{name}", there, wanted, next_step=next_step, tolerance=tolerance)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (there, wanted) in enumerate(zip(got, expected, strict=True)):
            yield from differing(where, f"{what}[{index}]", there, wanted, next_step=next_step, tolerance=tolerance)
    elif not _equal(got, expected, tolerance):
        yield Finding(where=where, what=what, got=_shown(got), expected=_shown(expected), next_step=next_step)


def outside(
    where: str, what: str, got: float | None, low: float, high: float, *, unit: str = "", next_step: str = RESTORE
) -> Iterator[Finding]:
    """Whether a number lies beyond what others allow it; a value that was not measured does not."""
    if got is not None and not low <= got <= high:
        unit = f" {unit}" if unit else ""
        expected = f"at least {low:g}{unit}" if high == math.inf else f"from {low:g} to {high:g}{unit}"
        yield Finding(where=where, what=what, got=f"{got:g}{unit}", expected=expected, next_step=next_step)


def _equal(got: Any, expected: Any, tolerance: float) -> bool:
    if _is_number(got) and _is_number(expected):
        return math.isclose(got, expected, rel_tol=tolerance, abs_tol=0.0)
    return bool(got == expected)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 160 else f"{text[:160]}…"  # noqa: PLR2004 - a line of a terminal
