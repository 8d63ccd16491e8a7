"""Times and ratios of the configurations of a series, from all of its runs together. Pure.

The runs of one series and RL library in one set are one linear model, solved by least squares::

    y = configuration + block + s · x + residual

- y: logarithm of the time of a run, as ``suite.statistics.reduce`` gives it.
- block: one effect for the runs that took turns with each other, because they met the same minutes of the machine.
  Runs alone share one.
- x: logarithm of the core probe, mean over all processes and the window. Only runs alone need it for the headline: a
  block already has the state of its machine. It is not the slowest process's probe, since waiting for the slowest of
  several cores is a cost of scaling.
- s: the slope. One pseudo-observation pulls it to ``PRIOR_SLOPE``, so that three runs have a slope too.

A repeat of the baseline is the same configuration. A ratio is the exponential of a difference of two configurations,
and so the centre of its interval on a logarithmic scale.

The variance of a difference comes from the runs of its two configurations alone, by differences within blocks. Where
other configurations of the series have degrees of freedom too, the variance of all residuals adds one (Smyth 2004,
"Linear models and empirical Bayes methods", section 6, with one prior degree of freedom). So a calm configuration lends
a noisy one nearly nothing.

Two configurations that shared no block, not even by way of others, are compared unpaired.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from suite.schema.record import RunRecord
from suite.statistics.intervals import CONFIDENCE, Estimate, t_quantile
from suite.statistics.reduce import round_time_s, window
from suite.statistics.twins import SUFFIX

PRIOR_SLOPE: Final = 0.5  # of runs alone of version 2026.11: 0.55
PRIOR_WEIGHT: Final = 0.05  # sum of squares of x that the pseudo-observation has; five runs have as much
PRIOR_FREEDOM: Final = 1  # degrees of freedom that all residuals add at most to those of two configurations
MIN_FREEDOM: Final = 3  # with fewer there is no interval: too few runs


@dataclass(frozen=True, kw_only=True)
class RunTime:
    """What the model reads of one run."""

    configuration: str  # its id; that of the baseline for a repeat of it
    block: Hashable  # equal for the runs that took turns together; None for a run alone
    log_time: float  # y, of seconds
    log_probe: float | None  # x, of seconds; None if a process was not probed


def run_time(record: RunRecord) -> RunTime:
    """Return what the model reads of a completed run. Raises ValueError as ``suite.statistics.reduce.window`` does."""
    columns, counted = [rank.samples.get("core_probe_time_s", ()) for rank in record.ranks], window(record)
    probes_s = np.array([[_probe(column, iteration) for iteration in counted] for column in columns], float)
    return RunTime(
        configuration=record.case.case_id.removesuffix(SUFFIX),
        block=(record.round, min(record.case.case_id, *record.turns.beside)) if record.turns else None,
        log_time=math.log(round_time_s(record)),
        log_probe=_mean_log(probes_s),
    )


def _probe(column: Sequence[float | None], iteration: int) -> float:
    value = column[iteration] if iteration < len(column) else None
    return math.nan if value is None else value


def _mean_log(probes_s: np.ndarray) -> float | None:
    """The mean over processes of each one's mean logarithm; None if one has no probe."""
    if np.isnan(probes_s).all(axis=1).any():
        return None
    return float(np.nanmean(np.log(probes_s), axis=1).mean())


class Fit:
    """Least squares of ``y`` on the columns of ``design`` and, if it is given, on x with its pseudo-observation.

    Shapes are (runs,), (runs, effects) and (runs,). A contrast has a factor for each effect; with x, its slope is last.
    """

    def __init__(self, design: np.ndarray, y: np.ndarray, x: np.ndarray | None) -> None:
        count = len(y)
        self.freedom = float(count - np.linalg.matrix_rank(design))
        self._probe_weight = 0.0
        if x is not None:
            unexplained = x - design @ np.linalg.pinv(design) @ x
            weight = self._probe_weight = float(unexplained @ unexplained)
            self.freedom -= weight / (weight + PRIOR_WEIGHT)
            pseudo = [0.0] * design.shape[1] + [math.sqrt(PRIOR_WEIGHT)]
            design = np.vstack([np.column_stack([design, x]), pseudo])
            y = np.append(y, math.sqrt(PRIOR_WEIGHT) * PRIOR_SLOPE)
        self._inverse, self._known = np.linalg.pinv(design.T @ design), np.linalg.pinv(design) @ design
        self.effects = self._inverse @ design.T @ y
        residuals = (y - design @ self.effects)[:count]
        self._variance = float(residuals @ residuals) / max(self.freedom, 1.0)

    def determines(self, contrast: np.ndarray) -> bool:
        """Whether the observations determine the contrast."""
        return bool(np.allclose(contrast @ self._known, contrast))

    def variance_of(self, contrast: np.ndarray) -> float:
        return self._variance * float(contrast @ self._inverse @ contrast)

    def estimate(self, contrast: np.ndarray) -> Estimate:
        """The sum of effects, each with its factor."""
        value = float(contrast @ self.effects)
        if self.freedom < MIN_FREEDOM:
            return Estimate(value=value, interval=None)
        half_width = t_quantile(CONFIDENCE, self.freedom) * math.sqrt(self.variance_of(contrast))
        return Estimate(value=value, interval=(value - half_width, value + half_width))

    def slope(self) -> Estimate | None:
        """The slope with its interval; None for too few, or where they say less of it than the pseudo-observation."""
        is_known = self._probe_weight >= PRIOR_WEIGHT and self.freedom >= MIN_FREEDOM
        return self.estimate(np.eye(len(self.effects))[-1]) if is_known else None


class SeriesModel:
    """The fit of the runs of one series. x is part of it if every run was probed, and one was alone or it is asked for.

    ``needs_probe``: for figures at full core speed.
    """

    def __init__(self, runs: Sequence[RunTime], *, needs_probe: bool = False) -> None:
        self.runs = tuple(runs)
        self.configurations = tuple(dict.fromkeys(run.configuration for run in runs))
        blocks = tuple(dict.fromkeys(run.block for run in runs))
        columns = [[run.configuration == name for run in runs] for name in self.configurations]
        columns += [[run.block == block for run in runs] for block in blocks[1:]]
        probes = [run.log_probe for run in runs if run.log_probe is not None]
        has_slope = (needs_probe or None in blocks) and len(probes) == len(runs)
        x = np.array(probes) - np.mean(probes) if has_slope else None
        self._fit = Fit(np.array(columns, float).T, np.array([run.log_time for run in runs]), x)
        # How far the time of an iteration goes with the time of the core probe: 0 not at all, 1 in proportion.
        self.slope = float(self._fit.effects[-1]) if has_slope else None
        self.core_slope = self._fit.slope()  # with its interval

    def ratio(self, over: str, under: str) -> Estimate:
        """The time of an iteration of the configuration ``over``, divided by that of ``under``.

        Raises ValueError if one of them has no run.
        """
        if over == under:
            return Estimate(value=1.0, interval=None)
        fit = self._fit
        contrast = np.zeros(len(fit.effects))
        contrast[self.configurations.index(over)] += 1
        contrast[self.configurations.index(under)] -= 1
        own, own_variance, own_freedom = self._own_difference(over, under)
        is_joined = fit.determines(contrast)  # else they shared no block, nor others by way of both
        log_ratio = float(contrast @ fit.effects) if is_joined else own
        lent = min(PRIOR_FREEDOM, max(0.0, fit.freedom - own_freedom)) if is_joined else 0.0
        freedom = own_freedom + lent
        if freedom < MIN_FREEDOM:
            return Estimate(value=math.exp(log_ratio), interval=None)
        variance = (own_freedom * own_variance + lent * fit.variance_of(contrast)) / freedom
        half_width = t_quantile(CONFIDENCE, freedom) * math.sqrt(variance)
        interval = math.exp(log_ratio - half_width), math.exp(log_ratio + half_width)
        return Estimate(value=math.exp(log_ratio), interval=interval)

    def _own_difference(self, over: str, under: str) -> tuple[float, float, float]:
        """The difference by the runs of its two configurations alone, its variance, and its degrees of freedom."""
        values: dict[str, dict[Hashable, list[float]]] = {over: {}, under: {}}
        for run in self.runs:
            if run.configuration in values:
                value = run.log_time - (self.slope or 0.0) * (run.log_probe or 0.0)
                values[run.configuration].setdefault(run.block, []).append(value)
        shared = [block for block in values[over] if block in values[under]]
        if len(shared) > 1:
            differences = [np.mean(values[over][block]) - np.mean(values[under][block]) for block in shared]
            return float(np.mean(differences)), float(np.var(differences, ddof=1)) / len(shared), len(shared) - 1
        parts = [[value for block in blocks.values() for value in block] for blocks in values.values()]
        difference = float(np.mean(parts[0]) - np.mean(parts[1]))
        if min(map(len, parts)) < 2:  # noqa: PLR2004  (no variance)
            return difference, 0.0, 0.0
        variances = [float(np.var(part, ddof=1)) / len(part) for part in parts]
        total = sum(variances)
        if not total:
            return difference, 0.0, float(sum(map(len, parts)) - len(parts))
        freedom = total**2 / sum(variance**2 / (len(part) - 1) for variance, part in zip(variances, parts, strict=True))
        return difference, total, freedom
