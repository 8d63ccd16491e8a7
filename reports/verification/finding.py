"""A finding: one place where stored results contradict themselves, with what was expected and what to do next."""

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from suite.errors import StoreError

type Json = dict[str, Any]

# Samples are stored with 9 digits and every other figure is computed from those, so only rounding errors remain.
RELATIVE_TOLERANCE: Final = 1e-9
RESTORE: Final = "Restore the file from git or from the campaign's folder; results are never edited."
RUN_AGAIN: Final = "Leave this round out of what is published, and run it again."
OR_LIST: Final = "If it cannot be repaired, say in weaknesses.toml of the version why it stands."
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


@dataclass(frozen=True)
class Place:
    """A file or folder below ``root``, or a part of one. All places of one ``root`` add to the same findings."""

    root: Path
    where: str = "."
    part: str = ""  # "round 0, rank 1"
    findings: list[Finding] = field(default_factory=list)

    @property
    def path(self) -> Path:
        return self.root / self.where

    def at(self, path: Path) -> "Place":
        own = path.relative_to(self.root) if path.is_relative_to(self.root) else path
        return replace(self, where=own.as_posix(), part="")

    def within(self, part: str) -> "Place":
        return replace(self, part=f"{self.part}, {part}" if self.part else part)

    def fault(self, what: str, got: Any, expected: str, next_step: str = RESTORE) -> None:
        what, got = f"{self.part}: {what}" if self.part else what, str(got)
        got = got if len(got) <= _LONGEST or next_step == OR_LIST else f"{got[:_LONGEST]}…"
        self.findings.append(Finding(where=self.where, what=what, got=got, expected=expected, next_step=next_step))

    def same(
        self, what: str, got: Any, expected: Any, next_step: str = RESTORE, *, tolerance: float = RELATIVE_TOLERANCE
    ) -> None:
        """Note every part in which plain values differ, numbers beyond ``tolerance``; of dicts the expected names."""
        if isinstance(expected, dict) and isinstance(got, dict):
            for name, wanted in expected.items():
                self.same(f"{what}.{name}", got.get(name, "missing"), wanted, next_step, tolerance=tolerance)
        elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
            for index, (own, wanted) in enumerate(zip(got, expected, strict=True)):
                self.same(f"{what}[{index}]", own, wanted, next_step, tolerance=tolerance)
        elif got != expected:
            are_numbers = isinstance(got, int | float) and isinstance(expected, int | float)
            if not (are_numbers and math.isclose(got, expected, rel_tol=tolerance)):
                self.fault(what, got, str(expected), next_step)

    def between(self, what: str, values: Any, low: Any, high: Any) -> None:
        """Note the first number beyond ``low`` or ``high``, of one or of an array; NaN and None are within them."""
        numbers = np.atleast_1d(np.asarray(values, float))
        is_beyond = (numbers < low) | (numbers > high)
        if is_beyond.any():
            beyond = np.flatnonzero(is_beyond)
            first, more = beyond[0], f", and {len(beyond) - 1} more likewise" if len(beyond) > 1 else ""
            least, most = (np.broadcast_to(bound, numbers.shape)[first] for bound in (low, high))
            expected = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
            what = f"{what} of iteration {first}" if np.ndim(values) else what
            self.fault(what, f"{numbers[first]:g}{more}", expected)

    @contextmanager
    def as_far_as_possible(self) -> Iterator["Place"]:
        """Note a refused file, a missing field or absurd numbers that stop a rule; the other rules go on."""
        try:
            yield self
        except StoreError as error:
            text = str(error).replace(f"{self.path.parent}/", "")
            self.fault("the file", f"refused ({text})", "as labscale writes it")
        except KeyError as error:
            replace(self, part="").fault(f"the field {error.args[0]}", "missing", "there")
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, csv.Error):
            got = "such that it cannot be checked to its end"
            replace(self, part="").fault("the file", got, "as labscale writes it")
