"""How much a place can run at once: what the plan judges a case by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

type Cores = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Nodes that one case may have, and what each has."""

    nnodes: int
    gpus_per_node: int
    cpus_per_node: int
    is_one_host: bool = False  # nodes are parts of it, and what a node has here is what all of them share


# Scripts are rendered for a cluster that need not be within reach.
UNBOUNDED: Final = Resources(nnodes=10**6, gpus_per_node=10**6, cpus_per_node=10**6)


def cores_of_gpus(*, num_gpus: int, cores: Sequence[int], num_cpus: int) -> tuple[Cores, ...]:
    """The cores that a rank on each GPU of a host has, as many for each; () where there is nothing to share.

    ``cores`` are the usable ones, in an order in which those that share hardware are neighbours; ``num_cpus`` of them
    may be used at a time. Cores that do not divide by the GPUs stay with the system.
    """
    share = min(num_cpus, len(cores)) // num_gpus if num_gpus > 1 else 0
    return tuple(tuple(cores[gpu * share : (gpu + 1) * share]) for gpu in range(num_gpus)) if share else ()
