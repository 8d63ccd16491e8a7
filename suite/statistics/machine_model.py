"""What one training takes on several machines, as if their cores had the same speed. Pure.

The machines that ran one training on one GPU are one linear model, solved by least squares::

    y = GPU model + s · x + rest

- y: logarithm of the time of an iteration, mean over the runs of a machine. Every machine is one observation, since
  more runs of a machine say nothing of other machines.
- x: logarithm of the core probe, mean likewise.
- s: the slope, how far the time goes with the core: 0 not at all, 1 in proportion. One pseudo-observation pulls it to
  0.5, as in ``suite.statistics.series_model`` and with the same weight.

Intervals are Student's t on the degrees of freedom that are left, so they include how much machines differ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from suite.statistics.intervals import CONFIDENCE, Estimate, mean_of, t_quantile
from suite.statistics.series_model import MIN_FREEDOM, PRIOR_SLOPE, PRIOR_WEIGHT

# The core probe at which machines are compared, of seconds: 100 µs, which the fastest cores take.
FULL_SPEED_LOG_PROBE: Final = math.log(1e-4)


@dataclass(frozen=True, kw_only=True)
class MachineRuns:
    """A machine and its runs of the training."""

    label: str
    gpu: str  # its model
    runs: tuple[tuple[float, float], ...]  # logarithms of the time of an iteration and of the core probe, of seconds


class MachineModel:
    """The fit of the machines of one training."""

    def __init__(self, machines: Sequence[MachineRuns]) -> None:
        self.gpus = tuple(sorted({machine.gpu for machine in machines}))
        y, x = np.array([np.mean(machine.runs, axis=0) for machine in machines]).T
        x = x - FULL_SPEED_LOG_PROBE
        gpu_columns = np.array([[float(machine.gpu == gpu) for gpu in self.gpus] for machine in machines])
        unexplained = x - gpu_columns @ np.linalg.pinv(gpu_columns) @ x
        self._probe_weight = float(unexplained @ unexplained)
        self._freedom = len(machines) - len(self.gpus) - self._probe_weight / (self._probe_weight + PRIOR_WEIGHT)
        pseudo = [0.0] * len(self.gpus) + [math.sqrt(PRIOR_WEIGHT)]
        design = np.vstack([np.column_stack([gpu_columns, x]), pseudo])
        values: np.ndarray = np.append(y, math.sqrt(PRIOR_WEIGHT) * PRIOR_SLOPE)
        self._inverse = np.linalg.inv(design.T @ design)
        self._effects = self._inverse @ design.T @ values
        rests = (values - design @ self._effects)[: len(machines)]
        self._variance = float(rests @ rests) / max(self._freedom, 1.0)

    @property
    def likely_slope(self) -> float:
        """s however little machines say of it: then 0.5."""
        return float(self._effects[-1])

    @property
    def slope(self) -> Estimate | None:
        """s with its interval; None for too few machines, or where they say less of it than the pseudo-observation."""
        is_known = self._probe_weight >= PRIOR_WEIGHT and self._freedom >= MIN_FREEDOM
        return self._estimate({}, slope=1.0) if is_known else None

    def time_s(self, gpu: str) -> Estimate:
        """The time of an iteration at full core speed, of machines with this GPU model."""
        return self._estimate({gpu: 1.0}).mapped(math.exp)

    def ratio(self, over: str, under: str) -> Estimate:
        """The time of an iteration with the GPU model ``over`` over that with another one, at equal core speed."""
        return self._estimate({over: 1.0, under: -1.0}).mapped(math.exp)

    def time_of(self, machine: MachineRuns) -> Estimate:
        """The time of an iteration of one machine at full core speed; its interval is of its runs alone."""
        slope = float(self._effects[-1])
        return mean_of(
            [math.exp(log_time - slope * (log_probe - FULL_SPEED_LOG_PROBE)) for log_time, log_probe in machine.runs]
        )

    def _estimate(self, of_gpus: dict[str, float], *, slope: float = 0.0) -> Estimate:
        """A sum of effects of GPU models and of the slope, each with its factor."""
        contrast = np.array([*(of_gpus.get(gpu, 0.0) for gpu in self.gpus), slope])
        value = float(contrast @ self._effects)
        if self._freedom < MIN_FREEDOM:
            return Estimate(value=value, interval=None)
        error = math.sqrt(self._variance * float(contrast @ self._inverse @ contrast))
        half_width = t_quantile(CONFIDENCE, self._freedom) * error
        return Estimate(value=value, interval=(value - half_width, value + half_width))
