"""Words for numbers and lists in messages and pages. Pure; imports the standard library only."""

import re
from collections.abc import Sequence
from datetime import date


def counted(number: float, noun: str) -> str:
    """``1 GPU``, ``1,024 processes``, ``0.5 minutes``."""
    plural = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{format(number, ',' if isinstance(number, int) else 'g')} {noun}{plural}"


def are(number: float) -> str:
    """Return ``is`` or ``are`` for a number of things."""
    return "is" if number == 1 else "are"


def listed(noun: str, numbers: Sequence[int]) -> str:
    """``round 1``, ``rounds 0, 2``."""
    return f"{noun}{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def joined(words: Sequence[str], conjunction: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``; nothing of no words."""
    *first, last = words or [""]
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def three_digits(value: float) -> str:
    """``3.57``, ``99.9``, ``100``, ``1235``: three digits, and all of those before the point."""
    text = f"{value:#.3g}"
    return f"{value:.0f}" if abs(float(text)) >= 100 else text  # noqa: PLR2004 - three digits before the point


def day_in_words(day: date) -> str:
    """``22 Nov 2026``."""
    return f"{day.day} {day:%b %Y}"


def slug(name: str) -> str:
    """Return a name as addresses have it: ``Shadow Hand with camera`` is ``shadow-hand-with-camera``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def last_lines(text: str, lines: int = 20) -> str:
    """Return the end of a program's output."""
    return "\n".join(text.strip().splitlines()[-lines:])


def last_words(text: str, lines: int = 3) -> str:
    """Return the end of a program's output in one line, or that there is none."""
    return " ".join(text.strip().splitlines()[-lines:]) or "it said nothing"
