"""Decide which runs compile kernels before anything is timed, and remember which kernels are compiled.

A campaign of a matrix with ``warm_up`` begins with a run of two iterations for each task, stack and number of
environments per rank: Newton compiles its broad phase for each number, and everything else once per task. The run has
one rank even if the rounds have several, because ranks load the same kernels. On two CPU cores with an empty cache
(2026-11-24), one rank of Cartpole, Ant and the Shadow Hand compiled 54, 11 and 24 kernels; later runs with one or two
ranks, or with another RL library, compiled none. On a GPU, rl_games also compiles its network, for each number of ranks
(two H100s, 2026-11-24: 188 kernels on one, then 16 on both). So it has warm-ups of its own there, with as many ranks as
its rounds; these serve the other libraries too. A case with an empty ``kernel_cache`` has none: it is to start cold.

Their cache records which kernels are compiled::

    CACHE/kernels-<pins>/warm/<device>-<stack>-<task>-n<environments of a rank>[-rl_games-<topology>].json
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.files.json_file import replace_json
from suite.files.wording import counted
from suite.install import damage
from suite.matrix.own_worker import own_worker_of
from suite.schema.record import WARM_UP_SUFFIX, Case, Device, Environment, RlLibrary
from suite.schema.stored import MIN_ITERATIONS

COMPILING: Final[frozenset[RlLibrary]] = frozenset({"rl_games"})  # on GPUs, by torch's Inductor

type Kernels = tuple[str, ...]


def kernels_of(case: Case) -> Kernels:
    """The key of all kernels that a run of this case needs."""
    own = (case.rl_library, case.topology) if _compiles_itself(case) else ()
    return (*shared_kernels_of(case), *own)


def shared_kernels_of(case: Case) -> Kernels:
    """The key of the kernels of physics and rendering."""
    own = own_worker_of(case)
    of_own = (hashlib.sha256(str(own).encode()).hexdigest()[:12],) if own else ()
    return case.stack, case.task, f"n{case.num_envs}", *of_own


def is_warmed(case: Case) -> bool:
    """Whether kernels that an earlier run compiled serve this case."""
    return case.kernel_cache == "kept"


def _compiles_itself(case: Case) -> bool:
    return case.device == "cuda" and case.rl_library in COMPILING


def warm_ups(cases: Sequence[Case]) -> list[Case]:
    """The fewest warm-ups that compile all kernels of these cases; those that do not train or start cold have none."""
    training = [case for case in cases if case.learns and is_warmed(case)]
    training.sort(key=lambda case: (not _compiles_itself(case), case.world_size))
    found: list[Case] = []
    compiled: set[Kernels] = set()
    for case in training:
        if kernels_of(case) not in compiled:
            found.append(_warm_up(case))
            compiled |= {kernels_of(case), shared_kernels_of(case)}
    return found


def _warm_up(case: Case) -> Case:
    case = replace(case, trainings_per_gpu=1, num_envs_global=case.num_envs * case.world_size)
    if _compiles_itself(case):
        return replace(case, case_id=case.case_id + WARM_UP_SUFFIX, iterations=MIN_ITERATIONS)
    sizes = (f"-n{case.num_envs_global}-{case.topology}", f"-n{case.num_envs}-1x1")
    return replace(
        case,
        case_id=case.case_id.replace(*sizes) + WARM_UP_SUFFIX,
        nnodes=1,
        nproc_per_node=1,
        num_envs_global=case.num_envs,
        iterations=MIN_ITERATIONS,
    )


def is_of(warm_up: Case, case: Case) -> bool:
    """Whether this is the warm-up of the case, which would then fail as the warm-up did."""
    return is_warmed(case) and (warm_up.rl_library, kernels_of(warm_up)) == (case.rl_library, kernels_of(case))


def in_words(case: Case) -> str:
    sizes = f"{counted(case.num_envs, 'environment')} on {counted(case.world_size, 'rank')}"
    return ", ".join([f"{case.task} with {case.rl_library}, {sizes}", *case.with_packages])


def is_warm(cache_dir: Path, kernels: Kernels, machine: Environment, device: Device) -> bool:
    """Whether a run compiled these kernels for this device, and the cache still has kernels."""
    has_any = next(damage.modules(cache_dir), None) is not None
    return has_any and _path(cache_dir, kernels, machine, device).exists()


def is_missing(cache_dir: Path, warm_up: Case, machine: Environment, needed: Collection[Kernels]) -> bool:
    """Whether this warm-up would compile any of the needed kernels."""
    compiled = {kernels_of(warm_up), shared_kernels_of(warm_up)}.intersection(needed)
    return not all(is_warm(cache_dir, kernels, machine, warm_up.device) for kernels in compiled)


def remember(cache_dir: Path, warm_up: Case, machine: Environment) -> None:
    """Record that a warm-up has compiled its kernels."""
    for kernels in {kernels_of(warm_up), shared_kernels_of(warm_up)}:
        path = _path(cache_dir, kernels, machine, warm_up.device)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_json({"case": warm_up.case_id, "suite_version": machine.suite_version}, path)


def _path(cache_dir: Path, kernels: Kernels, machine: Environment, device: Device) -> Path:
    gpus = machine.gpus if device == "cuda" else ()
    kinds = sorted({gpu.compute_capability or gpu.name.replace(" ", "-") for gpu in gpus})
    return cache_dir / damage.WARM / f"{'-'.join([device, *kinds, *kernels])}.json"
