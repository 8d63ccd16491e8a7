"""The interference test of stored campaigns that ran cases side by side. Pure but for reading its verdict.

The quickest case on the fewest ranks ran alone and beside rounds of other cases, in an order that cancels drift. The
verdict follows from those rounds, so ``verify`` computes it again. No campaign runs this test any more, so its rules
are those of the campaigns that ran it: its interval is the range of all six differences, whatever other intervals are.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import with_config

from suite.files.json_file import STRICT, read_json
from suite.schema.case_suffixes import BESIDE_SUFFIX, PROBE_SUFFIX
from suite.schema.record import Case, RunRecord
from suite.statistics.aa_noise import apart
from suite.statistics.reduce import round_time_s

PAIRS: Final = 6  # the fewest whose range contains the true median in 95 of 100 cases
MEANS_NOTHING: Final = 0.01  # relative; smaller differences count as none
# Beside others or alone: each alone stands beside one that is not, and the two kinds have the same middle.
ORDER: Final = (False, True, True, False) * (PAIRS // 2)
FILE: Final = "packing.json"  # the verdict, in the folder of a campaign
FOLDER: Final = "interference"  # the rounds of the test, stored as cases


@with_config(STRICT)
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


def is_probe(case: Case) -> bool:
    return case.case_id.endswith(PROBE_SUFFIX)


def is_of_test(case: Case) -> bool:
    """Whether the case costs GPU time, but is no case of a matrix."""
    return case.case_id.endswith((PROBE_SUFFIX, BESIDE_SUFFIX))


def is_settled(records: Sequence[RunRecord]) -> bool:
    """Whether the test ends with these rounds, ordered as ``ORDER`` is.

    It does when all have run or one has failed; and at half when every pair takes longer beside others, the median by
    more than means nothing. The other half could hardly allow it then, and rounds beside it would be run again.

    Raises ValueError when a completed one has no number.
    """
    if any(record.outcome != "completed" for record in records) or len(records) == len(ORDER):
        return True
    if len(records) != len(ORDER) // 2:
        return False
    half = judged(records)
    takes_longer = [beside > alone for alone, beside in zip(half.alone_s, half.beside_s, strict=True)]
    return all(takes_longer) and not half.packed


def judged(records: Sequence[RunRecord]) -> Interference:
    """The verdict on the rounds of the test, ordered as ``ORDER`` is: all of them, half, or fewer when one failed.

    Raises ValueError when there are more or fewer of them, or a completed one has no number.
    """
    case_id = records[0].case.case_id.removesuffix(PROBE_SUFFIX)
    failed = next((record for record in records if record.outcome != "completed"), None)
    if failed is not None:
        reason = f"round {failed.round} of the interference test is {failed.outcome}: {failed.reason}"
        return Interference(packed=False, case_id=case_id, reason=reason)
    order = ORDER[: len(ORDER) // 2] if len(records) == len(ORDER) // 2 else ORDER
    kinds = list(zip(records, order, strict=True))
    alone = [round_time_s(record) for record, beside in kinds if not beside]
    beside = [round_time_s(record) for record, beside in kinds if beside]
    return verdict(case_id, alone, beside, [record.neighbours or 0 for record, is_beside in kinds if is_beside])


def verdict(
    case_id: str, alone_s: Sequence[float], beside_s: Sequence[float], neighbours: Sequence[int] = ()
) -> Interference:
    """Judge rounds of ``case_id`` in the order in which they ran, the n-th alone beside the n-th that was not."""
    differences = [beside / alone - 1 for alone, beside in zip(alone_s, beside_s, strict=True)]
    difference = statistics.median(differences)
    interval = (min(differences), max(differences)) if len(differences) == PAIRS else None
    budget = apart(statistics.median(alone_s[1::2]) / statistics.median(alone_s[::2]) - 1)
    tolerance = max(budget, MEANS_NOTHING)
    is_shift = interval is not None and not interval[0] <= 0 <= interval[1] and abs(difference) > MEANS_NOTHING
    packed = abs(difference) <= tolerance and not is_shift
    half = f" (in each of the first {len(differences)} pairs)"
    sure = half if interval is None else f" ({interval[0]:+.1%} to {interval[1]:+.1%} at 95 %)"
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


def read(path: Path) -> Interference | None:
    """Read the stored verdict; None when there is none.

    Raises:
        StoreError: it cannot be read.
    """
    return read_json(path, Interference, next_step="Take it anew from the campaign that wrote it.")
