"""What an all-reduce over several nodes costs, by ring and by tree, from latencies and bandwidths. Pure.

The formulas are those by which NCCL chooses between the two. With N GPUs on M nodes of g GPUs each, n bytes, latencies
``a`` within a node and ``b`` between nodes, and the bandwidth B of the narrowest part:

    ring: (2 (N-1) - 2 M) a + 2 M b + 2 (N-1)/N n/B    with one node: 2 (N-1) a + 2 (N-1)/N n/B
    tree: 2 (g-1) a + 2 log2(M) b + 2 n/B              log2 rounded up

What a call costs before its first hop is not here: it is in what was measured.
"""

import math
from dataclasses import dataclass
from typing import Literal

from reports.all_reduce import ring_basis

type Bound = Literal["low", "expected", "high"]  # of a time


@dataclass(frozen=True, kw_only=True)
class Links:
    """Seconds of a hop and bytes per second, within a node and between nodes."""

    gpus_per_node: int
    ring_within_s: float
    tree_within_s: float
    within_bytes_per_s: float  # of a GPU
    ring_between_s: float
    tree_between_s: float
    between_bytes_per_s: float  # of a node, all its ports

    def nodes(self, world_size: int) -> int:
        return math.ceil(world_size / self.gpus_per_node)

    def bytes_per_s(self, world_size: int) -> float:
        """Of the narrowest part that ``world_size`` GPUs use."""
        if self.nodes(world_size) == 1:
            return self.within_bytes_per_s
        return min(self.within_bytes_per_s, self.between_bytes_per_s)


def ring_s(world_size: int, message_bytes: float, links: Links) -> float:
    """Seconds of one all-reduce; nothing for one GPU."""
    nodes = links.nodes(world_size)
    steps, volume_bytes = ring_basis(world_size, message_bytes)
    between = 2 * nodes if nodes > 1 else 0
    latency_s = max(0.0, steps - between) * links.ring_within_s + min(between, steps) * links.ring_between_s
    return latency_s + volume_bytes / links.bytes_per_s(world_size)


def tree_s(world_size: int, message_bytes: float, links: Links) -> float:
    """Seconds of one all-reduce; nothing for one GPU."""
    if world_size == 1:
        return 0.0
    within = 2 * (min(world_size, links.gpus_per_node) - 1)
    between = 2 * math.ceil(math.log2(links.nodes(world_size)))
    latency_s = within * links.tree_within_s + between * links.tree_between_s
    return latency_s + 2 * message_bytes / links.bytes_per_s(world_size)


def all_reduce_s(world_size: int, message_bytes: float, links: Links) -> float:
    """Seconds of one all-reduce by the quicker algorithm, as the library chooses."""
    return min(ring_s(world_size, message_bytes, links), tree_s(world_size, message_bytes, links))
