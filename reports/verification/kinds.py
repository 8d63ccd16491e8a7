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

from reports.verification.runs import COPY, SMOOTHING, Row, smoothed

SLOPE: Final = 0.5  # to which that of the core probe is pulled
PULL: Final = 0.05  # as much as runs do whose probes have this sum of squares
LEAST_FREEDOM: Final = 3.0  # for an interval
LEAST_RUNS: Final = 3  # for the interval of a mean
# The kinds with a status: on which side of what they lie.
AGAINST: Final = {"ratio": 1.0, "share_kept": 0.8, "sooner": 1.0, "machines_ratio": 1.0, "in_turns": 1.0}
OF_TWO: Final = ("ratio", "share_kept", "sooner", "loss_seen")  # the kinds that compare two configurations
RISE: Final = 0.9  # of a reward, which is the one to reach
SERIES: Final = ("set", "series", "library", "workload")  # equal for the runs of one model

type Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The runs that a declaration selects, and the column of theirs that it reads."""

    column: str
    of: Sequence[Row]
    over: Sequence[Row]
    every: Sequence[Row]  # of the same set, or of all if machines are compared; those of repeats too
    alone: Sequence[Row] = ()  # copies of configurations in turns that ran alone, of all sets


type Computed = tuple[float | None, Interval | None, int]  # value, interval, and of how many runs
type Kind = Callable[[Selected], Computed]
type Statistic = Callable[[Sequence[Any]], Any]


def figure(kind: str, selected: Selected) -> Mapping[str, float | str | None]:
    """Compute a figure under the names of ``figures.csv``; its value is None where the runs do not have it.

    Raises LookupError for an unknown kind or column, ValueError unless ``of`` and ``over`` are two configurations.
    """
    of, over = ({row.get("configuration") for row in rows} for rows in (selected.of, selected.over))
    if kind in OF_TWO and not (len(of) == len(over) == 1 and of != over):
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


def _published(selected: Selected) -> Computed:
    """Return a printed number with the ends of its rounding; with ``over``: it, or ours, for each GPU over another."""
    (value, *ends), runs = _number(selected.of, selected.column)
    if selected.over:
        (over, least, most), _ = _number(selected.over, selected.column)
        factor = int(selected.over[0]["gpus"]) / int(selected.of[0]["gpus"])
        value, ends = factor * value / over, ends and [factor * ends[0] / most, factor * ends[1] / least]
    return value, (ends[0], ends[1]) if ends else None, runs


def _number(rows: Sequence[Row], column: str) -> tuple[list[float], int]:
    """Return a value with the ends of its range, if there is one, and of how many runs it is."""
    if "value" in rows[0]:
        return [float(rows[0][name]) for name in ("value", "least", "most")], 0
    values = [row[column] for row in rows if row[column] is not None]
    return [statistics.geometric_mean(values), *(mean_interval(values) or ())], len(values)


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


# --- of machines that ran one training ---


class _Machines:
    """Each machine is one observation: logarithms of its time and probe. The slope is that within GPU models."""

    def __init__(self, selected: Selected) -> None:
        trainings = {row["one_gpu_training"] for row in (*selected.of, *selected.over)}
        if len(trainings) != 1 or None in trainings:
            raise ValueError("it does not compare machines that ran one training")
        runs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
        for row in selected.every:
            if row["one_gpu_training"] in trainings and not row["is_repeat"]:
                runs[row["gpu_model"], row["machine"]].append((math.log(row[selected.column]), row["log_probe"]))
        self.points: dict[str, dict[str, Any]] = defaultdict(dict)  # GPU model -> machine -> its time and probe
        for (model, machine), values in runs.items():
            self.points[model][machine] = np.mean(values, axis=0)
        centres = {model: np.mean(list(points.values()), axis=0) for model, points in self.points.items()}
        y, x = np.array([point - centres[model] for model, of in self.points.items() for point in of.values()]).T
        self.squares = float(x @ x)
        self.slope = float(x @ y + PULL * SLOPE) / (self.squares + PULL)
        self.freedom = len(runs) - len(self.points) - self.squares / (self.squares + PULL)
        self.variance = float(np.sum((y - self.slope * x) ** 2)) / max(self.freedom, 1.0)

    def estimate(self, value: float, spread: float) -> tuple[float, Interval | None]:
        """A value with the interval that a multiple of the variance gives it."""
        if self.freedom < LEAST_FREEDOM:
            return value, None
        half = student_t(self.freedom) * math.sqrt(self.variance * spread)
        return value, (value - half, value + half)


def _machines_ratio(selected: Selected) -> Computed:
    """Frames per second at equal core speed: of a GPU model, or of one machine, over those of another GPU model."""
    machines, number = _Machines(selected), len(selected.of) + len(selected.over)
    model, over = selected.of[0]["gpu_model"], selected.over[0]["gpu_model"]
    if {row["gpu_model"] for row in selected.of} != {model} or {row["gpu_model"] for row in selected.over} != {over}:
        raise ValueError("it does not compare two GPU models")
    labels = {row["machine"] for row in selected.of}
    own = np.array([point for label, point in machines.points[model].items() if label in labels])
    base = np.array(list(machines.points[over].values()))
    apart, apart_x = np.mean(base, axis=0) - np.mean(own, axis=0)
    spread = 1 / len(own) + 1 / len(base) + apart_x**2 / (machines.squares + PULL)
    centre, interval = machines.estimate(apart - machines.slope * apart_x, spread)
    if model == over or len(own) < len(machines.points[model]):
        interval = None  # of some machines beside others
    return math.exp(centre), interval and (math.exp(interval[0]), math.exp(interval[1])), number


def _machines_slope(selected: Selected) -> Computed:
    """How far the time of an iteration goes with the core probe, from machine to machine."""
    machines, number = _Machines(selected), len(selected.of)
    if machines.squares < PULL or machines.freedom < LEAST_FREEDOM:
        return None, None, number
    return *machines.estimate(machines.slope, 1 / (machines.squares + PULL)), number


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


def _reward_to_reach(selected: Selected) -> Computed:
    return _target(selected.of, selected.column, RISE), None, len(selected.of)


def _to_reward(selected: Selected) -> Computed:
    """How much of the column ``of`` needs to the reward that ``over`` sets; one seed has no interval."""
    amounts = list(_needed(selected.of, selected.over, selected.column, "reward_mean", RISE).values())
    if math.inf in amounts:
        return None, None, len(selected.of)
    seeds = len({row["seed"] for row in selected.of})
    return statistics.geometric_mean(amounts), mean_interval(amounts) if seeds > 1 else None, len(selected.of)


def _sooner(selected: Selected) -> Computed:
    """How much sooner ``of`` has the reward that ``over`` sets, after a part of its rise; mean over seeds."""
    pair, number = (selected.of, selected.over), len(selected.of) + len(selected.over)
    column, _, share = selected.column.partition("/")
    of_s, over_s = (_needed(rows, selected.over, "iteration_s", column, float(share or RISE)) for rows in pair)
    ratios = [over_s[run] / of_s[run] for run in of_s.keys() & over_s.keys()]
    if min(len({row["seed"] for row in rows}) for rows in pair) == 1 or not ratios:
        return None, None, number
    if math.inf in (*of_s.values(), *over_s.values()):
        return None, None, number
    return statistics.geometric_mean(ratios), mean_interval(ratios), number


def _target(rows: Sequence[Row], column: str, share: float) -> float | None:
    """The reward after a part of the rise that every run has, from the highest that one begins with."""
    curves = [curve[~np.isnan(curve)] for curve in (smoothed(row[column]) for row in rows)]
    if not all(map(len, curves)):
        return None
    most, start = min(curve.max() for curve in curves), max(curve[0] for curve in curves)
    return float(start + share * (most - start)) if most > start else None


def _needed(of: Sequence[Row], over: Sequence[Row], amount: str, column: str, share: float) -> Mapping[int, float]:
    """By run: iterations to the reward that ``over`` sets, times what one has; infinite if it never gets there."""
    target, needed = _target(over, column, share), {}
    for row in of:
        reached: Any = () if target is None else np.flatnonzero(smoothed(row[column]) >= target)
        needed[row["run"]] = (reached[0] + SMOOTHING) * row[amount] if len(reached) else math.inf
    return needed


def _in_turns(selected: Selected) -> Computed:
    """The time in turns over that alone: the mean difference of logarithms, with the variances of all means added."""
    logs: dict[tuple[str, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    sets = {row["set"] for row in selected.of}
    turning = [row for row in selected.of if row["block"] is not None]
    for place, rows in enumerate((turning, [row for row in selected.alone if row["set"] in sets])):
        for row in rows:
            name = row["configuration"].removesuffix(COPY)
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
    "count": _of_values(lambda values: len({*values})),
    "share": _share,
    "slope": _slope,
    "ratio": _ratio,
    "loss_seen": _loss_seen,
    "in_turns": _in_turns,
    "published": _published,
    "machines_ratio": _machines_ratio,
    "machines_slope": _machines_slope,
    "share_kept": partial(_ratio, per_gpu=True),
    "reward_to_reach": _reward_to_reach,
    "to_reward": _to_reward,
    "sooner": _sooner,
}
