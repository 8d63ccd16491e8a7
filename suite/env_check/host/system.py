"""Checks what the operating system provides: shared memory, limits, cores and their governor, disk, libc."""

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

from suite.env_check.check import Judgement, Subject
from suite.env_check.gpu.driver_table import parts
from suite.env_check.host.exists import is_folder, is_there
from suite.external.machine import num_usable_cpus
from suite.files.wording import counted
from suite.install.pins import ALL_PINS

UNLIMITED: Final = resource.RLIM_INFINITY
SHM_NEEDED_GB: Final = 1.0  # the size in NVIDIA's own multi-GPU recipes
SHM_USELESS_GB: Final = 0.068  # 64 MiB, docker's default: NCCL fails with it
MEMLOCK_NEEDED_BYTES: Final = 10**9  # a network card reads NCCL's buffers directly: they must be locked in memory
NOFILE_NEEDED: Final = 1024  # the usual default
CORES_PER_GPU: Final = 4  # for the main thread, NCCL's proxy, and the threads of CUDA and the compilers
KERNEL_CACHE_GB: Final = 2.0  # compiled kernels and logs, once the worker is installed
WORKER_GLIBC: Final = next(pins.glibc for pins in ALL_PINS if pins.name == "worker").replace("_", ".")


# State of XDG_RUNTIME_DIR. "open": others may read it, or it belongs to another user; its specification forbids both.
RuntimeDir = Literal["unset", "missing", "not_a_folder", "open", "good"]


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    shm_gb: float | None  # size of /dev/shm; None if it does not exist
    shm_free_gb: float | None
    memlock_bytes: int  # the soft limit; -1 is unlimited, as in getrlimit
    memlock_hard_bytes: int
    nofile: int
    nofile_hard: int
    rdma_devices: tuple[str, ...]  # InfiniBand and RoCE
    xdg_runtime_dir: str | None
    runtime_dir: RuntimeDir
    governors: tuple[str, ...]  # distinct ones of all cores; empty if the kernel shows none
    scaling_driver: str | None
    num_cpus: int  # CPUs that this process may use
    libc: str  # "glibc", or empty for any other
    libc_version: str
    cache_dir: str  # the nearest parent that exists
    cache_free_gb: float
    cache_writable: bool
    cache_noexec: bool = False  # mounted so that no program and no library there can run


def read(environ: Mapping[str, str], *, cache_dir: Path, root: Path = Path("/")) -> HostFacts:
    """Read limits of this process and files below ``root``. ``cache_dir`` stores the worker and compiled kernels."""
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
        cache_noexec=bool(os.statvfs(cache_dir).f_flag & os.ST_NOEXEC),
    )


def _of_cores(cpus: Path, setting: str) -> Iterator[str]:
    """Yield a cpufreq setting of every core. The kernel refuses reads for a core that is offline, as without SMT."""
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


@dataclass(frozen=True, kw_only=True)
class HostValues:
    """The values of ``HostFacts`` that a check used."""

    values: Mapping[str, object]


def _subject(wanted: str, facts: HostFacts, *fields: str) -> Subject:
    return Subject(wanted, HostValues(values={field: getattr(facts, field) for field in fields}))


def judge_shared_memory(facts: HostFacts) -> Judgement:
    """Judge /dev/shm: NCCL uses it for messages, and for data between GPUs without peer access."""
    subject = _subject(f"{_size(SHM_NEEDED_GB)} free in /dev/shm", facts, "shm_gb", "shm_free_gb")
    size_gb, free_gb = facts.shm_gb, facts.shm_free_gb
    if size_gb is None or free_gb is None:
        return subject.failure("no_dev_shm", "no /dev/shm", "Mount a tmpfs on /dev/shm.")
    found = f"{_size(size_gb)}, {_size(free_gb)} free"
    if size_gb < SHM_NEEDED_GB:
        faulty = subject.failure if size_gb <= SHM_USELESS_GB else subject.warning
        return faulty(
            "small_dev_shm",
            found,
            "Start the container with --ipc=host or --shm-size=8g; on a host: sudo mount -o remount,size=8G /dev/shm.",
        )
    if free_gb < SHM_NEEDED_GB:
        repair = "Remove what dead processes left there (ls -l /dev/shm: nccl-*, torch_*)."
        faulty = subject.failure if free_gb <= SHM_USELESS_GB else subject.warning
        return faulty("full_dev_shm", found, repair)
    return subject.ok(found)


def judge_memlock(facts: HostFacts) -> Judgement:
    subject = _subject(
        f"unlimited, or {_size(MEMLOCK_NEEDED_BYTES / 1e9)} or more, where there are RDMA devices",
        facts, "memlock_bytes", "memlock_hard_bytes", "rdma_devices",
    )  # fmt: skip
    limit = facts.memlock_bytes
    text = "unlimited" if limit == UNLIMITED else _size(limit / 1e9)
    found = f"{text}, RDMA devices: {', '.join(facts.rdma_devices) or 'none'}"
    if limit != UNLIMITED and limit < MEMLOCK_NEEDED_BYTES and facts.rdma_devices:
        repair = "ulimit -l unlimited (limits.conf, LimitMEMLOCK of slurmd), or docker run --ulimit memlock=-1."
        return subject.warning("low_memlock", found, repair)
    return subject.ok(found)


def judge_nofile(facts: HostFacts) -> Judgement:
    subject = _subject(f"{NOFILE_NEEDED} open files or more", facts, "nofile", "nofile_hard")
    if facts.nofile == UNLIMITED:
        return subject.ok("unlimited")
    if facts.nofile < NOFILE_NEEDED:
        repair = f"ulimit -n {NOFILE_NEEDED * 64} (limits.conf), or docker run --ulimit nofile=65536:65536."
        return subject.failure("low_nofile", str(facts.nofile), repair)
    return subject.ok(str(facts.nofile))


def judge_xdg_runtime_dir(facts: HostFacts) -> Judgement:
    """Judge XDG_RUNTIME_DIR: Vulkan and EGL drivers keep sockets there; Isaac Sim complains without it."""
    subject = _subject("a folder of this user alone", facts, "xdg_runtime_dir", "runtime_dir")
    found = f"{facts.xdg_runtime_dir or ''} {facts.runtime_dir.replace('_', ' ')}".strip()
    words = {
        "unset": "no_xdg_runtime_dir",
        "missing": "xdg_runtime_dir_missing",
        "not_a_folder": "xdg_runtime_dir_not_a_folder",
        "open": "xdg_runtime_dir_open",
    }
    if word := words.get(facts.runtime_dir):
        repair = 'export XDG_RUNTIME_DIR="$(mktemp -d)", a folder of this user alone (mode 0700).'
        return subject.warning(word, found, repair)
    return subject.ok(found)


def judge_cpu_governor(facts: HostFacts) -> Judgement:
    """Judge the CPU governor: a core that clocks down makes the GPUs wait between kernels."""
    subject = _subject("performance", facts, "governors", "scaling_driver")
    if not facts.governors:
        return subject.not_checked("the kernel shows none")
    found = ", ".join(facts.governors) + (f" ({facts.scaling_driver})" if facts.scaling_driver else "")
    if "powersave" in facts.governors:
        return subject.warning("powersave_governor", found, "sudo cpupower frequency-set -g performance")
    return subject.ok(found)


def judge_cores_per_gpu(facts: HostFacts, num_gpus: int) -> Judgement:
    subject = _subject(f"{CORES_PER_GPU} or more for each", facts, "num_cpus")
    if num_gpus == 0:
        return subject.not_checked("no GPU")
    found, needed = f"{facts.num_cpus} cores for {counted(num_gpus, 'GPU')}", CORES_PER_GPU * num_gpus
    if facts.num_cpus < needed:
        repair = f"Ask for {counted(needed, 'core')} (--cpus-per-task of Slurm, --cpus of docker), or use fewer GPUs."
        return subject.warning("few_cores_per_gpu", found, repair)
    return subject.ok(found)


def judge_cache_disk(facts: HostFacts, *, needed_gb: float) -> Judgement:
    """Judge the cache's disk.

    ``needed_gb`` is ``install.worker.INSTALL_DISK_GB`` before the worker is installed, then ``KERNEL_CACHE_GB``.
    """
    subject = _subject(
        f"{_size(needed_gb)} free", facts, "cache_dir", "cache_free_gb", "cache_writable", "cache_noexec"
    )
    found = f"{_size(facts.cache_free_gb)} free in {facts.cache_dir}"
    if not facts.cache_writable:
        return subject.failure(
            "cache_not_writable",
            f"{found}, but this user may not write there",
            "Make it writable for this user, or set LABSCALE_CACHE to a folder of yours.",
        )
    if facts.cache_noexec:
        return subject.failure(
            "cache_noexec",
            f"{facts.cache_dir} is on a mount with noexec: the worker's Python and compiled kernels cannot run there",
            "Set LABSCALE_CACHE to a folder on a mount without noexec (findmnt -O noexec lists those with it).",
        )
    if facts.cache_free_gb < needed_gb:
        return subject.failure(
            "cache_disk_full", found, "Free space, or set LABSCALE_CACHE to a folder on a larger disk."
        )
    return subject.ok(found)


def judge_libc(facts: HostFacts) -> Judgement:
    """Judge libc: the worker's wheels need glibc, of at least the version in their tags."""
    subject = _subject(f"glibc {WORKER_GLIBC} or newer", facts, "libc", "libc_version")
    found = f"{facts.libc or 'unknown libc'} {facts.libc_version}".strip()
    repair = "Use Ubuntu 22.04, Debian 12, RHEL 10 or newer, or the suite's image."
    if facts.libc != "glibc":
        return subject.failure("not_glibc", found, repair)
    if parts(facts.libc_version) < parts(WORKER_GLIBC):
        return subject.failure("glibc_too_old", found, repair)
    return subject.ok(found)


def _size(gb: float) -> str:
    return f"{gb:.1f} GB" if gb >= 1 else f"{gb * 1000:.0f} MB"
