"""How often intervals contain the truth: by simulation, and over stored repeat measurements. Pure.

The truth of a figure is the median of the process values that its case would give on this machine in ever more rounds;
that of a ratio is the ratio of two such medians.

A simulated process has an effect of its own, one that all cases of a round share (a block), and iterations of two
kinds, quick and slow. All sizes are estimated from stored rounds. A repeat measurement tests the same without a model:
if the twin replaces the baseline in a ratio, the ratio should stay inside its interval.

Student's t with Welch's degrees of freedom was the first candidate, and passed both tests. So nothing else was tried:
no pairing by rounds, no variance pooled over cases, no added noise of the repeats.
"""

import math
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports.analysis.rows import case_times
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, Interval, mean_of, ratio_of
from suite.statistics.reduce import steady_iteration_times_s
from suite.statistics.twins import SUFFIX, is_twin


@dataclass(frozen=True, kw_only=True)
class TwinRatio:
    """Time per iteration of a baseline over that of another case of its series."""

    case_id: str
    baseline_id: str
    ratio: Estimate
    by_twin: float  # the ratio if the twin replaces the baseline

    @property
    def is_inside(self) -> bool:
        return _contains(self.ratio.interval, self.by_twin)


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """The steady iterations of one stored round, as two kinds; logarithms of seconds."""

    iterations: int
    slow_share: float
    slow_by: float
    spread: float  # standard deviation within a kind


@dataclass(frozen=True, kw_only=True)
class Components:
    """What makes the values of processes differ; standard deviations of logarithms."""

    process: float  # without what the sampling of its iterations adds
    block: float
    correlation: float  # of the values of two cases in the same round
    kinds: tuple[Kinds, ...]  # of every stored round


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """The part of simulated intervals that contains the truth."""

    processes: int
    figure: float
    ratio: float


# --- repeat measurements -----------------------------------------------------------------------------------------


def twin_ratios(results: Sequence[CaseResult]) -> tuple[TwinRatio, ...]:
    """Every ratio of one set whose baseline ran twice and whose three samples have enough rounds.

    ``results``: with the twins.
    """
    times_s = {result.case.case_id: list(case_times(result).times_s.values()) for result in results}
    measured = {result.case.case_id: result.case for result in results if _is_enough(times_s[result.case.case_id])}
    return tuple(
        TwinRatio(
            case_id=case_id,
            baseline_id=baseline_id,
            ratio=ratio_of(times_s[baseline_id], times_s[case_id]),
            by_twin=statistics.median(times_s[baseline_id + SUFFIX]) / statistics.median(times_s[case_id]),
        )
        for baseline_id, baseline in measured.items()
        if baseline_id + SUFFIX in measured
        for case_id, case in measured.items()
        if case.series == baseline.series and case_id != baseline_id and not is_twin(case)
    )


def _is_enough(times_s: Sequence[float]) -> bool:
    return len(times_s) >= MIN_ROUNDS_FOR_INTERVAL


# --- simulation --------------------------------------------------------------------------------------------------


def components(sets: Sequence[Sequence[CaseResult]]) -> Components:
    """Estimate the sizes from stored sets, by analysis of variance of cases by rounds.

    Sets are pooled by their residual degrees of freedom. Raises ValueError if no set has two cases with two common
    rounds.
    """
    tables = [table for results in sets if (table := _table(results))]
    if not tables:
        raise ValueError("no set has two cases with two common rounds, so no component can be estimated")
    kinds = tuple(_kinds(record) for results in sets for result in results for record in result.completed)
    degrees = sum(map(_residual_degrees, tables))
    residual = sum(map(_residual_sum, tables)) / degrees
    block = max(0.0, sum(_residual_degrees(table) * _block_variance(table) for table in tables) / degrees)
    sampled = statistics.variance(_iteration_medians(kinds, random.Random(0)))  # noqa: S311 - no secret
    return Components(
        process=math.sqrt(max(0.0, residual - sampled)),
        block=math.sqrt(block),
        correlation=block / (block + residual),
        kinds=kinds,
    )


def coverage(found: Components, processes: int, *, draws: int) -> Coverage:
    """Simulate ``draws`` campaigns of two cases that are alike, with this many processes each; a fixed seed."""
    generator = random.Random(processes)  # noqa: S311 - a simulation, not secrets
    medians = _iteration_medians(found.kinds, generator)
    own = [value + generator.gauss(0, found.process) for value in medians]
    truth = math.exp(statistics.median(value + generator.gauss(0, found.block) for value in own))
    figures = ratios = 0
    for _ in range(draws):
        blocks = [generator.gauss(0, found.block) for _ in range(processes)]
        one, other = ([math.exp(generator.choice(own) + block) for block in blocks] for _ in range(2))
        figures += _contains(mean_of(one).interval, truth)
        ratios += _contains(ratio_of(one, other).interval, 1.0)
    return Coverage(processes=processes, figure=figures / draws, ratio=ratios / draws)


def _contains(interval: Interval | None, value: float) -> bool:
    return interval is not None and interval[0] <= value <= interval[1]


def _iteration_medians(kinds: Sequence[Kinds], generator: random.Random) -> list[float]:
    """Logarithms of the median iteration of many processes: 20 of each stored round's kind, around its own median."""
    return [value for kind in kinds for value in _medians_of(kind, generator)]


def _medians_of(kind: Kinds, generator: random.Random) -> Iterator[float]:
    middle = kind.slow_by * (kind.slow_share > 1 / 2)
    for _ in range(20):
        yield (
            statistics.median(
                generator.gauss(kind.slow_by * (generator.random() < kind.slow_share), kind.spread)
                for _ in range(kind.iterations)
            )
            - middle
        )


def _kinds(record: RunRecord) -> Kinds:
    """Split the steady iterations of a round in two where the squares within both parts add up to least."""
    logs = sorted(map(math.log, steady_iteration_times_s(record)))
    splits = [(logs[:place], logs[place:]) for place in range(1, len(logs))] or [(logs, logs)]
    quick, slow = min(splits, key=lambda parts: _squares(parts[0]) + _squares(parts[1]))
    return Kinds(
        iterations=len(logs),
        slow_share=len(slow) / len(logs) if len(logs) > 1 else 0.0,
        slow_by=statistics.fmean(slow) - statistics.fmean(quick),
        spread=math.sqrt((_squares(quick) + _squares(slow)) / max(1, len(logs) - 2)),
    )


def _squares(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return math.fsum((value - mean) ** 2 for value in values)


def _table(results: Sequence[CaseResult]) -> list[list[float]]:
    """Logarithms of the times of cases by rounds, without the cases' means; [] for fewer than two of either."""
    timed = [times_s for result in results if len(times_s := case_times(result).times_s) > 1]
    numbers = sorted(set.intersection(*(set(times_s) for times_s in timed))) if timed else []
    if len(timed) < 2 or len(numbers) < 2:
        return []
    rows = [[math.log(times_s[number]) for number in numbers] for times_s in timed]
    return [[value - statistics.fmean(row) for value in row] for row in rows]


def _round_means(table: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.fmean(column) for column in zip(*table, strict=True)]


def _block_variance(table: Sequence[Sequence[float]]) -> float:
    """The variance of a round's mean beyond what the cases' own effects give it; below 0 by chance."""
    return statistics.variance(_round_means(table)) - _residual_sum(table) / _residual_degrees(table) / len(table)


def _residual_degrees(table: Sequence[Sequence[float]]) -> int:
    return (len(table) - 1) * (len(table[0]) - 1)


def _residual_sum(table: Sequence[Sequence[float]]) -> float:
    means = _round_means(table)
    return math.fsum((value - mean) ** 2 for row in table for value, mean in zip(row, means, strict=True))
