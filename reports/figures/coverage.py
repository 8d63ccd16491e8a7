"""How often intervals of ratios contain the truth: over stored runs between which nothing differs, and simulated.

Each check has ratios whose truth is known. Beside the model of ``suite.statistics.series_model`` stands the unpaired
interval (Welch) that was used before, from the same runs. ``coverage.csv`` has the figures of all versions' campaigns
but those of others, so that a contribution does not change them. ``python -m reports.figures.coverage RESULTS`` writes
it anew, and a test computes it again.
"""

import csv
import itertools
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from reports.sets.file_errors import told_when_unreadable, told_when_unwritable
from reports.sets.version import Version, versions_below
from suite.options.command_line import Parser, exit_code_of, results_path
from suite.schema.record import RunRecord
from suite.statistics.intervals import Estimate, ratio_of
from suite.statistics.reduce import counted_iterations, iteration_times_s
from suite.statistics.series_model import RunTime, SeriesModel, run_time
from suite.statistics.twins import SUFFIX, is_twin

FILE: Final = Path(__file__).with_name("coverage.csv")
DIGITS: Final = 6  # that are stored
ENOUGH: Final = 6  # runs or blocks, so that a half of them has an interval
LEAST_TURNS: Final = 4
MOST_WAYS: Final = 10  # to divide one configuration, or the blocks of two
SIMULATIONS: Final = 8000
BLOCKS: Final = 4
NOISIER: Final = 3  # times as much as the other configurations

type Series = Sequence[RunRecord]


def coverage_values(versions: Sequence[Version]) -> Mapping[str, float]:
    """Return the figures by id: of each check its ratios, the share that contains the truth, and half its width."""
    series = [own for version in versions for own in series_of(version)]
    ratios: Mapping[str, Iterable[_Ratio]] = {
        "halves": _halves(series),
        "repeats": _repeats(series),
        "turns": _turns(series),
        "blocks": _blocks(series),
        "simulated": _simulated(series, noisy=False),
        "simulated_noisy": _simulated(series, noisy=True),
    }
    return {f"coverage/{check}/{name}": value for check, own in ratios.items() for name, value in _figures(own)}


def stored() -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of ``coverage.csv`` by their ids, as pages show figures; without an interval of their own."""
    with FILE.open(encoding="utf-8") as file:
        values = {row["id"]: float(row["value"]) for row in csv.DictReader(file)}
    return {name: {"id": name, "value": value, "low": None, "high": None} for name, value in values.items()}


def series_of(version: Version) -> list[Series]:
    """The runs of each series and RL library of each own set whose times mean something, with warm kernels."""
    series: dict[tuple[str, ...], list[RunRecord]] = defaultdict(list)
    for result_set in version.sets:
        for result in result_set.campaign.with_twins if result_set.contributor is None else ():
            case = result.case
            if case.has_speed and case.kernel_cache == "kept":
                series[result_set.name, case.series, case.rl_library, case.workload] += result.completed
    return list(series.values())


@dataclass(frozen=True)
class _Ratio:
    """Runs of the configurations ``one`` and ``two``, and the logarithm of the true ratio of their times."""

    runs: Sequence[RunTime]
    truth: float = 0.0
    beside: Sequence[RunTime] = ()  # with a ratio that is equally true; then the truth is that both are equal


def _figures(ratios: Iterable[_Ratio]) -> Iterator[tuple[str, float]]:
    """Yield nothing where no ratio has both intervals."""
    pairs = [
        (_outcome(ratio, lambda runs: SeriesModel(runs).ratio("two", "one")), _outcome(ratio, _unpaired))
        for ratio in ratios
    ]
    known = [(model, unpaired) for model, unpaired in pairs if model and unpaired]
    if known:
        yield "ratios", len(known)
        for prefix, outcomes in zip(("", "unpaired_"), zip(*known, strict=True), strict=True):
            yield f"{prefix}contain", float(np.mean([is_inside for is_inside, _ in outcomes]))
            yield f"{prefix}half_width", float(np.median([width for _, width in outcomes]))  # of the logarithm


def _outcome(ratio: _Ratio, estimate: Callable[[Sequence[RunTime]], Estimate]) -> tuple[bool, float] | None:
    """Whether the interval contains the truth, and half its width; None for too few runs."""
    if not ratio.runs:
        return None
    estimates = [estimate(runs) for runs in (ratio.runs, ratio.beside) if runs]
    intervals = [own.interval for own in estimates if own.interval]
    if len(intervals) < len(estimates):
        return None
    width = math.hypot(*(math.log(high / low) / 2 for low, high in intervals))
    value = math.log(estimates[0].value) - (math.log(estimates[1].value) if ratio.beside else ratio.truth)
    return abs(value) <= width, width


def _unpaired(runs: Sequence[RunTime]) -> Estimate:
    first, second = ([math.exp(run.log_time) for run in runs if run.configuration == name] for name in ("one", "two"))
    return ratio_of(second, first)


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
    """Each run as two that took turns with each other: in half of the runs, the odd turns are the first of them."""
    for records in series:
        by_configuration = defaultdict(list)
        for record in records:
            if record.turns and record.turns.turns >= LEAST_TURNS:
                by_configuration[record.case.case_id].append(record)
        for own in by_configuration.values():
            others = range(1, len(own) // 2 * 2)  # beside run 0, so that no way is the mirror image of another
            ways = itertools.combinations(others, len(own) // 2 - 1) if others else ()
            for odd_first in itertools.islice(ways, MOST_WAYS):
                runs = [_every_other_turn(own[i], i, is_odd_first=i in (0, *odd_first)) for i in (0, *others)]
                yield _Ratio([half for halves in runs for half in halves])


def _every_other_turn(record: RunRecord, block: int, *, is_odd_first: bool) -> Iterator[RunTime]:
    times_s, turns = iteration_times_s(record), record.ranks[0].samples["turn"]
    in_turns = [(turn, times_s[i]) for i in counted_iterations(record) if (turn := turns[i]) is not None]
    for is_odd in (False, True):
        own = [time_s for turn, time_s in in_turns if turn % 2 == is_odd]
        if own:
            log_time, name = math.log(math.fsum(own) / len(own)), _name(is_odd != is_odd_first)
            yield RunTime(configuration=name, block=block, log_time=log_time, log_probe=None)


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
    levels = (("one", 0.0), ("one", 0.0), ("two", 1.0), ("three", 2.0))
    for _ in range(SIMULATIONS):
        effects = generator.choice(block_effects, BLOCKS)
        left = generator.choice(residuals, (BLOCKS, len(levels)))
        runs = [
            RunTime(
                configuration=name,
                block=block,
                log_time=level + effects[block] + own * (NOISIER if noisy and name == "two" else 1),
                log_probe=None,
            )
            for block in range(BLOCKS)
            for (name, level), own in zip(levels, left[block], strict=True)
        ]
        yield _Ratio(runs, truth=1.0)


def _spreads(series: Sequence[Series]) -> tuple[np.ndarray, np.ndarray]:
    """Effects of blocks, and what is left of each run; both scaled to the degrees of freedom that they have."""
    effects: list[float] = []
    residuals: list[float] = []
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
    return np.array(effects), np.array(residuals)


def _by_configuration(runs: Iterable[RunTime]) -> Mapping[str, list[RunTime]]:
    grouped: dict[str, list[RunTime]] = defaultdict(list)
    for run in runs:
        grouped[run.configuration].append(run)
    return grouped


def _name(is_second: bool) -> str:
    return "two" if is_second else "one"


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(prog="python -m reports.figures.coverage", description=f"Write {FILE.name} from all versions.")
    parser.add_argument("results", type=results_path, metavar="RESULTS")
    results = parser.read(arguments).results
    with told_when_unreadable(results), told_when_unwritable(FILE), FILE.open("w", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("id", "value"))
        values = coverage_values([*versions_below(results)][::-1])  # the newest first
        rows.writerows((name, f"{value:.{DIGITS}g}") for name, value in values.items())
    print(FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
