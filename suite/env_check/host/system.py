"""Judging what the operating system gives (``suite.env_check.host.facts``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from suite.env_check.check import Check, Feature, Verdict
from suite.env_check.gpu.driver_table import parts
from suite.env_check.host.facts import UNLIMITED, HostFacts
from suite.files.wording import counted
from suite.install.pins import ALL_PINS

SHM_NEEDED_GB: Final = 1.0  # what NVIDIA's own multi-GPU recipes give
SHM_USELESS_GB: Final = 0.068  # 64 MiB, what docker gives by default: NCCL fails with it
MEMLOCK_NEEDED_BYTES: Final = 10**9  # a network card reads NCCL's buffers directly, so they are locked in memory
NOFILE_NEEDED: Final = 1024  # the usual default
CORES_PER_GPU: Final = 4  # main thread, NCCL's proxy, and those that CUDA and the compilers start
KERNEL_CACHE_GB: Final = 2.0  # compiled kernels and logs, once the worker is installed
WORKER_GLIBC: Final = next(pins.glibc for pins in ALL_PINS if pins.name == "worker").replace("_", ".")


@dataclass(frozen=True, kw_only=True)
class HostValues:
    """The values of ``HostFacts`` that a check looked at."""

    values: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class _Fault:
    word: str
    repair: str
    verdict: Verdict = "warning"


def _check(
    facts: HostFacts, fields: tuple[str, ...], *, name: str, feature: Feature, found: str, wanted: str,
    fault: _Fault | None = None, is_known: bool = True,
) -> Check[HostValues]:  # fmt: skip
    return Check(
        name=name,
        feature=feature,
        verdict=fault.verdict if fault else "ok" if is_known else "not_checked",
        found=found,
        wanted=wanted,
        fault=fault.word if fault else None,
        repair=fault.repair if fault else None,
        evidence=HostValues(values={field: getattr(facts, field) for field in fields}),
    )


def check_shared_memory(facts: HostFacts) -> Check[HostValues]:
    """NCCL passes data between GPUs without peer access, and its own messages, through /dev/shm."""
    size_gb, free_gb, fault = facts.shm_gb, facts.shm_free_gb, None
    larger = "Start the container with --ipc=host or --shm-size=8g; on a host: sudo mount -o remount,size=8G /dev/shm."
    if size_gb is None or free_gb is None:
        fault = _Fault(word="no_dev_shm", repair="Mount a tmpfs on /dev/shm.", verdict="failure")
        found = "no /dev/shm"
    else:
        found = f"{_size(size_gb)}, {_size(free_gb)} free"
        if size_gb < SHM_NEEDED_GB:
            verdict: Verdict = "failure" if size_gb <= SHM_USELESS_GB else "warning"
            fault = _Fault(word="small_dev_shm", repair=larger, verdict=verdict)
        elif free_gb < SHM_NEEDED_GB:
            repair = "Remove what dead processes left there (ls -l /dev/shm: nccl-*, torch_*)."
            verdict = "failure" if free_gb <= SHM_USELESS_GB else "warning"
            fault = _Fault(word="full_dev_shm", repair=repair, verdict=verdict)
    wanted = f"{_size(SHM_NEEDED_GB)} free in /dev/shm"
    return _check(facts, ("shm_gb", "shm_free_gb"), name="shared_memory", feature="nccl", found=found, wanted=wanted,
                  fault=fault)  # fmt: skip


def check_memlock(facts: HostFacts) -> Check[HostValues]:
    limit = facts.memlock_bytes
    is_low = limit != UNLIMITED and limit < MEMLOCK_NEEDED_BYTES
    repair = "ulimit -l unlimited (limits.conf, LimitMEMLOCK of slurmd), or docker run --ulimit memlock=-1."
    text = "unlimited" if limit == UNLIMITED else _size(limit / 1e9)
    return _check(
        facts,
        ("memlock_bytes", "memlock_hard_bytes", "rdma_devices"),
        name="memlock",
        feature="nccl",
        found=f"{text}, RDMA devices: {', '.join(facts.rdma_devices) or 'none'}",
        wanted=f"unlimited, or {_size(MEMLOCK_NEEDED_BYTES / 1e9)} or more, where there are RDMA devices",
        fault=_Fault(word="low_memlock", repair=repair) if is_low and facts.rdma_devices else None,
    )


def check_nofile(facts: HostFacts) -> Check[HostValues]:
    is_low = facts.nofile != UNLIMITED and facts.nofile < NOFILE_NEEDED
    repair = f"ulimit -n {NOFILE_NEEDED * 64} (limits.conf), or docker run --ulimit nofile=65536:65536."
    return _check(
        facts,
        ("nofile", "nofile_hard"),
        name="nofile",
        feature="host",
        found="unlimited" if facts.nofile == UNLIMITED else str(facts.nofile),
        wanted=f"{NOFILE_NEEDED} open files or more",
        fault=_Fault(word="low_nofile", repair=repair, verdict="failure") if is_low else None,
    )


def check_xdg_runtime_dir(facts: HostFacts) -> Check[HostValues]:
    """Vulkan and EGL drivers keep sockets there; Isaac Sim complains without it."""
    words = {
        "unset": "no_xdg_runtime_dir",
        "missing": "xdg_runtime_dir_missing",
        "not_a_folder": "xdg_runtime_dir_not_a_folder",
        "open": "xdg_runtime_dir_open",
    }
    word = words.get(facts.runtime_dir)
    repair = 'export XDG_RUNTIME_DIR="$(mktemp -d)", a folder of this user alone (mode 0700).'
    return _check(
        facts,
        ("xdg_runtime_dir", "runtime_dir"),
        name="xdg_runtime_dir",
        feature="vulkan",
        found=f"{facts.xdg_runtime_dir or ''} {facts.runtime_dir.replace('_', ' ')}".strip(),
        wanted="a folder of this user alone",
        fault=_Fault(word=word, repair=repair) if word else None,
    )


def check_cpu_governor(facts: HostFacts) -> Check[HostValues]:
    """A core that clocks down keeps the GPUs waiting between kernels."""
    is_slow = "powersave" in facts.governors
    by_driver = f" ({facts.scaling_driver})" if facts.scaling_driver else ""
    return _check(
        facts,
        ("governors", "scaling_driver"),
        name="cpu_governor",
        feature="cuda",
        found=", ".join(facts.governors) + by_driver if facts.governors else "the kernel shows none",
        wanted="performance",
        fault=_Fault(word="powersave_governor", repair="sudo cpupower frequency-set -g performance")
        if is_slow
        else None,
        is_known=bool(facts.governors),
    )


def check_cores_per_gpu(facts: HostFacts, num_gpus: int) -> Check[HostValues]:
    is_few = num_gpus > 0 and facts.num_cpus < CORES_PER_GPU * num_gpus
    needed = CORES_PER_GPU * num_gpus
    repair = f"Ask for {counted(needed, 'core')} (--cpus-per-task of Slurm, --cpus of docker), or use fewer GPUs."
    return _check(
        facts,
        ("num_cpus",),
        name="cores_per_gpu",
        feature="cuda",
        found=f"{facts.num_cpus} cores for {counted(num_gpus, 'GPU')}" if num_gpus else "no GPU",
        wanted=f"{CORES_PER_GPU} or more for each",
        fault=_Fault(word="few_cores_per_gpu", repair=repair) if is_few else None,
        is_known=num_gpus > 0,
    )


def check_cache_disk(facts: HostFacts, *, needed_gb: float) -> Check[HostValues]:
    """``needed_gb``: ``install.worker.INSTALL_DISK_GB`` before the worker is installed, then ``KERNEL_CACHE_GB``."""
    fault = None
    elsewhere = "set LABSCALE_CACHE to a folder on a larger disk"
    if not facts.cache_writable:
        repair = f"Make it writable for this user, or {elsewhere} of yours."
        fault = _Fault(word="cache_not_writable", repair=repair, verdict="failure")
    elif facts.cache_free_gb < needed_gb:
        fault = _Fault(word="cache_disk_full", repair=f"Free some, or {elsewhere}.", verdict="failure")
    writable = "" if facts.cache_writable else ", which this user may not write"
    return _check(
        facts,
        ("cache_dir", "cache_free_gb", "cache_writable"),
        name="cache_disk",
        feature="host",
        found=f"{_size(facts.cache_free_gb)} free in {facts.cache_dir}{writable}",
        wanted=f"{_size(needed_gb)} free",
        fault=fault,
    )


def check_libc(facts: HostFacts, *, minimum: str = WORKER_GLIBC) -> Check[HostValues]:
    """The worker's wheels are built for glibc, of at least the version in their tags."""
    fault = None
    repair = "Use Ubuntu 22.04, Debian 12, RHEL 10 or newer, or the suite's image."
    if facts.libc != "glibc":
        fault = _Fault(word="not_glibc", repair=repair, verdict="failure")
    elif parts(facts.libc_version) < parts(minimum):
        fault = _Fault(word="glibc_too_old", repair=repair, verdict="failure")
    return _check(
        facts,
        ("libc", "libc_version"),
        name="libc",
        feature="host",
        found=f"{facts.libc or 'unknown libc'} {facts.libc_version}".strip(),
        wanted=f"glibc {minimum} or newer",
        fault=fault,
    )


def _size(gb: float) -> str:
    return f"{gb:.1f} GB" if gb >= 1 else f"{gb * 1000:.0f} MB"
