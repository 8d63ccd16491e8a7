"""Runs NCCL again without peer-to-peer transfers, without shared memory, and without both, to find the broken path.

CUDA may offer a path between GPUs that carries no data. NCCL then hangs, fails or sums wrongly, and training reports
"Watchdog caught collective operation timeout", "an illegal memory access was encountered" or "unhandled system error".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

P2P_OFF: Final = "NCCL_P2P_DISABLE=1"
SHM_OFF: Final = "NCCL_SHM_DISABLE=1"
_EXPORT: Final = "before env_check and bench (in containers: a line of /etc/nccl.conf)"
_P2P_CAUSES: Final = (
    "the IOMMU or PCIe ACS is on (bare metal: iommu=pt or off for the kernel, ACS off in the BIOS), a virtual machine's"
    " PCIe is virtualised, or the GPUs are consumer models without P2P (nvidia-smi topo -p2p w)"
)
_SHM_CAUSES: Final = "a full or too small /dev/shm: a container has 64 MB by default (use --ipc=host or --shm-size=8g)"


@dataclass(frozen=True, kw_only=True)
class Path:
    """A path between GPUs that NCCL can work without."""

    fault: str  # the fault if NCCL works only without this path
    variables: tuple[str, ...]
    what: str
    repair: str


PATHS: Final = (
    Path(
        fault="nccl_p2p_broken",
        variables=(P2P_OFF,),
        what="peer-to-peer transfers between GPUs are broken",
        repair=f"export {P2P_OFF} {_EXPORT}. Data then goes through the host's memory, which is slower. Usual causes: "
        f"{_P2P_CAUSES}. Training says: Watchdog caught collective operation timeout, or CUDA error: an illegal memory "
        "access was encountered.",
    ),
    Path(
        fault="nccl_shm_broken",
        variables=(SHM_OFF,),
        what="NCCL's shared memory is broken",
        repair=f"export {SHM_OFF} {_EXPORT}. GPUs without peer access then exchange data through sockets and the host's"
        f" memory, which is slower. Usual cause: {_SHM_CAUSES}. Training says: unhandled system error (ncclSystemError)"
        ", or Error while creating shared memory segment /dev/shm/nccl-.",
    ),
    Path(
        fault="nccl_p2p_and_shm_broken",
        variables=(P2P_OFF, SHM_OFF),
        what="peer-to-peer transfers and NCCL's shared memory are broken",
        repair=f"export {P2P_OFF} {SHM_OFF} {_EXPORT}. Data then goes through sockets and the host's memory, the "
        f"slowest way. Usual causes: {_P2P_CAUSES}; and {_SHM_CAUSES}.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class PathTry:
    """The result of one probe without a path."""

    variables: tuple[str, ...]
    fault: str | None  # None: the sum was right
    message: str | None
    wall_s: float | None
    bus_bandwidth_gb_s: float | None


def try_paths(environ: Mapping[str, str], run: Callable[[Path], PathTry]) -> tuple[PathTry, ...]:
    """Run the probe without each path in turn until it works; skip the paths that ``environ`` turns off already."""
    tries: list[PathTry] = []
    for path in PATHS:
        if all(environ.get(name) == value for name, _, value in (text.partition("=") for text in path.variables)):
            continue
        tries.append(run(path))
        if tries[-1].fault is None:
            break
    return tuple(tries)


def broken_path(tries: tuple[PathTry, ...]) -> Path | None:
    """Return the path without which NCCL works; None if no path was tried, or none is the cause."""
    if not tries or tries[-1].fault is not None:
        return None
    return next(path for path in PATHS if path.variables == tries[-1].variables)


def describe(tries: tuple[PathTry, ...]) -> str:
    """Return the result of the tries as the end of a sentence; empty without tries."""
    if not tries:
        return ""
    last, path = tries[-1], broken_path(tries)
    if path is None:
        return f"; nor does it work with {', with '.join(' '.join(each.variables) for each in tries)}"
    speed = f" ({last.bus_bandwidth_gb_s:.1f} GB/s)" if last.bus_bandwidth_gb_s else ""
    return f"; it works with {' '.join(last.variables)}{speed}, so {path.what}"
