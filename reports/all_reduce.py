"""What an all-reduce costs, as the ring algorithm says: time(N, bytes) = 2 (N-1) alpha + 2 (N-1)/N bytes beta. Pure.

alpha is the latency of one step in seconds, beta the seconds per byte of the slowest link. Within one host the links
are faster than between hosts, so samples of one kind say nothing of the other.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from reports.resampling import Rounds
from suite.reduce import steady_part
from suite.schema import CaseResult, RunRecord

_COEFFICIENTS = 2


@dataclass(frozen=True, kw_only=True)
class AllReduceSample:
    """One measured all-reduce; ``message_bytes`` is the size of a rank's tensor."""

    world_size: int
    message_bytes: float
    time_s: float


@dataclass(frozen=True, kw_only=True)
class RingAllReduce:
    latency_s: float  # alpha
    seconds_per_byte: float  # beta
    worst_residual: float  # the largest relative error at a fitted sample

    def time_s(self, world_size: int, message_bytes: float) -> float:
        """Predicted seconds of one all-reduce; nothing for one rank."""
        steps, volume = ring_basis(world_size, message_bytes)
        return steps * self.latency_s + volume * self.seconds_per_byte


@dataclass(frozen=True, kw_only=True)
class NoRing:
    reason: str


def fit_ring(samples: Sequence[AllReduceSample], *, check_points: int = 1) -> RingAllReduce | NoRing:
    """Non-negative least squares of the relative error over samples of several numbers of ranks or message sizes.

    ``check_points`` as in ``reports.scaling_laws.fit``: how many samples it needs beyond its two coefficients.
    """
    usable = [sample for sample in samples if sample.world_size > 1]
    kinds = {sample.message_bytes / sample.world_size for sample in usable}
    if len(usable) < _COEFFICIENTS + check_points or len(kinds) < _COEFFICIENTS:
        return NoRing(
            reason=f"{len(usable)} samples of several ranks with {len(kinds)} different bytes per rank cannot tell"
            f" latency from bandwidth; it needs {_COEFFICIENTS + check_points} samples of at least {_COEFFICIENTS}"
        )
    rows = np.array([ring_basis(sample.world_size, sample.message_bytes) for sample in usable])
    times_s = np.array([sample.time_s for sample in usable])
    relative = rows / times_s[:, None]
    scales = np.linalg.norm(relative, axis=0)
    solution, _ = nnls(relative / scales, np.ones(len(usable)))
    alpha, beta = solution / scales
    worst = float(np.max(np.abs(rows @ [alpha, beta] / times_s - 1)))
    return RingAllReduce(latency_s=float(alpha), seconds_per_byte=float(beta), worst_residual=worst)


def ring_basis(world_size: int, message_bytes: float) -> tuple[float, float]:
    """Steps of a ring, each of one latency, and the bytes that pass its slowest link."""
    steps = 2 * (world_size - 1)
    return steps, steps / world_size * message_bytes


def all_reduce_times_s(result: CaseResult) -> Rounds:
    """Seconds in all-reduce per steady iteration of every completed round that measured it.

    Of the rank that spent least in it: the others waited for that one, and waiting is no communication.
    """
    times = {record.round: _least_all_reduce_s(record) for record in result.completed}
    return {number: time_s for number, time_s in times.items() if time_s is not None}


def _least_all_reduce_s(record: RunRecord) -> float | None:
    steady = steady_part(record)
    columns = [steady.of(rank.samples.get("all_reduce_time_s", ())) for rank in record.ranks]
    per_iteration = [
        min(time_s for time_s in times if time_s is not None)
        for times in zip(*columns, strict=False)
        if None not in times
    ]
    return statistics.median(per_iteration) if per_iteration else None
