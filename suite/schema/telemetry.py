"""What a sampler saw of a round, as it is stored: the part of ``schema.record`` that speaks of GPUs and processes.

Imports the standard library only, as that does. A value that was not measured is ``None``, never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Of the samples in a window; of power the mean is over time, and a gap leaves nothing, as of energy."""

    min: float
    mean: float
    max: float


@dataclass(frozen=True, kw_only=True)
class GpuTelemetry:
    """One GPU in the window. What the driver does not give, or gives with gaps, is None."""

    index: int  # on its node
    node: int = 0
    sm_utilisation_percent: Spread | None = None  # time in which any kernel ran, however small
    memory_utilisation_percent: Spread | None = None  # time in which memory was read or written
    memory_used_gb: Spread | None = None
    power_w: Spread | None = None
    sm_clock_mhz: Spread | None = None
    memory_clock_mhz: Spread | None = None
    temperature_c: Spread | None = None
    energy_counter_j: float | None = None  # difference of the driver's counter
    energy_integrated_j: float | None = None  # power over time, by trapezoids
    energy_disagreement: float | None = None  # integrated minus counter, over the larger
    throttled_share: float | None = None  # of the samples, held back by power, heat, or the board
    slowdown_shares: Mapping[str, float] | None = (
        None  # word of suite.external.nvml -> share of the samples; idle is one too
    )


@dataclass(frozen=True, kw_only=True)
class RankTelemetry:
    """The process of one rank in the window; None where it cannot be seen, as in a container."""

    rank: int
    cpu_percent: Spread | None = None  # 100 is one core
    memory_gb: Spread | None = None  # resident
    threads: Spread | None = None


@dataclass(frozen=True, kw_only=True)
class NodeTelemetry:
    """One of several nodes in the window."""

    node: int
    num_samples: int
    power_w: Spread | None = None  # of its GPUs together
    energy_j: float | None = None
    host_cpu_percent: Spread | None = None
    host_memory_used_gb: Spread | None = None
    host_load: Spread | None = None


@dataclass(frozen=True, kw_only=True)
class TelemetrySummary:
    """What a sampler saw from rank 0's first steady iteration to its last, and what the sampler itself cost.

    Of several nodes, each with a sampler of its own: host figures are of all of them, costs those of the dearest.
    """

    window_start_unix_s: float
    window_s: float
    rate_hz: float | None  # that was aimed at
    num_samples: int  # in the window, of the node with the fewest
    gpus: tuple[GpuTelemetry, ...] = ()
    ranks: tuple[RankTelemetry, ...] = ()
    host_cpu_percent: Spread | None = None  # 100 is all cores
    host_stolen_percent: Spread | None = None  # part of it that a hypervisor gave to others instead
    host_others_percent: float | None = None  # part of it that other processes than the run's used, mean; worst node
    host_memory_used_gb: Spread | None = None
    host_load: Spread | None = None
    power_w: Spread | None = None  # of all GPUs of the case together
    energy_j: float | None = None  # of all GPUs of the case: by the counters, or integrated where one has none
    energy_agrees: bool | None = None  # counters and integrals on every GPU; None when they cannot be compared
    frames_per_joule: float | None = None
    sample_time_mean_s: float | None = None  # to read one sample
    sample_time_max_s: float | None = None
    sampler_cpu_share: float | None = None  # of one core
    notes: tuple[str, ...] = ()  # what could not be read, and what does not fit together
    nodes: tuple[NodeTelemetry, ...] = ()  # where there are several
    missing_nodes: tuple[int, ...] = ()  # of which there is nothing, so that nothing is said of all GPUs

    @property
    def stolen_share(self) -> float | None:
        """Of the CPU time that the host wanted, what a hypervisor gave to others; None where nobody counted."""
        wanted, stolen = self.host_cpu_percent, self.host_stolen_percent
        return stolen.mean / wanted.mean if wanted and stolen and wanted.mean else None
