"""What was observed of a round beside its ranks' own records: by samplers, about networks, and of turns.

Imports the standard library only. A value that was not measured is ``None``, never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from suite.schema.stored import Count, Number, Whole


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Minimum, mean and maximum in the window. Mean power is time-weighted; None if samples are missing."""

    min: Number
    mean: Number
    max: Number


@dataclass(frozen=True, kw_only=True)
class GpuTelemetry:
    """One GPU in the window. Values that the driver refuses, or gives with gaps, are None."""

    index: Count  # on its node
    node: Count = 0
    persistence: bool | None = None  # whether the driver stays loaded without a program that uses it
    sm_utilisation_percent: Spread | None = None  # time in which any kernel ran, however small
    memory_utilisation_percent: Spread | None = None  # time in which memory was read or written
    memory_used_gb: Spread | None = None
    power_w: Spread | None = None
    sm_clock_mhz: Spread | None = None
    memory_clock_mhz: Spread | None = None
    temperature_c: Spread | None = None
    energy_counter_j: Number | None = None  # difference of the driver's counter
    energy_integrated_j: Number | None = None  # power over time, by trapezoids
    energy_disagreement: Number | None = None  # (integrated - counter) / the larger
    throttled_share: Number | None = None  # of the samples: slowed by power, heat, or the board
    slowdown_shares: Mapping[str, Number] | None = None  # reason of suite.external.nvml, or idle -> share of samples


@dataclass(frozen=True, kw_only=True)
class RankTelemetry:
    """The process of one rank in the window; values are None if it is hidden, as in a container."""

    rank: Count
    cpu_percent: Spread | None = None  # 100 is one core
    memory_gb: Spread | None = None  # resident
    threads: Spread | None = None


@dataclass(frozen=True, kw_only=True)
class NodeTelemetry:
    """One of several nodes in the window."""

    node: Count
    num_samples: Count
    power_w: Spread | None = None  # of its GPUs together
    energy_j: Number | None = None
    host_cpu_percent: Spread | None = None
    host_memory_used_gb: Spread | None = None
    host_load: Spread | None = None


type Reading = Whole | Number | str | None


@dataclass(frozen=True, kw_only=True)
class NodeReadings:
    """A sampler's readings while the ranks trained, about one a second, as columns of one length.

    Columns are ``time_s``, on the clock of rank 0's ``start_s``, and one for each value that was read:
    ``gpu0.power_w`` (``suite.external.nvml.values.GpuReading``; slowdowns are joined by +, energy counts from the first
    reading), ``rank0.core`` and ``host.load`` (``suite.records.telemetry_file``).
    """

    node: Count = 0
    columns: Mapping[str, tuple[Reading, ...]]


@dataclass(frozen=True, kw_only=True)
class TelemetrySummary:
    """A sampler's figures over rank 0's window of iterations, and the sampler's own cost.

    Each of several nodes has a sampler: host figures are over all nodes, costs are those of the most expensive sampler.
    """

    window_start_unix_s: Number
    window_s: Number
    rate_hz: Number | None  # the intended one
    num_samples: Count  # in the window, of the node with the fewest
    gpus: tuple[GpuTelemetry, ...] = ()
    ranks: tuple[RankTelemetry, ...] = ()
    host_cpu_percent: Spread | None = None  # 100 is all cores
    host_stolen_percent: Spread | None = None  # part of it that a hypervisor gave to others
    host_others_percent: Number | None = None  # part of it that processes outside the run used, mean; worst node
    host_memory_used_gb: Spread | None = None
    host_load: Spread | None = None
    power_w: Spread | None = None  # of all GPUs of the case together
    energy_j: Number | None = None  # of all GPUs of the case: from the counters, or integrated if one has none
    energy_agrees: bool | None = None  # counters and integrals of every GPU; None if they cannot be compared
    frames_per_joule: Number | None = None
    sample_time_mean_s: Number | None = None  # to read one sample
    sample_time_max_s: Number | None = None
    sampler_cpu_share: Number | None = None  # of one core
    notes: tuple[str, ...] = ()  # what could not be read, and contradictions
    nodes: tuple[NodeTelemetry, ...] = ()  # if there are several
    missing_nodes: tuple[Count, ...] = ()  # nodes without telemetry; figures of all GPUs are then None

    @property
    def stolen_share(self) -> float | None:
        """Share of the host's wanted CPU time that a hypervisor gave to others; None if unknown."""
        wanted, stolen = self.host_cpu_percent, self.host_stolen_percent
        return stolen.mean / wanted.mean if wanted and stolen and wanted.mean else None


# ---- networks ----


# host_memory: between processes of one host, through its memory or its loopback.
Interconnect = Literal["nvlink", "pcie", "host_memory", "infiniband", "roce", "ethernet"]
UNKNOWN_INTERFACE: Final = "unknown"  # the socket has a second IPv4 address of an interface


@dataclass(frozen=True, kw_only=True)
class Route:
    """One kind of connection between ranks, in the words of NCCL's log."""

    kind: str  # P2P/CUMEM, P2P/IPC/read, SHM/direct/direct, NET/Socket, NET/IB/GDRDMA, …
    between_nodes: bool
    pairs: Count  # of ranks, counted in each direction
    channels: Count  # of all these pairs


@dataclass(frozen=True, kw_only=True)
class Transport:
    """How the ranks exchanged data in this round, from NCCL's log or gloo's sockets."""

    library: Literal["nccl", "gloo"]
    version: str | None = None
    interfaces: tuple[str, ...] = ()  # of the network, on any node: eth0, mlx5_0
    routes: tuple[Route, ...] = ()  # NCCL's
    within_node: tuple[Interconnect, ...] = ()  # empty: unknown, or no data
    between_nodes: tuple[Interconnect, ...] = ()
    emulated: bool | None = None  # several nodes share a machine; None: unknown
    nvls: bool | None = None  # NCCL connected the reductions inside NVSwitch, and decides which collectives use them
    unread_lines: Count = 0  # of NCCL's log, about channels in unknown words
    logged_while_steady: bool | None = None  # NCCL also logged in the window, which costs time

    @property
    def interconnect(self) -> str | None:
        """What the round's data crossed between its nodes, or within its only node, as a figure shows it."""
        words = " and ".join(self.between_nodes or self.within_node)
        if self.emulated:
            return f"emulated ({words})" if words else "emulated"
        return words or None


# ---- turns ----


@dataclass(frozen=True, kw_only=True)
class TurnsTaken:
    """How a round was measured together with other rounds."""

    beside: tuple[str, ...]  # case ids of the other rounds of its block
    turns: Count  # that it had
    turn_s: Number  # length that was aimed at
