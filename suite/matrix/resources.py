"""How much a place can run at once: what the plan judges a case by."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Nodes that one case may have, and what each has."""

    nnodes: int
    gpus_per_node: int
    cpus_per_node: int
    is_one_host: bool = False  # nodes are parts of it, and what a node has here is what all of them share


# Scripts are rendered for a cluster that need not be within reach.
UNBOUNDED: Final = Resources(nnodes=10**6, gpus_per_node=10**6, cpus_per_node=10**6)
