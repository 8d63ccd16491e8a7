"""Checks what the operating system provides, how fast its cores are, and whether others use them.

A GPU that finishes in a millisecond waits for the one thread that launches its kernels. If another machine's virtual
cores run on the other hardware threads, for example, that thread takes up to twice as long for seconds at a time.
Neither the load nor the time taken by the hypervisor shows this, so the cores themselves are timed.
"""

import contextlib
import os
import platform
import resource
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import psutil

from suite.env_check.check import Judgement, Subject, parts
from suite.env_check.container import is_folder, is_there
from suite.env_check.probes.run import run_probe
from suite.external.machine import Counters, HostCpu, num_usable_cpus, read_counters
from suite.files.wording import counted, listed
from suite.install.pins import WORKER_GLIBC
from suite.statistics.core_speed import SLOWED, WORTH_SAYING
from suite.statistics.round_flags import OTHERS_PERCENT

UNLIMITED: Final = resource.RLIM_INFINITY
SHM_NEEDED_GB: Final = 1.0  # the size in NVIDIA's own multi-GPU recipes
SHM_USELESS_GB: Final = 0.068  # 64 MiB, docker's default: NCCL fails with it
MEMLOCK_NEEDED_BYTES: Final = 10**9  # a network card reads NCCL's buffers directly: they must be locked in memory
NOFILE_NEEDED: Final = 1024  # the usual default
CORES_PER_GPU: Final = 4  # for the main thread, NCCL's proxy, and the threads of CUDA and the compilers
KERNEL_CACHE_GB: Final = 2.0  # compiled kernels and logs, once the worker is installed
MAX_CORES: Final = 32  # of those that are timed, spread evenly over the usable cores
LOOKS: Final = 128  # summed over all cores, which take turns, so that each is timed over 1.5 s
CORES_TIMEOUT_S: Final = 20.0
LOOK_S: Final = 1.0  # for which the load is watched
NAMED: Final = 3  # number of busiest processes in a report
WORTH_NAMING_S: Final = 0.1  # CPU time within ``LOOK_S``
NO_RANK: Final = (0.0,)  # HostCpu subtracts the CPU time of a run; here nothing runs

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

    def subject(self, wanted: str, *fields: str) -> Subject:
        """Return what a check of these fields is about."""
        return Subject(wanted, {"values": {field: getattr(self, field) for field in fields}})


def read_host(environ: Mapping[str, str], *, cache_dir: Path, root: Path = Path("/")) -> HostFacts:
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


def judge_shared_memory(facts: HostFacts) -> Judgement:
    """Judge /dev/shm: NCCL uses it for messages, and for data between GPUs without peer access."""
    subject = facts.subject(f"{_size(SHM_NEEDED_GB)} free in /dev/shm", "shm_gb", "shm_free_gb")
    size_gb, free_gb = facts.shm_gb, facts.shm_free_gb
    if size_gb is None or free_gb is None:
        return subject.failure("no_dev_shm", "no /dev/shm", "Mount a tmpfs on /dev/shm.")
    found = f"{_size(size_gb)}, {_size(free_gb)} free"
    start = "Start the container with --ipc=host or --shm-size=8g; on a host: sudo mount -o remount,size=8G /dev/shm."
    remove = "Remove what dead processes left there (ls -l /dev/shm: nccl-*, torch_*)."
    for word, gb, repair in (("small_dev_shm", size_gb, start), ("full_dev_shm", free_gb, remove)):
        if gb < SHM_NEEDED_GB:
            faulty = subject.failure if gb <= SHM_USELESS_GB else subject.warning
            return faulty(word, found, repair)
    return subject.ok(found)


def judge_memlock(facts: HostFacts) -> Judgement:
    subject = facts.subject(
        f"unlimited, or {_size(MEMLOCK_NEEDED_BYTES / 1e9)} or more, where there are RDMA devices",
        "memlock_bytes", "memlock_hard_bytes", "rdma_devices",
    )  # fmt: skip
    limit = facts.memlock_bytes
    text = "unlimited" if limit == UNLIMITED else _size(limit / 1e9)
    found = f"{text}, RDMA devices: {', '.join(facts.rdma_devices) or 'none'}"
    if limit != UNLIMITED and limit < MEMLOCK_NEEDED_BYTES and facts.rdma_devices:
        return subject.warning(
            "low_memlock",
            found,
            "ulimit -l unlimited (limits.conf, LimitMEMLOCK of slurmd), or docker run --ulimit memlock=-1.",
        )
    return subject.ok(found)


def judge_nofile(facts: HostFacts) -> Judgement:
    subject = facts.subject(f"{NOFILE_NEEDED} open files or more", "nofile", "nofile_hard")
    if facts.nofile == UNLIMITED:
        return subject.ok("unlimited")
    if facts.nofile < NOFILE_NEEDED:
        repair = f"ulimit -n {NOFILE_NEEDED * 64} (limits.conf), or docker run --ulimit nofile=65536:65536."
        return subject.failure("low_nofile", str(facts.nofile), repair)
    return subject.ok(str(facts.nofile))


def judge_xdg_runtime_dir(facts: HostFacts) -> Judgement:
    """Judge XDG_RUNTIME_DIR: Vulkan and EGL drivers keep sockets there; Isaac Sim complains without it."""
    subject = facts.subject("a folder of this user alone", "xdg_runtime_dir", "runtime_dir")
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
    subject = facts.subject("performance", "governors", "scaling_driver")
    if not facts.governors:
        return subject.not_checked("the kernel shows none")
    found = ", ".join(facts.governors) + (f" ({facts.scaling_driver})" if facts.scaling_driver else "")
    if "powersave" in facts.governors:
        return subject.warning("powersave_governor", found, "sudo cpupower frequency-set -g performance")
    return subject.ok(found)


def judge_cores_per_gpu(facts: HostFacts, num_gpus: int) -> Judgement:
    subject = facts.subject(f"{CORES_PER_GPU} or more for each", "num_cpus")
    if num_gpus == 0:
        return subject.not_checked("no GPU")
    found, needed = f"{facts.num_cpus} cores for {counted(num_gpus, 'GPU')}", CORES_PER_GPU * num_gpus
    if facts.num_cpus < needed:
        repair = f"Ask for {counted(needed, 'core')} (--cpus-per-task of Slurm, --cpus of docker), or use fewer GPUs."
        return subject.warning("few_cores_per_gpu", found, repair)
    return subject.ok(found)


def judge_cache_disk(facts: HostFacts, needed_gb: float) -> Judgement:
    """Judge the cache's disk.

    ``needed_gb`` is ``install.worker.INSTALL_DISK_GB`` before the worker is installed, then ``KERNEL_CACHE_GB``.
    """
    subject = facts.subject(f"{_size(needed_gb)} free", "cache_dir", "cache_free_gb", "cache_writable", "cache_noexec")
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
    subject = facts.subject(f"glibc {WORKER_GLIBC} or newer", "libc", "libc_version")
    found = f"{facts.libc or 'unknown libc'} {facts.libc_version}".strip()
    repair = "Use Ubuntu 22.04, Debian 12, RHEL 10 or newer, or the suite's image."
    if facts.libc != "glibc":
        return subject.failure("not_glibc", found, repair)
    if parts(facts.libc_version) < parts(WORKER_GLIBC):
        return subject.failure("glibc_too_old", found, repair)
    return subject.ok(found)


def _size(gb: float) -> str:
    return f"{gb:.1f} GB" if gb >= 1 else f"{gb * 1000:.0f} MB"


@dataclass(frozen=True, kw_only=True)
class CoreFacts:
    num_cores: int  # cores that this process may use
    looks_s: Mapping[int, tuple[float, ...]]  # core -> time of a fixed piece of Python work, once per pass
    message: str  # why no core was timed; empty if they were

    @property
    def fastest_s(self) -> float:
        return min(min(looks_s) for looks_s in self.looks_s.values())

    @property
    def slowed(self) -> dict[int, int]:
        """Return, for each core that was slowed, the number of its looks over ``SLOWED`` times the fastest look."""
        limit_s = SLOWED * self.fastest_s
        counts = {core: sum(look_s > limit_s for look_s in looks_s) for core, looks_s in self.looks_s.items()}
        return {core: count for core, count in counts.items() if count}

    @property
    def slower(self) -> list[int]:
        """Return the cores that were slowed at every look, such as the efficiency cores of a laptop."""
        return [core for core, count in self.slowed.items() if count == len(self.looks_s[core])]


def read_cores(environ: Mapping[str, str], *, has_gpu: bool) -> CoreFacts:
    """Time the cores in a separate process. Call it alone: other readers would slow the cores."""
    cores = sorted(os.sched_getaffinity(0))
    if not has_gpu:
        return CoreFacts(num_cores=len(cores), looks_s={}, message="no GPU waits for them")
    chosen, passes = spread(cores, MAX_CORES), str(LOOKS // min(len(cores), MAX_CORES))
    run = run_probe("machine", "cores", passes, *map(str, chosen), environ=environ, timeout_s=CORES_TIMEOUT_S)
    if run.end != "answered":
        return CoreFacts(num_cores=len(cores), looks_s={}, message=f"the probe {run.end}: {run.stderr.strip()[-200:]}")
    looks_s = {int(core): tuple(values) for core, values in run.answer["looks_s"].items()}
    return CoreFacts(num_cores=len(cores), looks_s=looks_s, message="")


def spread(cores: Sequence[int], most: int) -> list[int]:
    """Return at most ``most`` of ``cores``, evenly spaced."""
    if len(cores) <= most:
        return list(cores)
    return [cores[index * len(cores) // most] for index in range(most)]


def judge_core_speed(facts: CoreFacts) -> Judgement:
    subject = Subject(f"every look within {SLOWED:g} times the fastest", facts)
    if not facts.looks_s:
        return subject.not_checked(facts.message)
    looks, slowed = sum(map(len, facts.looks_s.values())), sum(facts.slowed.values())
    always = f", {listed('core', facts.slower)} at every look" if facts.slower else ""
    found = (
        f"{1e6 * facts.fastest_s:.0f} µs at best for a fixed piece of Python's work; {slowed} of {looks} looks at "
        f"{len(facts.looks_s)} of {counted(facts.num_cores, 'core')} over {SLOWED:g} times that{always}"
    )
    if slowed <= WORTH_SAYING * looks:
        return subject.ok(found)
    in_spells = slowed - sum(len(facts.looks_s[core]) for core in facts.slower)
    if in_spells > WORTH_SAYING * looks:
        return subject.warning(
            "cores_slowed",
            found,
            "See what else runs here (top); of a virtual machine's provider, ask for whole cores, with both threads. "
            "Until then runs differ by tens of percent: make more of them, and compare what ran in turns.",
        )
    return subject.warning(
        "cores_differ",
        found,
        "The speed of a GPU depends on the core that its process runs on. If the slow cores are efficiency cores, use "
        "only the others: taskset --cpu-list CORES python3 -m nox -s bench. Otherwise see what else runs on them "
        "(top).",
    )


@dataclass(frozen=True, kw_only=True)
class Busy:
    """The share of one core that a process used: 100 is a whole core; several threads can use more."""

    pid: int
    name: str
    percent: float


@dataclass(frozen=True, kw_only=True)
class LoadFacts:
    others_percent: float | None  # share of the CPU time of all cores, without env_check's own
    busiest: tuple[Busy, ...]  # visible processes, busiest first
    message: str  # why the load is unknown; empty if it is known


def read_load(look_s: float = LOOK_S, *, counters: Callable[[], Counters] = read_counters) -> LoadFacts:
    """Watch the host for ``look_s`` seconds while this process does nothing."""
    host, own_pid, start_s, before = HostCpu(counters), os.getpid(), time.monotonic(), _cpu_times_s()
    host.use(NO_RANK)
    time.sleep(look_s)
    others, after = host.use(NO_RANK).others, _cpu_times_s()
    elapsed_s = time.monotonic() - start_s
    if others is None:
        return LoadFacts(others_percent=None, busiest=(), message="the kernel's counters of CPU time do not advance")
    used_s = {key: spent_s - before[key] for key, spent_s in after.items() if key in before and key[0] != own_pid}
    at_work = [key for key, spent_s in used_s.items() if spent_s >= WORTH_NAMING_S]
    return LoadFacts(
        others_percent=max(0.0, others),  # idle time may run ahead by one tick
        busiest=tuple(
            Busy(pid=pid, name=name, percent=100 * used_s[pid, name] / elapsed_s)
            for pid, name in sorted(at_work, key=lambda key: -used_s[key])[:NAMED]
        ),
        message="",
    )


def _cpu_times_s() -> Mapping[tuple[int, str], float]:
    """Return the CPU seconds of every visible process, keyed by pid and name."""
    seconds = {}
    for process in psutil.process_iter(["name", "cpu_times"]):
        times = process.info["cpu_times"]
        if times is not None:
            seconds[process.pid, str(process.info["name"])] = float(times.user + times.system)
    return seconds


def judge_cpu_load(facts: LoadFacts) -> Judgement:
    """Judge whether other processes use the CPU: they slow every run.

    One busy process on two cores made an iteration take 1.3 to 5.6 times as long (a virtual machine, 2026-11-22).
    """
    subject = Subject(f"at most {OTHERS_PERCENT:g} %", facts)
    if facts.others_percent is None:
        return subject.not_checked(facts.message)
    found = f"{facts.others_percent:.1f} % of the CPU time of all cores is in use"
    if facts.others_percent <= OTHERS_PERCENT:
        return subject.ok(found)
    names = ", ".join(f"{busy.name} (pid {busy.pid}, {busy.percent:.0f} % of a core)" for busy in facts.busiest)
    busiest = f"Busiest here: {names}." if names else "No visible process causes this load: look on the host."
    return subject.warning(
        "host_busy", found, f"{busiest} End this load or wait: it slows every run by an unknown amount."
    )
