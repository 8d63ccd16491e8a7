"""A against A: the baseline case of each series runs twice, interleaved, to see how much nothing differs by.

The twin is the same case under an id of its own, with rounds of its own. How far the medians of a case and its twin lie
apart is what this host makes of no difference at all, the noise budget: a smaller difference between two cases means
nothing here.
"""

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from suite.repeats import completed_times_s
from suite.schema import Case, CaseResult

SUFFIX: Final = "-aa"
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, kw_only=True)
class TwinPair:
    """A case beside its twin: medians over their completed rounds [s]."""

    case_id: str
    rounds: int
    twin_rounds: int
    median_s: float
    twin_median_s: float

    @property
    def difference(self) -> float:
        """Relative; positive when the twin took longer."""
        return self.twin_median_s / self.median_s - 1


def is_twin(case: Case) -> bool:
    return case.case_id.endswith(SUFFIX)


def with_twins(cases: Sequence[Case]) -> list[Case]:
    """``cases`` in their order, each series' baseline followed by its twin.

    The baseline is the first case of a series on the fewest ranks. Controls have none: they explain, nobody compares
    them between machines.
    """
    baselines: dict[str, Case] = {}
    for case in sorted(cases, key=lambda case: case.world_size):
        if case.workload == "train":
            baselines.setdefault(case.series, case)
    return [
        member
        for case in cases
        for member in ((case, replace(case, case_id=case.case_id + SUFFIX)) if case in baselines.values() else (case,))
    ]


def twin_pairs(results: Sequence[CaseResult]) -> tuple[TwinPair, ...]:
    """Every case whose twin is there too; only where both have a completed round."""
    by_id = {result.case.case_id: completed_times_s(result.rounds) for result in results}
    return tuple(
        TwinPair(
            case_id=case_id,
            rounds=len(times_s),
            twin_rounds=len(twin_s),
            median_s=statistics.median(times_s),
            twin_median_s=statistics.median(twin_s),
        )
        for case_id, times_s in by_id.items()
        if times_s and (twin_s := by_id.get(case_id + SUFFIX))
    )


def noise_budget(pairs: Sequence[TwinPair]) -> float | None:
    """By how much the slower of a case and its twin took longer, of the pair that differs most; None without a pair.

    Which of the two is called the twin is chance: it is the same either way round.
    """
    return max((apart(pair.difference) for pair in pairs), default=None)


def apart(change: float) -> float:
    """Of a relative change the size, the same for a time that doubles and for one that halves: 1."""
    return max(1 + change, 1 / (1 + change)) - 1


def is_within(change: float, noise: float) -> bool:
    """Whether a relative change is no larger than ``noise``; a pair is within the noise that it makes."""
    return apart(change) <= noise + _ROUNDING


def write_noise(pairs: Sequence[TwinPair], path: Path) -> None:
    """Write the noise budget and the pairs behind it, for comparisons and for whoever wants to check."""
    document = {
        "noise_budget": noise_budget(pairs),
        "pairs": [asdict(pair) | {"difference": pair.difference} for pair in pairs],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
