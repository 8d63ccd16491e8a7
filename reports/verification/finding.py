"""A finding: one place where stored results contradict themselves, with what was expected and what to do next."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

type Json = dict[str, Any]

# Samples are stored with 9 digits and every other figure is computed from those, so only rounding errors remain.
RELATIVE_TOLERANCE: Final = 1e-9
RESTORE: Final = "Restore the file from git or from the campaign's folder; results are never edited."
RUN_AGAIN: Final = "Leave this round out of what is published, and run it again."
STORE_ANEW: Final = "Store the case anew from the records of its rounds, with `nox -s bench` in its folder."
MEND_FIRST: Final = "Mend these records first, as the findings of each case file say; then verify again."
OR_LIST: Final = "If it cannot be repaired, say in weaknesses.toml of the version why it stands."
_NEVER_WRITTEN: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_LONGEST: Final = 160  # characters of a value that is shown


@dataclass(frozen=True, kw_only=True)
class Finding:
    where: str  # path below the folder that was verified
    what: str
    got: str
    expected: str
    next_step: str = RESTORE

    def __str__(self) -> str:
        return f"{self.where}: {self.what} is {self.got}, expected {self.expected}. {self.next_step}"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A file or folder, or a part of one, with all that was found in the file so far."""

    where: str
    part: str = ""  # "round 0, rank 1"
    findings: list[Finding] = field(default_factory=list)

    def within(self, part: str) -> "Place":
        return replace(self, part=f"{self.part}, {part}" if self.part else part)

    def fault(self, what: str, got: str, expected: str, next_step: str = RESTORE) -> None:
        what = f"{self.part}: {what}" if self.part else what
        self.findings.append(Finding(where=self.where, what=what, got=got, expected=expected, next_step=next_step))

    def same(
        self, what: str, got: Any, expected: Any, next_step: str = RESTORE, *, tolerance: float = RELATIVE_TOLERANCE
    ) -> None:
        for finding in differing(self.where, what, got, expected, next_step=next_step, tolerance=tolerance):
            self.fault(finding.what, finding.got, finding.expected, next_step)

    def between(
        self, what: str, got: float | None, low: float, high: float, unit: str = "", next_step: str = RESTORE
    ) -> None:
        """Note a number beyond ``low`` or ``high``; a value that was not measured is within them."""
        if got is not None and not low <= got <= high:
            unit = f" {unit}" if unit else ""
            expected = f"at least {low:g}{unit}" if high == math.inf else f"from {low:g} to {high:g}{unit}"
            self.fault(what, f"{got:g}{unit}", expected, next_step)

    @contextmanager
    def as_far_as_possible(self) -> Iterator[None]:
        """Note a value that labscale never writes, at which the rules of a block end."""
        try:
            yield
        except _NEVER_WRITTEN as error:
            self.findings.append(_unreadable(self.where, error))


def as_far_as_possible(where: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield all findings up to a value that labscale never writes; that value is the last finding."""
    try:
        yield from findings
    except _NEVER_WRITTEN as error:
        yield _unreadable(where, error)


def _unreadable(where: str, error: Exception) -> Finding:
    got = f"such that it cannot be checked to its end ({type(error).__name__}: {error})"
    return Finding(where=where, what="the file", got=got, expected="as labscale writes it")


def not_compared(where: str, rejected: Sequence[str]) -> list[Finding]:
    """Return why a file of figures is not compared: case files that it needs are ``rejected``. Nothing if none is."""
    if not rejected:
        return []
    more = f" and {len(rejected) - 1} more" if len(rejected) > 1 else ""
    got = f"not made (records are rejected in {counted(len(rejected), 'case file')}: {rejected[0]}{more})"
    what = "the comparison of its figures with the samples"
    return [Finding(where=where, what=what, got=got, expected="made", next_step=MEND_FIRST)]


def differing(
    where: str, what: str, got: Any, expected: Any, *, next_step: str = RESTORE, tolerance: float = RELATIVE_TOLERANCE
) -> Iterator[Finding]:
    """Yield every place in which two plain values differ: numbers beyond ``tolerance``, all else exactly."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for name in sorted({*expected, *got}):
            there, wanted = got.get(name, "missing"), expected.get(name, "nothing")
            yield from differing(where, f"{what}.{name}", there, wanted, next_step=next_step, tolerance=tolerance)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, (there, wanted) in enumerate(zip(got, expected, strict=True)):
            yield from differing(where, f"{what}[{index}]", there, wanted, next_step=next_step, tolerance=tolerance)
    elif not (got == expected or (_are_numbers(got, expected) and math.isclose(got, expected, rel_tol=tolerance))):
        yield Finding(where=where, what=what, got=_shown(got), expected=_shown(expected), next_step=next_step)


def counted(number: int, noun: str, nouns: str = "") -> str:
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
