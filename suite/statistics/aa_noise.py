"""Repeat measurements (A/A pairs): the baseline case of each series runs twice, interleaved, to measure noise.

The twin is the same case under an id of its own, with rounds of its own. It is chance which rounds are the twin's, so
all rounds are split into two groups in every possible way. The noise budget is the difference of medians that 95 of
100 splits do not exceed. A smaller difference between two cases is within noise. The split that happened to run is
only one sample: it may be near 0 although rounds differ by a third.
"""

import math
import random
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Final

from suite.files.json_file import replace_json
from suite.schema.record import Case, CaseResult
from suite.schema.stored_names import plain
from suite.statistics.stopping_rule import completed_times_s

SUFFIX: Final = "-aa"
NOISE_LEVEL: Final = 0.95  # part of all splits; with up to three and three rounds this is the largest difference
_MAX_WAYS: Final = 2000  # if there are more splits, this many are drawn
_ROUNDING: Final = 1e-9
type Kind = tuple[str, str, str, str]  # series, workload, RL library, minibatch rule


@dataclass(frozen=True, kw_only=True)
class TwinPair:
    """A case and its twin: the times of their completed rounds [s]."""

    case_id: str
    times_s: tuple[float, ...]
    twin_times_s: tuple[float, ...]

    @property
    def median_s(self) -> float:
        return statistics.median(self.times_s)

    @property
    def twin_median_s(self) -> float:
        return statistics.median(self.twin_times_s)

    @property
    def difference(self) -> float:
        """Relative difference of the medians; positive if the twin took longer."""
        return self.twin_median_s / self.median_s - 1

    @property
    def noise(self) -> float:
        """Relative difference of medians that ``NOISE_LEVEL`` of all splits of the rounds do not exceed.

        It is at least the difference of the split that ran. One round each has only one split.
        """
        distances = sorted(apart(twin_s / case_s - 1) for case_s, twin_s in self._dealt_medians_s())
        return max(distances[math.ceil(NOISE_LEVEL * len(distances)) - 1], apart(self.difference))

    def _dealt_medians_s(self) -> Iterator[tuple[float, float]]:
        times_s, rounds = self.times_s + self.twin_times_s, len(self.times_s)
        places = range(len(times_s))
        ways: Iterator[Sequence[int]] = combinations(places, rounds)
        if math.comb(len(times_s), rounds) > _MAX_WAYS:
            draw = random.Random(0)  # noqa: S311 - fixed, so that everyone who checks a figure draws the same
            ways = (draw.sample(places, rounds) for _ in range(_MAX_WAYS))
        for way in ways:
            of_case = set(way)
            yield (
                statistics.median(times_s[place] for place in places if place in of_case),
                statistics.median(times_s[place] for place in places if place not in of_case),
            )


def is_twin(case: Case) -> bool:
    return case.case_id.endswith(SUFFIX)


def with_twins(cases: Sequence[Case]) -> list[Case]:
    """Return ``cases`` in their order, each series' baseline followed by its twin.

    The baseline is the first case of a series on the fewest ranks. Single-part tests have no twin: they explain
    figures and are not compared between machines.
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


def baseline_of(case: Case, first_cases: Mapping[Kind, Case]) -> Case | None:
    """The case that decides with ``case`` when it has enough rounds; None if it is a baseline or a twin itself.

    ``first_cases``: ``first_of_kind`` of all cases.
    """
    first = first_cases.get(_kind(case), case)
    return None if case.case_id in {first.case_id, first.case_id + SUFFIX} else first


def first_of_kind(cases: Iterable[Case]) -> dict[Kind, Case]:
    """The first case on the fewest ranks of those that differ in their work or ranks alone; no twins."""
    first: dict[Kind, Case] = {}
    for case in cases:
        if not is_twin(case) and case.world_size < first.setdefault(_kind(case), case).world_size:
            first[_kind(case)] = case
    return first


def _kind(case: Case) -> Kind:
    return case.series, case.workload, case.rl_library, case.minibatch_rule


def twin_pairs(results: Sequence[CaseResult]) -> tuple[TwinPair, ...]:
    """The pairs of cases and twins that both have a completed round."""
    by_id = {result.case.case_id: completed_times_s(result.rounds) for result in results}
    return tuple(
        TwinPair(
            case_id=case_id,
            times_s=tuple(times_s),
            twin_times_s=tuple(twin_s),
        )
        for case_id, times_s in by_id.items()
        if times_s and (twin_s := by_id.get(case_id + SUFFIX))
    )


def noise_budget(pairs: Sequence[TwinPair]) -> float | None:
    """The largest noise of any pair; None without a pair."""
    return max((pair.noise for pair in pairs), default=None)


def apart(change: float) -> float:
    """The size of a relative change. Doubling and halving have the same size, 1."""
    return max(1 + change, 1 / (1 + change)) - 1


def is_within(change: float, noise: float) -> bool:
    """Whether a relative change is at most ``noise``. A pair is within its own noise."""
    return apart(change) <= noise + _ROUNDING


def write_noise(pairs: Sequence[TwinPair], path: Path) -> None:
    """Write the noise budget and its pairs, for comparisons and for checks."""
    stored = [{**plain(pair), "difference": pair.difference, "noise": pair.noise} for pair in pairs]
    replace_json({"noise_budget": noise_budget(pairs), "pairs": stored}, path)
