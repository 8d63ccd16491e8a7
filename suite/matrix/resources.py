"""What a machine has, which rounds fit it together as a block, and how long a block takes. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from suite.matrix.catalog import Catalog
from suite.schema.record import Case, Environment, PlannedCase

type Cores = tuple[int, ...]

USABLE: Final = 0.85  # of the memory: estimates err, and the driver and the system have their part
# Part of its time alone in which a process that renders nothing needs the GPU that several share: four trainings of Ant
# or Cartpole took at most so much of their time one after another, with rl_games on an H200 without MPS.
GPU_SHARE: Final = 0.38
HOST_GB_OF_RANK: Final = 6.5  # resident; the most that any stored rank of up to 131,072 environments took is 6.1


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


@dataclass(frozen=True, kw_only=True)
class Room:
    """What the rounds of a block may take together."""

    gpu_gb: float | None  # of each GPU; None without GPUs
    host_gb: float
    ranks: int

    @classmethod
    def of(cls, machine: Environment) -> "Room | None":
        """The room of a machine; None if its memory is not known."""
        gpus_gb = [gpu.memory_gb for gpu in machine.gpus]
        known_gb = [gpu_gb for gpu_gb in gpus_gb if gpu_gb is not None]
        if machine.memory_gb is None or len(known_gb) < len(gpus_gb):
            return None
        return cls(
            gpu_gb=USABLE * min(known_gb) if known_gb else None,
            host_gb=USABLE * machine.memory_gb,
            ranks=machine.num_cpus or 1,
        )

    def after(self, need: "Need") -> "Room | None":
        """The room that is left after ``need``; None if that does not fit."""
        gpu_gb = self.gpu_gb if self.gpu_gb is None or need.gpu_gb is None else self.gpu_gb - need.gpu_gb
        left = Room(gpu_gb=gpu_gb, host_gb=self.host_gb - need.host_gb, ranks=self.ranks - need.ranks)
        has_room = left.host_gb >= 0 and left.ranks >= 0 and (gpu_gb is None or gpu_gb >= 0)
        return left if has_room else None


@dataclass(frozen=True, kw_only=True)
class Need:
    """What a round takes."""

    gpu_gb: float | None  # of each of its GPUs; None if it uses none
    host_gb: float
    ranks: int

    @classmethod
    def planned(cls, case: Case, catalog: Catalog) -> "Need | None":
        """The need of a case of one node by the catalog; None if nobody measured it."""
        training_gb = catalog.gpu_memory_gb(case) if case.device == "cuda" else None
        if case.device == "cuda" and training_gb is None:
            return None
        gpu_gb = None if training_gb is None else training_gb * case.processes_per_gpu
        return replace(cls.without_gpu(case), gpu_gb=gpu_gb)

    @classmethod
    def without_gpu(cls, case: Case) -> "Need":
        """What it takes of the host."""
        return cls(gpu_gb=None, host_gb=HOST_GB_OF_RANK * case.num_processes, ranks=case.num_processes)


def blocks[Item](items: Sequence[Item], need_of: Callable[[Item], Need | None], room: Room) -> list[list[Item]]:
    """Cut ``items``, in their order, into blocks that fit. An item of unknown need is a block of its own."""
    cut: list[list[Item]] = []
    rest: Room | None = None  # of the last block; None: nothing is added to it
    for item in items:
        need = need_of(item)
        left = None if rest is None or need is None else rest.after(need)
        if left is None:
            cut.append([])
            left = None if need is None else room.after(need)
        cut[-1].append(item)
        rest = left
    return cut


def load_of(case: Case, *, renders: bool) -> float:
    """Estimate how much of the GPU that they share its processes need; above 1, they are so many times as slow."""
    if case.is_pipeline:
        return 1.0
    # On a CPU they share cores. There, and where rendering fills the GPU, they are as slow as one after another.
    return case.processes_per_gpu * (1.0 if case.device == "cpu" or renders else GPU_SHARE)


def time_of_block_s(block: Sequence[PlannedCase]) -> float | None:
    """Estimate the time of a block [s]: the longest start, then all iterations; None if a case's cost is unknown.

    Runs of which only the learning counts train at the same time: as long as the longest, or as the GPU needs for all.
    """
    times_s = [
        (item.estimated_start_s, item.estimated_wall_s - item.estimated_start_s, item.estimated_load)
        for item in block
        if item.estimated_start_s is not None and item.estimated_wall_s is not None
    ]
    if len(times_s) < len(block):
        return None
    rests_s = [rest_s for _, rest_s, _ in times_s]
    together_s = sum(rests_s)
    if all(item.case.only_learning for item in block):
        together_s = max(*rests_s, sum(rest_s * min(1.0, load) for _, rest_s, load in times_s))
    return max(start_s for start_s, _, _ in times_s) + together_s


def gpu_minutes(block: Sequence[PlannedCase]) -> float | None:
    """GPU-minutes of a block: the GPUs of its largest case for its whole time; None if a cost is unknown."""
    block_s = time_of_block_s(block)
    gpus = max((item.case.num_gpus for item in block if item.case.device == "cuda"), default=0)
    return None if block_s is None else gpus * block_s / 60
