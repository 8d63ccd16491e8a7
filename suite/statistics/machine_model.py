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

from suite.statistics.intervals import Estimate, mean_of
from suite.statistics.series_model import Fit

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
        columns = np.array([[float(machine.gpu == gpu) for gpu in self.gpus] for machine in machines])
        self._fit = Fit(columns, y, x - FULL_SPEED_LOG_PROBE)
        self.likely_slope = float(self._fit.effects[-1])  # s however little machines say of it: then 0.5
        self.slope = self._fit.slope()  # s with its interval; None for too few machines

    def time_s(self, gpu: str) -> Estimate:
        """The time of an iteration at full core speed, of machines with this GPU model."""
        return self._estimate({gpu: 1.0}).mapped(math.exp)

    def ratio(self, over: str, under: str) -> Estimate:
        """The time of an iteration with the GPU model ``over`` over that with another one, at equal core speed."""
        return self._estimate({over: 1.0, under: -1.0}).mapped(math.exp)

    def time_of(self, machine: MachineRuns) -> Estimate:
        """The time of an iteration of one machine at full core speed; its interval is of its runs alone."""
        slope = self.likely_slope
        return mean_of(
            [math.exp(log_time - slope * (log_probe - FULL_SPEED_LOG_PROBE)) for log_time, log_probe in machine.runs]
        )

    def _estimate(self, of_gpus: dict[str, float]) -> Estimate:
        """A sum of effects of GPU models, each with its factor."""
        return self._fit.estimate(np.array([*(of_gpus.get(gpu, 0.0) for gpu in self.gpus), 0.0]))
