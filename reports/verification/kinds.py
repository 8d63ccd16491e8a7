"""The formulas of figures: a closed list, each computed from rows of the table of runs. Pure.

The ratio of two configurations comes from one linear model of all runs of their series, solved in other steps than
those of the pages. The model has an effect of every configuration and of every block of runs in turns. Where runs were
alone, the core probe explains a part too, with a slope that is pulled to 0.5.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np

from reports.verification.runs import SMOOTHING, Row, smoothed
from reports.verification.samples.stored import ALONE_SUFFIX

SLOPE: Final = 0.5  # to which that of the core probe is pulled
PULL: Final = 0.05  # as much as runs do whose probes have this sum of squares
LEAST_FREEDOM: Final = 3.0  # for an interval
LEAST_RUNS: Final = 3  # for the interval of a mean
AGAINST: Final = {
    "ratio": 1.0,
    "share_kept": 0.8,
    "sooner": 1.0,
    "in_turns": 1.0,
}  # the kinds with a status: on which side they lie
RISE: Final = 0.9  # of a reward, after which ``sooner`` compares
SERIES: Final = ("set", "series", "library", "workload")  # equal for the runs of one model

type Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The runs that a declaration selects, and the column of theirs that it reads."""

    column: str
    of: Sequence[Row]
    over: Sequence[Row]
    every: Sequence[Row]  # of the same set, those of repeats too
    alone: Sequence[Row] = ()  # copies of configurations in turns, of all sets


type Computed = tuple[float | None, Interval | None, int]  # value, interval, and of how many runs
type Kind = Callable[[Selected], Computed]
type Statistic = Callable[[Sequence[Any]], Any]


def figure(kind: str, selected: Selected) -> Mapping[str, float | str | None]:
    """Compute a figure under the names of ``figures.csv``; its value is None where the runs do not have it.

    Raises LookupError for an unknown kind or column, ValueError unless ``of`` and ``over`` are two configurations.
    """
    of, over = ({row["configuration"] for row in rows} for rows in (selected.of, selected.over))
    if over and not (len(of) == len(over) == 1 and of != over):
        raise ValueError("it does not compare two configurations")
    value, interval, runs = KINDS[kind](selected)
    low, high = interval or (None, None)
    status = None
    if kind in AGAINST and value is not None:
        status = "clear" if interval else "too few runs"
        if interval and interval[0] < AGAINST[kind] <= interval[1]:
            status = "within noise"
    return {"value": value, "low": low, "high": high, "runs": runs, "status": status}


# --- of the values of runs ---


def _of_values(statistic: Statistic, interval: Statistic = lambda _: None) -> Kind:
    def kind(selected: Selected) -> Computed:
        values = [row[selected.column] for row in selected.of if row[selected.column] is not None]
        return statistic(values) if values else None, interval(values), len(values)

    return kind


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's interval of the geometric mean, on the logarithms."""
    if len(values) < LEAST_RUNS:
        return None
    logs = [math.log(value) for value in values]
    half = student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(statistics.fmean(logs) - half), math.exp(statistics.fmean(logs) + half)


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


def _share(selected: Selected) -> Computed:
    """The sum of the column before ``/`` over that of the column after it, of runs that have both."""
    part, whole = selected.column.split("/")
    known = [row for row in selected.of if None not in (row[part], row[whole])]
    total = sum(row[whole] for row in known)
    return sum(row[part] for row in known) / total if total else None, None, len(known)


# --- of a series ---


class _Series:
    """The fit of all runs that share their series with some. ``y`` are logarithms of times, at equal core speed."""

    def __init__(self, selected: Selected, *, by_probe: bool = False) -> None:
        series = {tuple(row[name] for name in SERIES) for row in (selected.of[0], *selected.over[:1])}
        self.runs = [run for run in selected.every if tuple(run[name] for name in SERIES) in series]
        self.names, blocks = ({run[name]: None for run in self.runs} for name in ("configuration", "block"))
        columns = [[run["configuration"] == name for run in self.runs] for name in self.names]
        columns += [[run["block"] == block for run in self.runs] for block in blocks]
        self.design = np.array(columns, float).T
        self.y, self.x = np.log([run[selected.column] for run in self.runs]), np.zeros(len(self.runs))
        self.slope, self.squares = 0.0, 0.0  # of the core probe, and what its values differ by
        self.freedom = float(len(self.runs) - np.linalg.matrix_rank(self.design))
        probes = [run["log_probe"] for run in self.runs]
        if (by_probe or None in blocks) and None not in probes:
            self.x = np.array(probes, float)
            left, left_y = self._unexplained(self.x), self._unexplained(self.y)
            self.squares = float(left @ left)
            self.slope = (float(left @ left_y) + PULL * SLOPE) / (self.squares + PULL)
            self.freedom -= self.squares / (self.squares + PULL)
            self.y = self.y - self.slope * self.x
        residuals = self._unexplained(self.y)
        self.variance = float(residuals @ residuals) / max(self.freedom, 1.0)

    def _unexplained(self, values: Any) -> Any:
        return values - self.design @ np.linalg.lstsq(self.design, values, rcond=None)[0]

    def log_ratio(self, over: str, of: str) -> tuple[float, Interval | None]:
        """The logarithm of the time of ``over`` divided by that of ``of``, with its interval."""
        is_over, is_of = (np.array([run["configuration"] == name for run in self.runs]) for name in (over, of))
        contrast = np.array([(name == over) - (name == of) for name in self.names], float)
        contrast.resize(self.design.shape[1])  # of a block there is no difference
        weights = contrast @ np.linalg.pinv(self.design)  # of the runs in the difference
        is_joined = np.allclose(weights @ self.design, contrast)  # by blocks that they share, or others with them
        if not is_joined:
            weights = is_over / is_over.sum() - is_of / is_of.sum()
        own, own_freedom = self._own_variance(over, of)
        lent = min(1.0, max(0.0, self.freedom - own_freedom)) if is_joined else 0.0  # by the others of the series
        freedom, centre = own_freedom + lent, float(weights @ self.y)
        if freedom < LEAST_FREEDOM:
            return centre, None
        spread = float(weights @ weights) + float(weights @ self.x) ** 2 / (self.squares + PULL)
        half = student_t(freedom) * math.sqrt((own_freedom * own + lent * spread * self.variance) / freedom)
        return centre, (centre - half, centre + half)

    def _own_variance(self, *names: str) -> tuple[float, float]:
        """The variance of the difference of two configurations by their own runs, and its degrees of freedom."""
        values: dict[str, dict[Hashable, list[float]]] = {name: defaultdict(list) for name in names}
        for run, value in zip(self.runs, self.y, strict=True):
            if run["configuration"] in values:
                values[run["configuration"]][run["block"]].append(float(value))
        one, other = values.values()
        if len(shared := one.keys() & other.keys()) > 1:
            apart = [statistics.fmean(one[block]) - statistics.fmean(other[block]) for block in shared]
            return statistics.variance(apart) / len(apart), len(apart) - 1
        samples = [[value for block in own.values() for value in block] for own in (one, other)]
        if min(map(len, samples)) == 1:
            return 0.0, 0.0
        parts = [(statistics.variance(sample) / len(sample), len(sample) - 1) for sample in samples]
        total = math.fsum(part for part, _ in parts)
        if total == 0:
            return 0.0, math.fsum(freedom for _, freedom in parts)
        return total, total**2 / math.fsum(part**2 / freedom for part, freedom in parts)


def _slope(selected: Selected) -> Computed:
    """How far the time of an iteration goes with that of the core probe."""
    series, number = _Series(selected, by_probe=True), len(selected.of)
    if series.squares < PULL or series.freedom < LEAST_FREEDOM:
        return None, None, number
    half = student_t(series.freedom) * math.sqrt(series.variance / (series.squares + PULL))
    return series.slope, (series.slope - half, series.slope + half), number


# --- of two configurations ---


def _ratio(selected: Selected, *, per_gpu: bool = False) -> Computed:
    """Frames per second of ``of`` over those of ``over``; the column has the times. ``per_gpu``: 1 is ideal."""
    of, over = selected.of[0], selected.over[0]
    factor = of["frames_per_iteration"] / over["frames_per_iteration"]
    factor *= over["gpus"] / of["gpus"] if per_gpu else 1
    centre, interval = _Series(selected).log_ratio(over["configuration"], of["configuration"])
    span = interval and (factor * math.exp(interval[0]), factor * math.exp(interval[1]))
    return factor * math.exp(centre), span, len(selected.of) + len(selected.over)


def _loss_seen(selected: Selected) -> Computed:
    """The least loss of frames that would have made the ratio clear."""
    value, interval, runs = _ratio(selected)
    return interval and 1 - interval[0] / (value or math.nan), None, runs


def _sooner(selected: Selected) -> Computed:
    """How much sooner ``of`` has the reward after 90 % of the rise that every run of ``over`` has, mean over seeds."""
    pair, number = (selected.of, selected.over), len(selected.of) + len(selected.over)
    curves = [curve[~np.isnan(curve)] for curve in (smoothed(row[selected.column]) for row in selected.over)]
    if min(len({row["seed"] for row in rows}) for rows in pair) == 1 or not all(map(len, curves)):
        return None, None, number
    most, start = min(curve.max() for curve in curves), max(curve[0] for curve in curves)
    times_s: list[dict[int, float]] = [{}, {}]  # of each run, at the pace of its window
    for times_of_s, row in ((times_s[place], row) for place, rows in enumerate(pair) for row in rows):
        reached = np.flatnonzero(smoothed(row[selected.column]) >= start + RISE * (most - start))
        times_of_s[row["run"]] = (reached[0] + SMOOTHING) * row["iteration_s"] if len(reached) else math.inf
    ratios = [times_s[1][run] / times_s[0][run] for run in times_s[0].keys() & times_s[1].keys()]
    if most <= start or not ratios or math.inf in (*times_s[0].values(), *times_s[1].values()):
        return None, None, number
    return statistics.geometric_mean(ratios), mean_interval(ratios), number


def _in_turns(selected: Selected) -> Computed:
    """The time in turns over that alone: the mean difference of logarithms, with the variances of all means added."""
    logs: dict[tuple[str, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    sets = {row["set"] for row in selected.of}
    turning = [row for row in selected.of if row["block"] is not None]
    for place, rows in enumerate((turning, [row for row in selected.alone if row["set"] in sets])):
        for row in rows:
            name = row["configuration"].removesuffix(ALONE_SUFFIX)
            logs[row["set"], name][place].append(math.log(row[selected.column]))
    pairs = [both for both in logs.values() if all(both)]
    samples = [sample for both in pairs for sample in both]
    if not pairs:
        return None, None, 0
    centre = statistics.fmean(statistics.fmean(one) - statistics.fmean(other) for one, other in pairs)
    interval = None
    if min(map(len, samples)) >= LEAST_RUNS:
        parts = [(statistics.variance(sample) / len(sample) / len(pairs) ** 2, len(sample) - 1) for sample in samples]
        total = math.fsum(part for part, _ in parts)
        freedom = total**2 / math.fsum(part**2 / own for part, own in parts)
        half = student_t(freedom) * math.sqrt(total)
        interval = math.exp(centre - half), math.exp(centre + half)
    return math.exp(centre), interval, sum(map(len, samples))


KINDS: Final[Mapping[str, Kind]] = {
    "mean": _of_values(statistics.geometric_mean, mean_interval),
    "average": _of_values(statistics.fmean),
    "median": _of_values(statistics.median),
    "least": _of_values(min),
    "most": _of_values(max),
    "sum": _of_values(math.fsum),
    "count": _of_values(lambda values: len({*values})),
    "share": _share,
    "slope": _slope,
    "ratio": _ratio,
    "loss_seen": _loss_seen,
    "share_kept": partial(_ratio, per_gpu=True),
    "sooner": _sooner,
    "in_turns": _in_turns,
}
