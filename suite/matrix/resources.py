"""The resources that a case can have. The plan checks each case against them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

type Cores = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Resources:
    """How many nodes one case may use, and the resources of each."""

    nnodes: int
    gpus_per_node: int
    cpus_per_node: int
    is_one_host: bool = False  # simulated nodes of one host; the numbers per node are then totals that all nodes share


# For scripts: their cluster may be out of reach.
UNBOUNDED: Final = Resources(nnodes=10**6, gpus_per_node=10**6, cpus_per_node=10**6)


def cores_of_gpus(*, num_gpus: int, cores: Sequence[int], num_cpus: int) -> tuple[Cores, ...]:
    """Divide the cores of a host evenly among ranks, one on each GPU; () for one GPU or too few cores.

    ``cores`` are the usable cores, ordered so that those that share hardware are neighbours. At most ``num_cpus`` may
    be used at a time. Cores that are left over stay with the system.
    """
    share = min(num_cpus, len(cores)) // num_gpus if num_gpus > 1 else 0
    return tuple(tuple(cores[gpu * share : (gpu + 1) * share]) for gpu in range(num_gpus)) if share else ()
