"""Whether rounds may run side by side: what neighbours do to the numbers of a case. Pure but for its file.

The baseline of the campaign runs alone and beside rounds of other cases, ``PAIRS`` times each in an order that drift
cancels in. The rule is that of A/A (``suite.a_a``): halves of the rounds alone say how far nothing lies from itself,
and a difference below that, or below the precision that a case's median is known to, means nothing here. A shift that
every pair shows is a shift all the same, however noisy the host is.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from suite.a_a import TwinPair, noise_budget
from suite.errors import StoreError
from suite.repeats import MIN_ROUNDS_FOR_INTERVAL, TARGET_PRECISION, median_interval

PAIRS: Final = MIN_ROUNDS_FOR_INTERVAL
# Beside others or alone: each alone stands beside one that is not, and the two kinds have the same middle.
ORDER: Final = (False, True, True, False) * (PAIRS // 2)


@dataclass(frozen=True, kw_only=True)
class Interference:
    """The verdict with its evidence."""

    packed: bool
    reason: str
    case_id: str | None = None  # that was measured
    alone_s: tuple[float, ...] = ()  # of each round
    beside_s: tuple[float, ...] = ()
    neighbours: tuple[int, ...] = ()  # the most rounds at a time beside each of ``beside_s``
    difference: float | None = None  # relative; positive when it takes longer beside others: the median of the pairs
    interval: tuple[float, float] | None = None  # of that median at 95 %
    noise_budget: float | None = None
    tolerance: float | None = None

    def __str__(self) -> str:
        return f"{'Cases run side by side' if self.packed else 'One after another'}: {self.reason}."


def verdict(
    case_id: str, alone_s: Sequence[float], beside_s: Sequence[float], neighbours: Sequence[int] = ()
) -> Interference:
    """Judge rounds of ``case_id`` in the order in which they ran, the n-th alone beside the n-th that was not."""
    differences = [beside / alone - 1 for alone, beside in zip(alone_s, beside_s, strict=True)]
    difference, interval = statistics.median(differences), median_interval(differences)
    halves = TwinPair(
        case_id=case_id,
        rounds=len(alone_s[::2]),
        twin_rounds=len(alone_s[1::2]),
        median_s=statistics.median(alone_s[::2]),
        twin_median_s=statistics.median(alone_s[1::2]),
    )
    budget = noise_budget([halves]) or 0.0
    tolerance = max(budget, TARGET_PRECISION)
    is_shift = interval is not None and not interval[0] <= 0 <= interval[1] and abs(difference) > TARGET_PRECISION
    packed = abs(difference) <= tolerance and not is_shift
    sure = "" if interval is None else f" ({interval[0]:+.1%} to {interval[1]:+.1%} at 95 %)"
    noise = f"the {tolerance:.1%} that means nothing here (alone it differs by {budget:.1%} from itself)"
    than = "within" if packed else "and that in all pairs, whatever" if is_shift else "more than"
    return Interference(
        packed=packed,
        reason=f"{case_id} takes {difference:+.1%} longer beside others{sure}, {than} {noise}",
        case_id=case_id,
        alone_s=tuple(alone_s),
        beside_s=tuple(beside_s),
        neighbours=tuple(neighbours),
        difference=difference,
        interval=interval,
        noise_budget=budget,
        tolerance=tolerance,
    )


def write(found: Interference, path: Path) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


def read(path: Path) -> Interference | None:
    """What an earlier command found; None when there is nothing.

    Raises:
        StoreError: it cannot be read.
    """
    if not path.exists():
        return None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        lists = {name: tuple(value) for name, value in stored.items() if isinstance(value, list)}
        return Interference(**stored | lists)
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is not readable: {error}. Move it away to have the test made again.") from error
