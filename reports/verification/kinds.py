"""The formulas of figures: a closed list, each computed from rows of the table of runs. Pure.

Ratios come from one linear model of logarithms of times, solved in other steps than those of the pages: with an effect
of every configuration and every block of runs in turns, or of every GPU model. Where runs were alone, the core probe
explains a part too, with a slope that is pulled to 0.5.
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
type Computed = tuple[float | None, Interval | None, int]  # value, interval, and of how many runs


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The runs that a declaration selects, and the column of theirs that it reads."""

    column: str
    of: Sequence[Row]
    over: Sequence[Row]
    every: Sequence[Row]  # of the same set, or of all if machines are compared; those of repeats too
    alone: Sequence[Row] = ()  # copies of configurations in turns that ran alone, of all sets


def figure(kind: str, selected: Selected) -> Mapping[str, float | str | None]:
    """Compute a figure under the names of ``figures.csv``; its value is None where the runs do not have it.

    Raises LookupError for an unknown kind or column, ValueError for runs that it does not compare.
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


def _of_values(
    statistic: Callable[[Sequence[Any]], Any], interval: Callable[[Sequence[Any]], Any] = lambda _: None
) -> Callable[[Selected], Computed]:
    def kind(selected: Selected) -> Computed:
        values = [row[selected.column] for row in selected.of if row[selected.column] is not None]
        return statistic(values) if values else None, interval(values), len(values)

    return kind


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's interval of the geometric mean, on the logarithms."""
    if len(values) < LEAST_RUNS:
        return None
    variance, freedom = _welch([logs := [math.log(value) for value in values]])
    return _powers(statistics.fmean(logs), student_t(freedom) * math.sqrt(variance))


def _powers(centre: float, half: float, factor: float = 1.0) -> Interval:
    return factor * math.exp(centre - half), factor * math.exp(centre + half)


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
    """Return the variance of a sum of the means of samples, and its degrees of freedom."""
    parts = [(statistics.variance(sample) / len(sample), len(sample) - 1) for sample in samples]
    total = math.fsum(part for part, _ in parts)
    if total == 0:
        return 0.0, math.fsum(freedom for _, freedom in parts)
    return total, total**2 / math.fsum(part**2 / freedom for part, freedom in parts)


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


def _in_turns(selected: Selected) -> Computed:
    """The time in turns over that alone, mean over configurations that have both; by Welch."""
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
    centre, interval = statistics.fmean(statistics.fmean(one) - statistics.fmean(other) for one, other in pairs), None
    if min(map(len, samples)) >= LEAST_RUNS:
        variance, freedom = _welch(samples)
        interval = _powers(centre, student_t(freedom) * math.sqrt(variance) / len(pairs))
    return math.exp(centre), interval, sum(map(len, samples))


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


def _series(selected: Selected, *, by_probe: bool = False) -> tuple[_Fit, list[Row], list[str]]:
    """Fit all runs that share their series with the selected ones; with these runs, and their configurations."""
    series = {tuple(row[name] for name in SERIES) for row in (selected.of[0], *selected.over[:1])}
    runs = [run for run in selected.every if tuple(run[name] for name in SERIES) in series]
    names, blocks = (list(dict.fromkeys(run[name] for run in runs)) for name in ("configuration", "block"))
    columns = [[run["configuration"] == name for run in runs] for name in names]
    columns += [[run["block"] == block for run in runs] for block in blocks]
    probes = [run["log_probe"] for run in runs]
    is_explained = (by_probe or None in blocks) and None not in probes
    x = np.array(probes, float) if is_explained else np.zeros(len(runs))
    return _Fit(np.log([run[selected.column] for run in runs]), x, np.array(columns, float).T), runs, names


def _ratio(selected: Selected, *, per_gpu: bool = False) -> Computed:
    """Frames per second of ``of`` over those of ``over``; the column has the times. ``per_gpu``: 1 is ideal."""
    of, over = selected.of[0], selected.over[0]
    factor = of["frames_per_iteration"] / over["frames_per_iteration"]
    factor *= over["gpus"] / of["gpus"] if per_gpu else 1
    (fit, runs, names), pair = _series(selected), (over["configuration"], of["configuration"])
    contrast = np.array([(name == pair[0]) - (name == pair[1]) for name in names], float)
    contrast.resize(fit.design.shape[1])  # of a block there is no difference
    weights = contrast @ np.linalg.pinv(fit.design)  # of the runs in the difference
    is_joined = np.allclose(weights @ fit.design, contrast)  # by blocks that they share, or others with them
    if not is_joined:
        is_over, is_of = (np.array([run["configuration"] == name for run in runs]) for name in pair)
        weights = is_over / is_over.sum() - is_of / is_of.sum()
    own, own_freedom = _own_variance(fit, runs, pair)
    lent = min(1.0, max(0.0, fit.freedom - own_freedom)) if is_joined else 0.0  # by the others of the series
    freedom, centre, number = own_freedom + lent, float(weights @ fit.y), len(selected.of) + len(selected.over)
    if freedom < LEAST_FREEDOM:
        return factor * math.exp(centre), None, number
    spread = float(weights @ weights) + float(weights @ fit.x) ** 2 / fit.squares
    half = student_t(freedom) * math.sqrt((own_freedom * own + lent * spread * fit.variance) / freedom)
    return factor * math.exp(centre), _powers(centre, half, factor), number


def _own_variance(fit: _Fit, runs: Sequence[Row], pair: tuple[str, str]) -> tuple[float, float]:
    """The variance of the difference of two configurations by their own runs, and its degrees of freedom."""
    values: dict[str, dict[Hashable, list[float]]] = {name: defaultdict(list) for name in pair}
    for run, value in zip(runs, fit.y, strict=True):
        if run["configuration"] in values:
            values[run["configuration"]][run["block"]].append(float(value))
    one, other = values.values()
    if len(shared := one.keys() & other.keys()) > 1:
        apart = [statistics.fmean(one[block]) - statistics.fmean(other[block]) for block in shared]
        return statistics.variance(apart) / len(apart), len(apart) - 1
    samples = [[value for block in own.values() for value in block] for own in (one, other)]
    return (0.0, 0.0) if min(map(len, samples)) == 1 else _welch(samples)


def _loss_seen(selected: Selected) -> Computed:
    """The least loss of frames that would have made the ratio clear."""
    value, interval, runs = _ratio(selected)
    return interval and 1 - interval[0] / (value or math.nan), None, runs


def _machines(selected: Selected) -> tuple[_Fit, list[tuple[str, str]]]:
    """Fit machines that ran one training: each, a GPU model and a label, is one observation."""
    trainings = {row["one_gpu_training"] for row in (*selected.of, *selected.over)}
    if len(trainings) != 1 or None in trainings:
        raise ValueError("it does not compare machines that ran one training")
    runs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in selected.every:
        if row["one_gpu_training"] in trainings and not row["is_repeat"]:
            runs[row["gpu_model"], row["machine"]].append((math.log(row[selected.column]), row["log_probe"]))
    y, x = np.array([np.mean(values, axis=0) for values in runs.values()]).T
    models = list(dict.fromkeys(model for model, _ in runs))
    return _Fit(y, x, np.array([[own == model for model in models] for own, _ in runs], float)), list(runs)


def _machines_ratio(selected: Selected) -> Computed:
    """Frames per second at equal core speed: of a GPU model, or of one machine, over those of another GPU model."""
    (fit, machines), number = _machines(selected), len(selected.of) + len(selected.over)
    (of, *of_more), (over, *over_more) = ({row["gpu_model"] for row in rows} for rows in (selected.of, selected.over))
    if of_more or over_more:
        raise ValueError("it does not compare two GPU models")
    labels = {row["machine"] for row in selected.of}
    is_of = np.array([model == of and label in labels for model, label in machines])
    is_over = np.array([model == over for model, _ in machines])
    weights = is_over / is_over.sum() - is_of / is_of.sum()
    spread = 1 / is_of.sum() + 1 / is_over.sum() + float(weights @ fit.x) ** 2 / fit.squares
    centre, interval = float(weights @ fit.y), None
    is_whole = is_of.sum() == sum(model == of for model, _ in machines)  # else some machines beside others
    if of != over and is_whole and fit.freedom >= LEAST_FREEDOM:
        interval = _powers(centre, student_t(fit.freedom) * math.sqrt(fit.variance * spread))
    return math.exp(centre), interval, number


# --- of rewards ---


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
    is_one_seed = min(len({row["seed"] for row in rows}) for rows in pair) == 1
    if is_one_seed or not ratios or math.inf in (*of_s.values(), *over_s.values()):
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


KINDS: Final[Mapping[str, Callable[[Selected], Computed]]] = {
    "mean": _of_values(statistics.geometric_mean, mean_interval),
    "average": _of_values(statistics.fmean),
    "median": _of_values(statistics.median),
    "least": _of_values(min),
    "most": _of_values(max),
    "count": _of_values(lambda values: len({*values})),
    "share": _share,
    "published": _published,
    "in_turns": _in_turns,
    "slope": lambda selected: _series(selected, by_probe=True)[0].slope_of_probe(len(selected.of)),
    "ratio": _ratio,
    "share_kept": partial(_ratio, per_gpu=True),
    "loss_seen": _loss_seen,
    "machines_slope": lambda selected: _machines(selected)[0].slope_of_probe(len(selected.of)),
    "machines_ratio": _machines_ratio,
    "reward_to_reach": lambda selected: (_target(selected.of, selected.column, RISE), None, len(selected.of)),
    "to_reward": _to_reward,
    "sooner": _sooner,
}
