"""The formulas of figures: a closed list, each a function of a column and of rows of the table of runs. Pure.

Ratios come from one linear model of logarithms of times, solved in other steps than those of the pages: with an effect
of every configuration and every block of runs in turns, or of every GPU model. Where runs were alone, the core probe
explains a part too, with a slope that is pulled to 0.5.
"""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

import numpy as np

from reports.verification.runs import Row, levels

SLOPE: Final = 0.5  # to which that of the core probe is pulled
PULL: Final = 0.05  # as much as runs do whose probes have this sum of squares
LEAST_FREEDOM: Final = 3.0  # for an interval
LEAST_RUNS: Final = 3  # for the interval of a mean
# The kinds with a status: on which side of what they lie.
AGAINST: Final = {"ratio": 1.0, "share_kept": 0.8, "sooner": 1.0, "machines_ratio": 1.0, "in_turns": 1.0}
LEARNED: Final = 0.5  # of episodes: their success at the end
RISE: Final = 0.9  # of a reward, which is the one to reach
SERIES: Final = ("set", "series", "library", "workload")  # equal for the runs of one model

type Rows = Sequence[Row]
type Computed = tuple[float | None, tuple[float, float] | None, int]  # value, interval, and of how many runs
# A column, the runs ``of``, those ``over`` that they are divided by, and all that these may be compared through.
type Kind = Callable[[str, Rows, Rows, Rows], Computed]


def figure(kind: str, column: str, of: Rows, over: Rows, every: Rows) -> Mapping[str, float | str | None]:
    """Compute a figure under the names of ``figures.csv``; its value is None where the runs do not have it."""
    return _stored(KINDS[kind](column, of, over, every), AGAINST.get(kind))


def _stored(computed: Computed, against: float | None) -> Mapping[str, float | str | None]:
    """Return the value with the names of its columns, and on which side of ``against`` it lies."""
    value, interval, runs = computed
    low, high = interval or (None, None)
    status = None
    if against is not None and value is not None:
        status = "clear" if interval else "too few runs"
        if interval and interval[0] <= against <= interval[1]:
            status = "within noise"
    return {"value": value, "low": low, "high": high, "runs": runs, "status": status}


def product(text: str, figures: Mapping[str, Mapping[str, Any]], *, has_unit: bool) -> Mapping[str, float | str | None]:
    """Multiply figures to their powers; squares of the distances to the ends of intervals add, as logarithms."""
    factors = [(figures[name], float(power)) for name, power in (part.rsplit("=", 1) for part in text.split("&"))]
    runs, values = sum(own["runs"] for own, _ in factors), [own["value"] for own, _ in factors]
    if None in values:
        return _stored((None, None, runs), None)
    log, squares = 0.0, np.zeros(2)
    for own, power in factors:
        log += power * math.log(own["value"])
        ends = (own["low"], own["high"]) if power > 0 else (own["high"], own["low"])
        squares += [math.nan if end is None else (power * math.log(end / own["value"])) ** 2 for end in ends]
    below, above = map(float, np.sqrt(squares))
    interval = None if math.isnan(below) else (math.exp(log - below), math.exp(log + above))
    return _stored((math.exp(log), interval, runs), None if has_unit else 1.0)


# --- of the values of runs ---


def _of_values(statistic: Callable[[Sequence[Any]], Any]) -> Kind:
    def kind(column: str, of: Rows, *_: Rows) -> Computed:
        """Of ``learned_reward/seed`` the values are of seeds, each the mean over its runs; else of runs."""
        name, by = column.partition("/")[::2]
        own = [row for row in of if row[name] is not None]
        values = [row[name] for row in own]
        if by:
            values = [statistics.fmean(row[name] for row in own if row[by] == key) for key in {row[by] for row in own}]
        return statistic(values) if values else None, None, len(own)

    return kind


def _mean(column: str, of: Rows, *_: Rows) -> Computed:
    return _mean_of([row[column] for row in of if row[column] is not None])


def _mean_of(values: Sequence[float]) -> Computed:
    """The geometric mean with Student's interval of the logarithms."""
    if not values:
        return None, None, 0
    logs = [math.log(value) for value in values]
    return _estimate(statistics.fmean(logs), *_welch([logs]), len(values), LEAST_RUNS - 1)


def _estimate(log: float, variance: float, freedom: float, runs: int, least: float = LEAST_FREEDOM) -> Computed:
    """Return what has this logarithm; with an interval if ``freedom`` is enough to say how far it varies."""
    half = student_t(freedom) * math.sqrt(variance) if freedom >= least else None
    return math.exp(log), None if half is None else (math.exp(log - half), math.exp(log + half)), runs


@cache
def student_t(freedom: float) -> float:
    """Return t(0.975) from the density, integrated over the angle whose tangent is t/√freedom; freedom from 1."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        area = scale * angle / 2 * float(weights @ np.cos(angle / 2 * (nodes + 1)) ** (freedom - 1))
        low, high = (angle, high) if area < 0.975 - 0.5 else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def _welch(samples: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the variance of a sum of the means of samples, and its degrees of freedom; 0 if one has one value."""
    if min(map(len, samples)) == 1:
        return 0.0, 0.0
    parts = [(statistics.variance(sample) / len(sample), len(sample) - 1) for sample in samples]
    total = math.fsum(part for part, _ in parts)
    if total == 0:
        return 0.0, math.fsum(freedom for _, freedom in parts)
    return total, total**2 / math.fsum(part**2 / freedom for part, freedom in parts)


def _share(column: str, of: Rows, *_: Rows) -> Computed:
    """The sum of the column before ``/`` over that of the column after it, of runs that have both."""
    part, whole = column.split("/")
    both = [row for row in of if None not in (row[part], row[whole])]
    total = sum(row[whole] for row in both)
    return sum(row[part] for row in both) / total if total else None, None, len(both)


def _published(column: str, of: Rows, over: Rows, *_: Rows) -> Computed:
    """Return a printed number with the ends of its rounding; with ``over``: it, or ours, for each GPU over another."""

    def number(rows: Rows) -> tuple[Any, Any, int]:
        if "value" not in rows[0]:
            return _mean(column, rows)
        value, least, most = (float(rows[0][name]) for name in ("value", "least", "most"))
        return value, (least, most), 0

    value, ends, runs = number(of)
    if over and value is not None:
        (base, base_ends), factor = number(over)[:2], int(over[0]["gpus"]) / int(of[0]["gpus"])
        value = factor * value / base
        ends = ends and base_ends and (factor * ends[0] / base_ends[1], factor * ends[1] / base_ends[0])
    return value, ends, runs


def _in_turns(column: str, of: Rows, _: Rows, every: Rows) -> Computed:
    """The time in turns over that of copies alone, mean over configurations that have both; by Welch."""
    logs: dict[tuple[str, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    sets = {row["set"] for row in of}
    turning = [row for row in of if row["block"] is not None]
    for row in (*turning, *(row for row in every if row["is_alone"] and row["set"] in sets)):
        logs[row["set"], row["configuration"]][row["is_alone"]].append(math.log(row[column]))
    if not (pairs := [pair for pair in logs.values() if all(pair)]):
        return None, None, 0
    samples = [sample for pair in pairs for sample in pair]
    centre = statistics.fmean(statistics.fmean(turns) - statistics.fmean(alone) for turns, alone in pairs)
    variance, freedom = _welch(samples) if min(map(len, samples)) >= LEAST_RUNS else (0.0, 0.0)
    return _estimate(centre, variance / len(pairs) ** 2, freedom, sum(map(len, samples)), LEAST_RUNS - 1)


# --- of a linear model ---


class _Fit:
    """Least squares of ``y`` on the columns of ``design`` and on ``x``, the logarithm of the core probe."""

    def __init__(self, y: Any, x: Any, design: Any) -> None:
        def unexplained(values: Any) -> Any:
            return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]

        self.design, self.x, left = design, x, unexplained(x)
        self.squares = float(left @ left) + PULL  # that the slope is known by
        self.slope = float(left @ unexplained(y) + PULL * SLOPE) / self.squares
        self.y = y - self.slope * x  # at equal core speed
        self.freedom = float(len(y) - np.linalg.matrix_rank(design) - (1 - PULL / self.squares))
        self.variance = float(np.sum(unexplained(self.y) ** 2)) / max(self.freedom, 1.0)

    def slope_of_probe(self, number: int) -> Computed:
        """How far the time of an iteration goes with that of the core probe."""
        if self.squares < 2 * PULL or self.freedom < LEAST_FREEDOM:
            return None, None, number
        half = student_t(self.freedom) * math.sqrt(self.variance / self.squares)
        return self.slope, (self.slope - half, self.slope + half), number

    def variance_of(self, weights: Any) -> float:
        """The variance of the sum of ``y`` with these weights, whose slope is as well known as ``squares`` say."""
        return self.variance * (float(weights @ weights) + float(weights @ self.x) ** 2 / self.squares)


def _series(
    column: str, of: Rows, over: Rows, every: Rows, *, by_probe: bool = False
) -> tuple[_Fit, Rows, Sequence[str]]:
    """Fit all runs that share their series with the selected ones; with these runs, and their configurations."""
    series = {tuple(row[name] for name in SERIES) for row in (of[0], *over[:1])}
    runs = [run for run in every if not run["is_alone"] and tuple(run[name] for name in SERIES) in series]
    names, blocks = (list(dict.fromkeys(run[name] for run in runs)) for name in ("configuration", "block"))
    columns = [[run["configuration"] == name for run in runs] for name in names]
    columns += [[run["block"] == block for run in runs] for block in blocks]
    probes = [run["log_probe"] for run in runs]
    is_explained = (by_probe or None in blocks) and None not in probes
    x = np.array(probes, float) if is_explained else np.zeros(len(runs))
    return _Fit(np.log([run[column] for run in runs]), x, np.array(columns, float).T), runs, names


def _ratio(column: str, of: Rows, over: Rows, every: Rows, *, per_gpu: bool = False) -> Computed:
    """Frames per second of ``of`` over those of ``over``; the column has the times. ``per_gpu``: 1 is ideal."""
    factor = of[0]["frames_per_iteration"] / over[0]["frames_per_iteration"]
    factor *= over[0]["gpus"] / of[0]["gpus"] if per_gpu else 1
    fit, runs, names = _series(column, of, over, every)
    pair = over[0]["configuration"], of[0]["configuration"]
    contrast = np.array([(name == pair[0]) - (name == pair[1]) for name in names], float)
    contrast.resize(fit.design.shape[1])  # of a block there is no difference
    weights = contrast @ np.linalg.pinv(fit.design)  # of the runs in the difference
    is_joined = np.allclose(weights @ fit.design, contrast)  # by blocks that they share, or others with them
    if not is_joined:
        weights = _difference(*([run["configuration"] == name for run in runs] for name in pair))
    own, own_freedom = _own_variance(fit, runs, pair)
    lent = min(1.0, max(0.0, fit.freedom - own_freedom)) if is_joined else 0.0  # by the others of the series
    freedom = own_freedom + lent
    variance = (own_freedom * own + lent * fit.variance_of(weights)) / (freedom or 1.0)
    return _estimate(math.log(factor) + float(weights @ fit.y), variance, freedom, len(of) + len(over))


def _difference(is_of: Sequence[bool], is_over: Sequence[bool]) -> Any:
    """Return the weights by which the difference of two means is a sum."""
    return np.array(is_of) / sum(is_of) - np.array(is_over) / sum(is_over)


def _own_variance(fit: _Fit, runs: Rows, pair: tuple[str, str]) -> tuple[float, float]:
    """The variance of the difference of two configurations by their own runs, and its degrees of freedom."""
    values: dict[str, dict[Any, list[float]]] = {name: defaultdict(list) for name in pair}  # by block
    for run, value in zip(runs, fit.y, strict=True):
        if run["configuration"] in values:
            values[run["configuration"]][run["block"]].append(float(value))
    first, second = values.values()
    if len(shared := first.keys() & second.keys()) > 1:
        return _welch([[statistics.fmean(first[block]) - statistics.fmean(second[block]) for block in shared]])
    return _welch([[value for block in own.values() for value in block] for own in (first, second)])


def _slope(column: str, of: Rows, over: Rows, every: Rows) -> Computed:
    """How far the time of an iteration of a series goes with the core probe; None without times."""
    if None in (row[column] for row in of):
        return None, None, 0
    return _series(column, of, over, every, by_probe=True)[0].slope_of_probe(len(of))


def _loss_seen(column: str, of: Rows, over: Rows, every: Rows) -> Computed:
    """The least loss of frames that would have made the ratio clear."""
    value, interval, runs = _ratio(column, of, over, every)
    return interval and 1 - interval[0] / (value or math.nan), None, runs


def _machines(column: str, of: Rows, over: Rows, every: Rows) -> tuple[_Fit, Sequence[tuple[str, str]]]:
    """Fit machines that ran one training: each, a GPU model and a label, is one observation."""
    trainings = {row["one_gpu_training"] for row in (*of, *over)}
    if len(trainings) != 1 or None in trainings:
        raise ValueError("it does not compare machines that ran one training")
    runs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in every:
        if row["one_gpu_training"] in trainings and not (row["is_repeat"] or row["is_alone"]):
            runs[row["gpu_model"], row["machine"]].append((math.log(row[column]), row["log_probe"]))
    y, x = np.array([np.mean(values, axis=0) for values in runs.values()]).T
    models = list(dict.fromkeys(model for model, _ in runs))
    return _Fit(y, x, np.array([[own == model for model in models] for own, _ in runs], float)), list(runs)


def _machines_ratio(column: str, of: Rows, over: Rows, every: Rows) -> Computed:
    """Frames per second at equal core speed: of a GPU model, or of one machine, over those of another GPU model."""
    fit, machines = _machines(column, of, over, every)
    (model,), (base,) = ({row["gpu_model"] for row in rows} for rows in (of, over))
    labels = {row["machine"] for row in of}
    is_of = [machine[0] == model and machine[1] in labels for machine in machines]
    is_whole = model != base and sum(is_of) == sum(machine[0] == model for machine in machines)
    weights = _difference([machine[0] == base for machine in machines], is_of)
    freedom = fit.freedom if is_whole else 0.0  # some machines beside others have no interval
    return _estimate(float(weights @ fit.y), fit.variance_of(weights), freedom, len(of) + len(over))


# --- of rewards ---


def _to_reward(column: str, of: Rows, over: Rows, *_: Rows) -> Computed:
    """How much of the column ``of`` needs to the reward that ``over`` sets, mean over seeds; one has no interval."""
    logs = _logs_by_seed(column, of, over)
    mean = _mean_of([math.exp(log) for log in logs.values()]) if math.inf not in logs.values() else (None, None, 0)
    return *mean[:2], len(of)


def _reached(column: str, of: Rows, over: Rows, *_: Rows) -> Computed:
    """How many runs of ``of`` get to the reward that ``over`` sets; None if it sets none."""
    number = float(sum(amount < math.inf for amount in _needed(column, of, over)))
    return None if _target(over, "reward_mean", RISE) is None else number, None, len(of)


def _seeds(column: str, of: Rows, over: Rows, *_: Rows) -> Computed:
    """How many seeds both have."""
    own, others = ({row[column] for row in rows} for rows in (of, over))
    return float(len(own & others)), None, len(of)


def _sooner(column: str, of: Rows, over: Rows, *_: Rows) -> Computed:
    """How many times as much of the column ``over`` needs to its reward: the mean over seeds of both, if several."""
    of_logs, over_logs = (_logs_by_seed(column, rows, over) for rows in (of, over))
    ratios = [math.exp(over_logs[seed] - of_logs[seed]) for seed in of_logs.keys() & over_logs.keys()]
    is_known = len(ratios) > 1 and math.inf not in (*of_logs.values(), *over_logs.values())
    return *_mean_of(ratios if is_known else [])[:2], len(of) + len(over)


def _differs(column: str, of: Rows, over: Rows, *_: Rows) -> Computed:
    """The largest difference of rewards, over the rise of ``over``; mean over pairs of runs of one seed."""
    shares = []
    for row, other in itertools.product(of, over):
        curves = [levels(run[column], run["reward_window"]) for run in (row, other)]
        length = min(map(len, curves))
        differences = np.abs(curves[0][:length] - curves[1][:length])
        if row is not other and row["seed"] == other["seed"] and not np.isnan(differences).all():
            rise, largest = np.nanmax(curves[1]) - np.nanmin(curves[1]), np.nanmax(np.abs(curves[1]))
            shares += [float(np.nanmax(differences) / rise)] if rise > 1e-9 * largest else []
    return statistics.fmean(shares) if shares else None, None, len({id(row) for row in (*of, *over)})


def _logs_by_seed(column: str, of: Rows, over: Rows) -> Mapping[int, float]:
    """The mean logarithm of what the runs of each seed need; infinite if one never gets there."""
    logs = defaultdict[int, list[float]](list)
    for row, amount in zip(of, _needed(column, of, over), strict=True):
        logs[row["seed"]].append(math.log(amount))
    return {seed: statistics.fmean(by_run) for seed, by_run in logs.items()}


def _target(rows: Rows, column: str, share: float) -> float | None:
    """The reward after a part of the rise that every run has, from the highest that one begins with.

    None if under half of the episodes succeed at the end, by the median over seeds.
    """
    success = KINDS["median"]("learned_success/seed", rows, (), ())[0]
    if success is not None and success < LEARNED:
        return None
    curves = [curve[~np.isnan(curve)] for curve in (levels(row[column], row["reward_window"]) for row in rows)]
    if not all(map(len, curves)):
        return None
    most, start = min(curve.max() for curve in curves), max(curve[0] for curve in curves)
    return float(start + share * (most - start)) if most > start else None


def _needed(column: str, of: Rows, over: Rows) -> Sequence[float]:
    """Iterations of each run to the reward that ``over`` sets, times what one has; infinite if it never gets there."""
    amount, share = column.partition("/")[::2]
    target, needed = _target(over, "reward_mean", float(share or RISE)), []
    for row in of:
        window = row["reward_window"]
        curve = levels(row["reward_mean"], window)
        reached: Any = () if target is None else np.flatnonzero(curve >= target)
        iterations = math.inf
        if len(reached):  # the middle of the window, between it and the one before
            steps = range(reached[0] - 1, reached[0] + 1)
            at = np.interp(target, curve[steps], steps) if reached[0] and curve[steps[0]] < target else reached[0]
            iterations = float(at) + (window + 1) / 2
        needed.append(iterations * row[amount])
    return needed


KINDS: Final[Mapping[str, Kind]] = {
    "mean": _mean,
    "average": _of_values(statistics.fmean),
    "median": _of_values(statistics.median),
    "least": _of_values(min),
    "most": _of_values(max),
    "count": _of_values(lambda values: len({*values})),
    "share": _share,
    "published": _published,
    "in_turns": _in_turns,
    "slope": _slope,
    "ratio": _ratio,
    "share_kept": partial(_ratio, per_gpu=True),
    "loss_seen": _loss_seen,
    "machines_slope": lambda *selected: _machines(*selected)[0].slope_of_probe(len(selected[1])),
    "machines_ratio": _machines_ratio,
    "reward_to_reach": lambda column, of, *_: (_target(of, column, RISE), None, len(of)),
    "to_reward": _to_reward,
    "reached": _reached,
    "seeds": _seeds,
    "sooner": _sooner,
    "differs": _differs,
}
