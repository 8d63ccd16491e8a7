"""The formulas of figures: a closed list. Pure.

A figure is a kind, a column, and a selection of runs; those of two configurations have a second selection, which they
are divided by. A product has other figures in place of runs. ``verify`` has the same list with code of its own, so a
new kind is written twice.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import polars as pl

from reports.data.rewards import CONVERGED_SHARE, LEARNED_SUCCESS, Levels, converged_reward
from reports.figures.compare import Row, Runs
from suite.schema.record import ALONE_SUFFIX
from suite.statistics.intervals import Estimate, mean_of, product_of, product_of_means
from suite.statistics.machine_model import MachineModel, MachineRuns
from suite.statistics.speed import SCALES_EFFICIENCY

type Status = Literal["clear", "within noise", "too few runs"]
type Selection = Mapping[str, str]  # column -> value


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """A figure that is to be computed."""

    id: str
    kind: str
    column: str
    of: Selection
    over: Selection | None = None
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A declaration with its value; None where no run has it."""

    declaration: Declaration
    value: float | None
    low: float | None = None
    high: float | None = None
    runs: int
    status: Status | None = None  # of a ratio


def evaluated(declarations: Iterable[Declaration], runs: Runs) -> Iterator[Figure]:
    """Yield the figures; a product comes after its factors. Raises KeyError for an unknown kind, column or factor."""
    figures: dict[str, Figure] = {}
    for own in declarations:
        if own.id in figures and figures[own.id].declaration != own:
            raise ValueError(f"the figure {own.id} is declared twice")
        figure = _product(own, figures) if own.kind == "product" else KINDS[own.kind](own, runs)
        figures[own.id] = figure
        yield figure


def _product(declaration: Declaration, figures: Mapping[str, Figure]) -> Figure:
    """The product of figures, each to the power that ``of`` has for its id."""
    parts = [figures[name] for name in declaration.of]
    number = sum(part.runs for part in parts)
    factors = [
        Estimate(value=part.value, interval=None if part.low is None or part.high is None else (part.low, part.high))
        for part in parts
        if part.value is not None
    ]
    if len(factors) < len(parts):
        return _figure(declaration, None, number)
    value = product_of(factors, [float(power) for power in declaration.of.values()])
    return _figure(declaration, value, number, None if declaration.unit else _status(value))


def _selected(selection: Selection, runs: Runs) -> pl.DataFrame:
    return runs.completed.filter(
        ~pl.col("is_repeat"), *(pl.col(name).cast(pl.String) == value for name, value in selection.items())
    )


def _of_column(statistic: Callable[[Sequence[Any]], float | Estimate]) -> Callable[[Declaration, Runs], Figure]:
    """A statistic of the values of runs; of ``learned_reward/seed`` those of seeds, each the mean over its runs."""

    def figure(declaration: Declaration, runs: Runs) -> Figure:
        column, _, by = declaration.column.partition("/")
        rows = _selected(declaration.of, runs).drop_nulls(column)
        values = _of_seeds(rows, column) if by else rows[column].to_list()
        return _figure(declaration, statistic(values) if values else None, len(rows))

    return figure


def _of_seeds(rows: pl.DataFrame, column: str) -> list[float]:
    """The value of each seed: the mean over its runs that have one."""
    return rows.drop_nulls(column).group_by("seed").agg(pl.col(column).mean())[column].to_list()


def _share(declaration: Declaration, runs: Runs) -> Figure:
    """Sum of the column before ``/`` over that of the column after it, in runs that have both."""
    part, whole = declaration.column.split("/")
    rows = _selected(declaration.of, runs).select(part, whole).drop_nulls()
    total = float(sum(rows[whole]))
    return _figure(declaration, float(sum(rows[part])) / total if total else None, len(rows))


def _ratio(declaration: Declaration, runs: Runs) -> Figure:
    """Frames per second of ``of`` over those of ``over``, by the model of their series; the column has the times."""
    of, over, number = _both(declaration, runs)
    ratio = runs.ratio(of, over, iteration=declaration.column)
    return _figure(declaration, ratio, number, _status(ratio))


def _loss_seen(declaration: Declaration, runs: Runs) -> Figure:
    """The least loss of frames that would have made the ratio clear: as far as its interval reaches below it."""
    ratio = _ratio(declaration, runs)
    return _figure(declaration, 1 - ratio.low / ratio.value if ratio.low and ratio.value else None, ratio.runs)


def _share_kept(declaration: Declaration, runs: Runs) -> Figure:
    """The ratio over that of the GPUs: 1 is ideal. Clear: the interval lies on one side of 80 %."""
    of, over, number = _both(declaration, runs)
    kept = runs.ratio(of, over, iteration=declaration.column).mapped(lambda ratio: ratio * over["gpus"] / of["gpus"])
    return _figure(declaration, kept, number, _status(kept, against=SCALES_EFFICIENCY))


def _reward_to_reach(declaration: Declaration, runs: Runs) -> Figure:
    """The reward after 90 % of the rise that every run has; the column is that of rewards."""
    rows = _selected(declaration.of, runs)
    return _figure(declaration, _target(rows, runs, CONVERGED_SHARE), len(rows))


def _target(rows: pl.DataFrame, runs: Runs, share: float) -> float | None:
    """The reward after a part of the rise that every run has; None if they did not learn their task."""
    success = _of_seeds(rows, "learned_success")
    is_learned = not success or statistics.median(success) >= LEARNED_SUCCESS
    return converged_reward(list(runs.levels(rows).values()), share) if is_learned else None


def _to_reward(declaration: Declaration, runs: Runs) -> Figure:
    """How much of the column ``of`` needs to the reward to reach of ``over``: iterations times what one has.

    The mean over seeds, of each the mean over its runs; None unless every run of ``of`` gets there. Runs of one seed
    have no interval: it would say nothing of another.
    """
    needed = _needed(declaration, declaration.of, runs)
    return _figure(declaration, mean_of(list(_means(needed).values())) if _all_reach(needed) else None, _number(needed))


def _reached(declaration: Declaration, runs: Runs) -> Figure:
    """How many runs of ``of`` get to the reward to reach of ``over``, if there is one; any column of theirs will do."""
    needed = _needed(declaration, declaration.of, runs)
    number = sum(amount is not None for amounts in needed.values() for amount in amounts)
    has_reward = _target(_selected(declaration.over or {}, runs), runs, CONVERGED_SHARE) is not None
    return _figure(declaration, float(number) if has_reward else None, _number(needed))


def _seeds(declaration: Declaration, runs: Runs) -> Figure:
    """How many seeds ``of`` and ``over`` both have; the column is that of seeds."""
    of, over = (_selected(selection or {}, runs) for selection in (declaration.of, declaration.over))
    column = declaration.column
    return _figure(declaration, float(len({*of[column]} & {*over[column]})), len(of))


def _sooner(declaration: Declaration, runs: Runs) -> Figure:
    """How many times as much of the column ``over`` needs to its reward as ``of``, the mean over seeds that both have.

    One seed of two configurations begins with equal parameters, so it says more than different ones. None unless every
    run of both has the reward, and for one seed: it would say nothing of another.
    """
    of, over = (_needed(declaration, selection or {}, runs) for selection in (declaration.of, declaration.over))
    sooner, seeds = None, sorted(of.keys() & over.keys())
    if len(seeds) > 1 and _all_reach(of) and _all_reach(over):
        sooner = mean_of([_means(over)[seed] / _means(of)[seed] for seed in seeds])
    return _figure(declaration, sooner, _number(of) + _number(over), _status(sooner) if sooner else None)


def _differs(declaration: Declaration, runs: Runs) -> Figure:
    """How far rewards of ``of`` are from those of ``over`` where it is most, in parts of the rise.

    The mean over pairs of runs of one seed. Equal selections: of one run from another.
    """
    of, over = (_by_run(selection or {}, runs) for selection in (declaration.of, declaration.over))
    pairs = [
        levels.largest_difference(other_levels)
        for run, (seed, levels) in of.items()
        for other, (other_seed, other_levels) in over.items()
        if run != other and seed == other_seed
    ]
    known = [share for share in pairs if share is not None]
    return _figure(declaration, statistics.fmean(known) if known else None, len({*of, *over}))


def _by_run(selection: Selection, runs: Runs) -> Mapping[tuple[str, str, int], tuple[int, Levels]]:
    """The seed and the rewards of each selected run."""
    rows, names = _selected(selection, runs), ("set", "configuration", "run")
    levels, keys = runs.levels(rows), rows.select(*names, "seed").iter_rows()
    return {(set_name, name, run): (seed, levels[set_name, run]) for set_name, name, run, seed in keys}


type _Needed = Mapping[int, Sequence[float | None]]  # by seed, of each of its runs; None: it never got there


def _needed(declaration: Declaration, selection: Selection, runs: Runs) -> _Needed:
    """Iterations of selected runs to the reward that ``over`` sets, times their values in the column.

    A column may end with the part of the rise that the reward is after, such as ``iteration_s/0.6``.
    """
    column, _, share = declaration.column.partition("/")
    own, over = (_selected(part or {}, runs) for part in (selection, declaration.over))
    target = _target(over, runs, float(share or CONVERGED_SHARE))
    levels, needed = runs.levels(own), dict[int, list[float | None]]()
    for set_name, run, seed, amount in own.select("set", "run", "seed", column).iter_rows():
        iterations = None if target is None else levels[set_name, run].iterations_to(target)
        needed.setdefault(seed, []).append(None if iterations is None else iterations * amount)
    return needed


def _all_reach(needed: _Needed) -> bool:
    return bool(needed) and all(None not in amounts for amounts in needed.values())


def _means(needed: _Needed) -> Mapping[int, float]:
    """Of each seed the mean over its runs, all of which have the reward."""
    return {seed: mean_of([own for own in amounts if own is not None]).value for seed, amounts in needed.items()}


def _number(needed: _Needed) -> int:
    return sum(map(len, needed.values()))


def _status(ratio: Estimate, against: float = 1.0) -> Status:
    if ratio.interval is None:
        return "too few runs"
    return "within noise" if ratio.interval[0] <= against <= ratio.interval[1] else "clear"


def _both(declaration: Declaration, runs: Runs) -> tuple[Row, Row, int]:
    frames = [_selected(selection or {}, runs) for selection in (declaration.of, declaration.over)]
    of, over = (frame.row(0, named=True) for frame in frames)
    return of, over, sum(map(len, frames))


def _published(declaration: Declaration, runs: Runs) -> Figure:
    """A number that somebody printed, with what is rounded to it. ``over``: it, or ours, for each GPU over another."""
    of, over, number = declaration.of, declaration.over, 0
    if "value" in of:
        gpus, own = int(of["gpus"]), _printed(of)
    else:
        rows = _selected(of, runs)
        values = rows[declaration.column].drop_nulls().to_list()
        if not values:
            return _figure(declaration, None, 0)
        gpus, own, number = rows["gpus"][0], mean_of(values), len(values)
    if over is None:
        return _figure(declaration, own, number)
    theirs, factor = _printed(over), int(over["gpus"]) / gpus
    interval = None
    if own.interval and theirs.interval:
        interval = factor * own.interval[0] / theirs.interval[1], factor * own.interval[1] / theirs.interval[0]
    return _figure(declaration, Estimate(value=factor * own.value / theirs.value, interval=interval), number)


def _printed(side: Selection) -> Estimate:
    value, least, most = (float(side[name]) for name in ("value", "least", "most"))
    return Estimate(value=value, interval=(least, most))


def _slope(declaration: Declaration, runs: Runs) -> Figure:
    """How far the time of an iteration of a series goes with that of the core probe."""
    rows = _selected(declaration.of, runs).drop_nulls(declaration.column)
    if rows.is_empty():
        return _figure(declaration, None, 0)
    first = rows.row(0, named=True)
    return _figure(declaration, runs.model(first["set"], [first], needs_probe=True).core_slope, len(rows))


def _in_turns(declaration: Declaration, runs: Runs) -> Figure:
    """The time of an iteration in turns over that alone, mean of the configurations that ran both ways."""
    own = runs.every.filter(
        pl.col(declaration.column).is_not_null() & ~pl.col("is_repeat"),
        *(pl.col(name) == value for name, value in declaration.of.items()),
    )
    times_s: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for row in own.iter_rows(named=True):
        both = times_s.setdefault((row["set"], row["configuration"].removesuffix(ALONE_SUFFIX)), ([], []))
        if row["is_alone"] or row["block"]:
            both[row["is_alone"]].append(row[declaration.column])
    samples = [sample for both in times_s.values() if all(both) for sample in both]
    if not samples:
        return _figure(declaration, None, 0)
    share = 2 / len(samples)  # of one configuration in the mean
    ratio = product_of_means(samples, [share, -share] * (len(samples) // 2))
    return _figure(declaration, ratio, sum(map(len, samples)), _status(ratio))


def _machines(declaration: Declaration, runs: Runs) -> tuple[MachineRuns, ...]:
    """Every machine that ran the training of a declaration; the column has the times."""
    rows = _selected({"one_gpu_training": declaration.of["one_gpu_training"]}, runs)
    by_machine: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows.iter_rows(named=True):
        logs = math.log(row[declaration.column]), math.log(row["mean_probe_us"] / 1e6)
        by_machine.setdefault((row["machine"], row["gpu_model"]), []).append(logs)
    return tuple(MachineRuns(label=label, gpu=gpu, runs=tuple(own)) for (label, gpu), own in by_machine.items())


def _machines_ratio(declaration: Declaration, runs: Runs) -> Figure:
    """Frames per second at equal core speed, of a GPU model or of one machine, over those of another GPU model."""
    of, over = (_selected(selection or {}, runs) for selection in (declaration.of, declaration.over))
    every, labels = _machines(declaration, runs), set(of["machine"])
    gpu, base = of["gpu_model"][0], over["gpu_model"][0]
    model = MachineModel(every)
    ratio = model.ratio(base, gpu)
    if gpu == base or labels < {machine.label for machine in every if machine.gpu == gpu}:
        (machine,) = (machine for machine in every if machine.label in labels and machine.gpu == gpu)
        ratio = Estimate(value=model.time_s(base).value / model.time_of(machine).value, interval=None)
    return _figure(declaration, ratio, len(of) + len(over), _status(ratio))


def _machines_slope(declaration: Declaration, runs: Runs) -> Figure:
    """How far the time of an iteration goes with the core probe, from machine to machine."""
    return _figure(declaration, MachineModel(_machines(declaration, runs)).slope, len(_selected(declaration.of, runs)))


def _figure(declaration: Declaration, own: Estimate | float | None, runs: int, status: Status | None = None) -> Figure:
    value, interval = (own.value, own.interval) if isinstance(own, Estimate) else (own, None)
    low, high = interval or (None, None)
    return Figure(declaration=declaration, value=value, low=low, high=high, runs=runs, status=status)


KINDS: Final[Mapping[str, Callable[[Declaration, Runs], Figure]]] = {
    "mean": _of_column(mean_of),  # geometric
    "average": _of_column(statistics.fmean),
    "median": _of_column(statistics.median),
    "least": _of_column(min),
    "most": _of_column(max),
    "count": _of_column(lambda values: len(set(values))),  # of different values
    "share": _share,
    "ratio": _ratio,
    "loss_seen": _loss_seen,
    "share_kept": _share_kept,
    "reward_to_reach": _reward_to_reach,
    "to_reward": _to_reward,
    "reached": _reached,
    "seeds": _seeds,
    "sooner": _sooner,
    "differs": _differs,
    "slope": _slope,
    "in_turns": _in_turns,
    "published": _published,
    "machines_ratio": _machines_ratio,
    "machines_slope": _machines_slope,
}
