"""What the operating system gives: shared memory, limits, cores, their governor, disk, libc."""

import contextlib
import os
import platform
import resource
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from suite.env_check.host.exists import is_folder, is_there
from suite.external.machine import num_usable_cpus

UNLIMITED: Final = resource.RLIM_INFINITY

# Of XDG_RUNTIME_DIR. "open": others may read it, or it is another user's, which its specification forbids.
RuntimeDir = Literal["unset", "missing", "not_a_folder", "open", "good"]


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    shm_gb: float | None  # size of /dev/shm; None when it is not there
    shm_free_gb: float | None
    memlock_bytes: int  # the soft limit; -1 is unlimited, as in getrlimit
    memlock_hard_bytes: int
    nofile: int
    nofile_hard: int
    rdma_devices: tuple[str, ...]  # InfiniBand and RoCE
    xdg_runtime_dir: str | None
    runtime_dir: RuntimeDir
    governors: tuple[str, ...]  # different ones among all cores; empty when the kernel shows none
    scaling_driver: str | None
    num_cpus: int  # that this process may use
    libc: str  # "glibc", or empty when it is another
    libc_version: str
    cache_dir: str  # the nearest folder that exists already
    cache_free_gb: float
    cache_writable: bool


def read(environ: Mapping[str, str], *, cache_dir: Path, root: Path = Path("/")) -> HostFacts:
    """Read limits of this process and files below ``root``. ``cache_dir``: where worker and kernels are kept."""
    shm = root / "dev/shm"
    shm_usage = shutil.disk_usage(shm) if shm.is_dir() else None
    while not is_there(cache_dir):
        cache_dir = cache_dir.parent
    memlock, memlock_hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    nofile, nofile_hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    cpus = root / "sys/devices/system/cpu"
    libc, libc_version = platform.libc_ver()
    return HostFacts(
        shm_gb=shm_usage.total / 1e9 if shm_usage else None,
        shm_free_gb=shm_usage.free / 1e9 if shm_usage else None,
        memlock_bytes=memlock,
        memlock_hard_bytes=memlock_hard,
        nofile=nofile,
        nofile_hard=nofile_hard,
        rdma_devices=tuple(sorted(path.name for path in (root / "sys/class/infiniband").glob("*"))),
        xdg_runtime_dir=environ.get("XDG_RUNTIME_DIR") or None,
        runtime_dir=_runtime_dir(environ.get("XDG_RUNTIME_DIR")),
        governors=tuple(sorted(set(_of_cores(cpus, "scaling_governor")))),
        scaling_driver=next(_of_cores(cpus, "scaling_driver"), None),
        num_cpus=num_usable_cpus(),
        libc=libc,
        libc_version=libc_version,
        cache_dir=str(cache_dir),
        cache_free_gb=shutil.disk_usage(cache_dir).free / 1e9,
        cache_writable=cache_dir.is_dir() and os.access(cache_dir, os.W_OK | os.X_OK),
    )


def _of_cores(cpus: Path, setting: str) -> Iterator[str]:
    """A core that is switched off, as by turning off SMT, keeps its files, and the kernel refuses to read them."""
    for path in sorted(cpus.glob(f"cpu[0-9]*/cpufreq/{setting}")):
        with contextlib.suppress(OSError):
            yield path.read_text(encoding="utf-8").strip()


def _runtime_dir(value: str | None) -> RuntimeDir:
    if not value:
        return "unset"
    path = Path(value)
    if not is_there(path):
        return "missing"
    if not is_folder(path):
        return "not_a_folder"
    status = path.stat()
    is_private = status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077
    return "good" if is_private else "open"
