"""Runs NCCL again without peer-to-peer transfers, shared memory, both, and NVLS, to find the broken path.

CUDA may offer a path between GPUs that carries no data. NCCL then hangs, fails or sums wrongly, and training reports
"Watchdog caught collective operation timeout", "an illegal memory access was encountered" or "unhandled system error".
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

P2P_OFF: Final = "NCCL_P2P_DISABLE=1"
SHM_OFF: Final = "NCCL_SHM_DISABLE=1"
NVLS_OFF: Final = "NCCL_NVLS_ENABLE=0"
_EXPORT: Final = "before env_check and bench (in containers: a line of /etc/nccl.conf)"
_P2P_CAUSES: Final = (
    "the IOMMU or PCIe ACS is on (bare metal: iommu=pt or off for the kernel, ACS off in the BIOS), a virtual machine's"
    " PCIe is virtualised, or the GPUs are consumer models without P2P (nvidia-smi topo -p2p w)"
)


@dataclass(frozen=True, kw_only=True)
class Path:
    """A path between GPUs that NCCL can work without."""

    fault: str  # the fault if NCCL works only without this path
    variables: tuple[str, ...]
    what: str
    instead: str  # how the data then goes, why the path may be broken, and what training says

    def repair(self, environ: Mapping[str, str], shm_repair: str | None) -> str:
        """Return the next step: the variables that ``environ`` lacks. ``shm_repair``: what /dev/shm needs, if anything.

        A repair never names what is set already, so /dev/shm is a cause only if it is too small or full.
        """
        shm = (
            shm_repair or "something else than /dev/shm, which is large enough: a limit of the container or its cgroup"
        )
        return f"export {' '.join(unset(self, environ))} {_EXPORT}. {self.instead.format(shm=shm)}"


PATHS: Final = (
    Path(
        fault="nccl_p2p_broken",
        variables=(P2P_OFF,),
        what="peer-to-peer transfers between GPUs are broken",
        instead=f"Data then goes through the host's memory, which is slower. Usual causes: {_P2P_CAUSES}. Training"
        " says: Watchdog caught collective operation timeout, or CUDA error: an illegal memory access was encountered.",
    ),
    Path(
        fault="nccl_shm_broken",
        variables=(SHM_OFF,),
        what="NCCL's shared memory is broken",
        instead="GPUs without peer access then exchange data through sockets and the host's memory, which is slower."
        " Usual cause: {shm}. Training says: unhandled system error (ncclSystemError), or Error while creating shared"
        " memory segment /dev/shm/nccl-.",
    ),
    Path(
        fault="nccl_p2p_and_shm_broken",
        variables=(P2P_OFF, SHM_OFF),
        what="peer-to-peer transfers and NCCL's shared memory are broken",
        instead=f"Data then goes through sockets and the host's memory, the slowest way. Usual causes: {_P2P_CAUSES};"
        " and {shm}.",
    ),
    Path(
        fault="nccl_nvls_broken",
        variables=(NVLS_OFF,),
        what="NVLink SHARP (NVLS), with which NVSwitch reduces, is broken",
        instead="GPUs then reduce without NVSwitch, which is slower. Usual cause: the Fabric Manager started again"
        " without a reset of the GPUs, or has another version than the driver. On the host, with nobody on the GPUs:"
        " sudo systemctl stop nvidia-fabricmanager, sudo nvidia-smi -r, sudo systemctl start nvidia-fabricmanager.",
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


def unset(path: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables of ``path`` that ``environ`` does not set to their values."""
    pairs = [text.partition("=") for text in path.variables]
    return tuple(f"{name}={value}" for name, _, value in pairs if environ.get(name) != value)


def try_paths(environ: Mapping[str, str], run: Callable[[Path], PathTry]) -> tuple[PathTry, ...]:
    """Run the probe without each path in turn until it works; skip what ``environ`` has, or what was tried already."""
    tries: list[PathTry] = []
    tried: list[tuple[str, ...]] = [()]
    for path in PATHS:
        if unset(path, environ) in tried:
            continue
        tried.append(unset(path, environ))
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
