"""How often intervals of ratios contain the truth: over stored runs between which nothing differs, and simulated. Pure.

Each check has ratios whose truth is known. Beside the model of ``suite.statistics.series_model`` stands the unpaired
interval (Welch) that was used before, from the same runs.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from reports.display.html import Html, html_table
from reports.sets.version import Version
from suite.schema.record import RunRecord
from suite.statistics.intervals import Estimate, ratio_of
from suite.statistics.reduce import counted_iterations, iteration_times_s
from suite.statistics.series_model import RunTime, SeriesModel, run_time
from suite.statistics.twins import SUFFIX, is_twin

ENOUGH: Final = 6  # runs or blocks, so that a half of them has an interval
LEAST_TURNS: Final = 4
MOST_WAYS: Final = 10  # to divide one configuration, or the blocks of two
SIMULATIONS: Final = 1500
BLOCKS: Final = 4
NOISIER: Final = 3  # times as much as the other configurations

type Series = Sequence[RunRecord]


@dataclass(frozen=True, kw_only=True)
class Check:
    """Ratios of one kind: how many intervals contain the truth, and how wide they are."""

    name: str
    ratios: int
    coverage: float
    half_width: float  # median, of the logarithm
    old_coverage: float
    old_half_width: float


def checks(version: Version) -> tuple[Check, ...]:
    """Every check that the version and older ones have runs for, the simulations last."""
    series = series_of(version)
    return (
        *_check("Halves of the runs of one configuration", _halves(series)),
        *_check("A baseline against its repeat", _repeats(series)),
        *_check("Every other turn of the same runs", _turns(series)),
        *_check("Half of the blocks against the other half", _blocks(series)),
        *_check(f"Simulated, {BLOCKS} blocks", _simulated(series, noisy=False)),
        *_check(
            f"Simulated, {BLOCKS} blocks, one configuration {NOISIER} times noisier", _simulated(series, noisy=True)
        ),
    )


def table(version: Version) -> Html:
    """The checks, old beside new."""
    return html_table(
        ["Check", "Ratios", "Contain the truth", "Width", "Unpaired: contain it", "Width"],
        (
            [
                check.name,
                f"{check.ratios:,}",
                f"{check.coverage:.1%}",
                f"±{check.half_width:.1%}",
                f"{check.old_coverage:.1%}",
                f"±{check.old_half_width:.1%}",
            ]
            for check in checks(version)
        ),
        label="How often intervals contain the truth",
    )


def series_of(version: Version) -> list[Series]:
    """The runs of each series and RL library of each set, of older versions too, on GPUs and with warm kernels."""
    series: dict[tuple[str, ...], list[RunRecord]] = defaultdict(list)
    for of_version in (version, *version.older):
        for of_set in of_version.sets:
            for result in of_set.campaign.with_twins:
                case = result.case
                if (case.device, case.kernel_cache) == ("cuda", "kept"):
                    key = of_version.name, of_set.name, case.series, case.rl_library, case.workload
                    series[key] += result.completed
    return list(series.values())


@dataclass(frozen=True)
class _Ratio:
    """Runs of the configurations ``one`` and ``two``, and the logarithm of the true ratio of their times."""

    runs: Sequence[RunTime]
    truth: float = 0.0
    beside: Sequence[RunTime] = ()  # with a ratio that is equally true; then the truth is that both are equal


def _check(name: str, ratios: Iterable[_Ratio]) -> Iterator[Check]:
    pairs = [(_outcome(ratio, _by_model), _outcome(ratio, _unpaired)) for ratio in ratios]
    known = [(new, old) for new, old in pairs if new and old]
    if known:
        yield Check(
            name=name,
            ratios=len(known),
            coverage=float(np.mean([is_inside for (is_inside, _), _ in known])),
            half_width=float(np.median([width for (_, width), _ in known])),
            old_coverage=float(np.mean([is_inside for _, (is_inside, _) in known])),
            old_half_width=float(np.median([width for _, (_, width) in known])),
        )


def _outcome(ratio: _Ratio, estimate: Callable[[Sequence[RunTime]], Estimate]) -> tuple[bool, float] | None:
    """Whether the interval contains the truth, and half its width; None for too few runs."""
    if not ratio.runs:
        return None
    estimates = [estimate(runs) for runs in (ratio.runs, ratio.beside) if runs]
    intervals = [one.interval for one in estimates if one.interval]
    if len(intervals) < len(estimates):
        return None
    width = math.hypot(*(math.log(high / low) / 2 for low, high in intervals))
    value = math.log(estimates[0].value) - (math.log(estimates[1].value) if ratio.beside else ratio.truth)
    return abs(value) <= width, width


def _by_model(runs: Sequence[RunTime]) -> Estimate:
    return SeriesModel(runs).ratio("two", "one")


def _unpaired(runs: Sequence[RunTime]) -> Estimate:
    one, two = ([math.exp(run.log_time) for run in runs if run.configuration == name] for name in ("one", "two"))
    return ratio_of(two, one)


def _halves(series: Sequence[Series]) -> Iterator[_Ratio]:
    for records in series:
        for runs in _by_configuration(map(run_time, records)).values():
            if len(runs) >= ENOUGH:
                ways = itertools.combinations(range(len(runs)), len(runs) // 2)
                for half in itertools.islice(ways, MOST_WAYS):
                    named = [replace(run, block=None, configuration=_name(i in half)) for i, run in enumerate(runs)]
                    yield _Ratio(named)


def _repeats(series: Sequence[Series]) -> Iterator[_Ratio]:
    """Baselines that ran twice, in a model with all other runs of their series."""
    for records in series:
        twins = {record.case.case_id.removesuffix(SUFFIX) for record in records if is_twin(record.case)}
        runs = [(record.case.case_id, run_time(record)) for record in records]
        for baseline in twins:
            names = {baseline: "one", baseline + SUFFIX: "two"}
            yield _Ratio([replace(run, configuration=names.get(case_id, run.configuration)) for case_id, run in runs])


def _turns(series: Sequence[Series]) -> Iterator[_Ratio]:
    """Each run as two that took turns with each other."""
    for records in series:
        by_configuration = defaultdict(list)
        for record in records:
            if record.turns and record.turns.turns >= LEAST_TURNS:
                by_configuration[record.case.case_id].append(record)
        for own in by_configuration.values():
            even = own[: len(own) // 2 * 2]  # so that each half has as many of each turn
            yield _Ratio([run for index, record in enumerate(even) for run in _every_other_turn(record, index)])


def _every_other_turn(record: RunRecord, block: int) -> Iterator[RunTime]:
    times_s, turns = iteration_times_s(record), record.ranks[0].samples["turn"]
    for is_odd in (False, True):
        own = [times_s[i] for i in counted_iterations(record) if ((turns[i] or 0) + block) % 2 == is_odd]
        if own:
            log_time = math.log(math.fsum(own) / len(own))
            yield RunTime(configuration=_name(is_odd), block=block, log_time=log_time, log_probe=None)


def _blocks(series: Sequence[Series]) -> Iterator[_Ratio]:
    """The ratio of two configurations in half of the blocks that they share, and in the other half."""
    for records in series:
        runs = [run for run in map(run_time, records) if run.block is not None]
        blocks_of = {name: {run.block for run in own} for name, own in _by_configuration(runs).items()}
        for first, second in itertools.combinations(blocks_of, 2):
            shared = sorted(blocks_of[first] & blocks_of[second], key=str)
            names = {first: "one", second: "two"}
            named = [replace(run, configuration=names.get(run.configuration, run.configuration)) for run in runs]
            if len(shared) >= ENOUGH:
                for half in itertools.islice(itertools.combinations(shared, len(shared) // 2), MOST_WAYS):
                    rest = [block for block in shared if block not in half]
                    own, beside = ([run for run in named if run.block in part] for part in (half, rest))
                    yield _Ratio(own, beside=beside)


def _simulated(series: Sequence[Series], *, noisy: bool) -> Iterator[_Ratio]:
    """Three configurations and a repeat, with the spread of stored blocks and of what is left in them."""
    block_effects, residuals = _spreads(series)
    if len(residuals) < ENOUGH:
        return
    generator = np.random.default_rng(20261130)
    for _ in range(SIMULATIONS):
        runs = []
        for block, effect in enumerate(generator.choice(block_effects, BLOCKS)):
            for name, level in (("one", 0.0), ("one", 0.0), ("two", 1.0), ("three", 2.0)):
                own = generator.choice(residuals) * (NOISIER if noisy and name == "two" else 1)
                runs.append(RunTime(configuration=name, block=block, log_time=level + effect + own, log_probe=None))
        yield _Ratio(runs, truth=1.0)


def _spreads(series: Sequence[Series]) -> tuple[list[float], list[float]]:
    """Effects of blocks, and what is left of each run; both scaled to the degrees of freedom that they have."""
    effects, residuals = [], []
    for records in series:
        runs = [run for run in map(run_time, records) if run.block is not None]
        names, blocks = (sorted({getattr(run, name) for run in runs}) for name in ("configuration", "block"))
        freedom = len(runs) - len(names) - len(blocks) + 1
        if len(names) < 2 or len(blocks) < 2 or freedom < 1:  # noqa: PLR2004  (a pair of each)
            continue
        design = np.array(
            [[*(run.configuration == name for name in names), *(run.block == b for b in blocks)] for run in runs], float
        )
        y = np.array([run.log_time for run in runs])
        solved = np.linalg.lstsq(design, y, rcond=None)[0]
        left = y - design @ solved
        residuals += (left * math.sqrt(len(runs) / freedom)).tolist()
        of_blocks = solved[len(names) :] - solved[len(names) :].mean()
        effects += (of_blocks * math.sqrt(len(blocks) / (len(blocks) - 1))).tolist()
    return effects, residuals


def _by_configuration(runs: Iterable[RunTime]) -> Mapping[str, list[RunTime]]:
    found: dict[str, list[RunTime]] = defaultdict(list)
    for run in runs:
        found[run.configuration].append(run)
    return found


def _name(is_second: bool) -> str:
    return "two" if is_second else "one"
