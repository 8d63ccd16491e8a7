"""Describes this machine and labscale: processors and their use, memory, GPUs, driver, commit; None if unknown."""

import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil
from pydantic import TypeAdapter, ValidationError

from suite import __version__
from suite.external.nvml.gpus import read_gpus
from suite.files.input_file import read_input
from suite.files.paths import ROOT
from suite.schema.record import Environment

ORIGIN: Final = "origin.json"  # in a copy of labscale without git, as in images: the commit it was made from
CANNOT_SUBMIT: Final = (
    "Results of this checkout cannot be submitted, because it has local changes. Commit or undo them first."
)
NO_COMMIT: Final = (
    "Results of this checkout cannot be submitted, because its commit is unknown. Run labscale from a git checkout, "
    "with git installed, or from an image or bundle that was made from one."
)
_GB: Final = 1e9


@dataclass(frozen=True, kw_only=True)
class _Origin:
    suite_commit: str | None
    suite_dirty: bool | None


def capture(
    *,
    host_label: str | None = None,
    worker_pins_sha256: str | None = None,
    asset_sha256: str | None = None,
    out: Path | None = None,
) -> Environment:
    """Describe this machine and checkout, without host names and serial numbers. Files in ``out`` are no change.

    Raises:
        WorkerEnvironmentError: there is an NVIDIA driver that does not work.

    """
    gpus, driver_version, cuda_driver_version = read_gpus()
    git_commit, git_dirty = git_state(ROOT, out=out)
    return Environment(
        host_label=host_label,
        cpu_model=cpu_model(),
        num_cpus=num_usable_cpus(),
        memory_gb=round(usable_memory_gb(), 1),
        os=_os_name(),
        kernel=platform.release(),
        gpus=gpus,
        driver_version=driver_version,
        cuda_driver_version=cuda_driver_version,
        suite_version=__version__,
        git_commit=git_commit,
        git_dirty=git_dirty,
        worker_pins_sha256=worker_pins_sha256,
        asset_sha256=asset_sha256,
    )


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str | None:
    """Return the processor's name; on Arm, where the kernel has none, from lscpu."""
    line = re.compile(r"^\s*model name\s*:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
    name = line.search(cpuinfo.read_text(encoding="utf-8")) or line.search(_output("lscpu") or "")
    return name[1].strip() if name else None


def num_usable_cpus(cgroup_root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> int:
    """Count the cores that this process may use: its affinity, or a container's quota, rounded down, if it is less."""
    limits = [len(os.sched_getaffinity(0))]
    for folder in _cgroup_folders(cgroup_root, membership, "cpu"):
        version_2 = _words(folder / "cpu.max")
        version_1 = _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
        for quota_us, period_us in filter(None, (version_2, version_1)):
            if quota_us not in ("max", "-1"):
                limits.append(max(1, int(quota_us) // int(period_us)))
    return min(limits)


def cores_in_order(topology: Path = Path("/sys/devices/system/cpu")) -> tuple[int, ...]:
    """Return the cores that this process may use, sorted by processor, core and thread."""

    def place(cpu: int) -> tuple[int, int, int]:
        names = ("physical_package_id", "core_id")
        package, core = (_words(topology / f"cpu{cpu}" / "topology" / name) for name in names)
        return int(package[0]) if package else 0, int(core[0]) if core else cpu, cpu

    return tuple(sorted(os.sched_getaffinity(0), key=place))


def usable_memory_gb(cgroup_root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> float:
    """Return the machine's memory, or a container's limit if it is less [GB]."""
    limits = [psutil.virtual_memory().total]
    for folder in _cgroup_folders(cgroup_root, membership, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):  # version 2, version 1
            limits += [int(word) for word in _words(folder / name) if word != "max"]
    return min(limits) / _GB


def _cgroup_folders(cgroup_root: Path, membership: Path, controller: str) -> Iterator[Path]:
    """Yield this process's control group and its parents, whose limits count too, for both versions of cgroups."""
    if not membership.exists():
        return
    for line in membership.read_text(encoding="utf-8").splitlines():
        hierarchy, controllers, group = line.split(":", 2)
        if hierarchy == "0":
            top = cgroup_root
        elif controller in controllers.split(","):
            top = cgroup_root / controller
        else:
            continue
        folder = top / group.lstrip("/")
        yield folder
        yield from (parent for parent in folder.parents if parent.is_relative_to(top))


def _words(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def _os_name() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:  # the file is optional
        return None


def why_not_submitted(machine: Environment) -> str | None:
    """Why ``submit`` will refuse the results of this checkout; None if it will not."""
    if machine.git_commit is None or machine.git_dirty is None:
        return NO_COMMIT
    return CANNOT_SUBMIT if machine.git_dirty else None


def git_state(checkout: Path, *, out: Path | None = None) -> tuple[str | None, bool | None]:
    """Return the checkout's commit and whether a file differs from it; both None if nothing tells.

    New files in ``out``, the folder of results, are no difference.
    """
    if noted := _noted_state(checkout.parent / "bundle.json"):  # installed from a bundle, without git
        return noted
    # Whoever runs its code trusts a checkout, also one of another owner.
    git = ("git", "-C", str(checkout), "-c", f"safe.directory={checkout}")
    top, _, commit = (_output(*git, "rev-parse", "--show-toplevel", "HEAD") or "").partition("\n")
    if not commit or Path(top) != checkout:  # also a copy inside another project's checkout
        return _noted_state(checkout / ORIGIN) or (None, None)
    status = (*git, "status", "--porcelain")
    changed = _output(*status, "--untracked-files=no")
    new = _output(*status, "--untracked-files=all", "--", ".", *_without(checkout, out))
    return commit, None if changed is None or new is None else bool(changed or new)


def _without(checkout: Path, out: Path | None) -> list[str]:
    """Pathspec that leaves the folder of results out, unless it is the checkout itself."""
    root = checkout.resolve()
    if out is None or root not in out.resolve().parents:
        return []
    return [f":(exclude,top,literal){out.resolve().relative_to(root).as_posix()}"]


def _noted_state(path: Path) -> tuple[str | None, bool | None] | None:
    """Return the state that labscale noted in a file; None if there is no such file, or it is not labscale's."""
    try:
        origin = TypeAdapter(_Origin).validate_json(read_input(path))
    except (OSError, ValidationError):
        return None
    return origin.suite_commit, origin.suite_dirty


def _output(*argv: str) -> str | None:
    """Return the standard output of a program; None if it is missing or fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@dataclass(frozen=True, kw_only=True)
class CpuUse:
    """Percentages of the CPU time of all cores; None at the first reading.

    psutil's own percentages divide by at least one second of CPU time. On few cores, read several times a second, they
    understate idle time (85 % busy instead of 62 %: two cores, 5 Hz, psutil 7.2.2), so they are not used.
    """

    busy: float | None = None  # time that processes wanted, whether they got it or not
    stolen: float | None = None  # part of it that a hypervisor gave to others
    others: float | None = None  # part of it that this system's processes outside the run used


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Seconds since the system booted, of all cores together."""

    total_s: float
    idle_s: float
    stolen_s: float
    own_s: float  # CPU time of the reading process, which is part of the run
    monotonic_s: float


def read_counters() -> Counters:
    times = psutil.cpu_times()
    return Counters(
        total_s=sum(times) - times.guest - times.guest_nice,  # user and nice include these
        idle_s=times.idle + times.iowait,
        stolen_s=times.steal,
        own_s=time.process_time(),
        monotonic_s=time.monotonic(),
    )


class HostCpu:
    """Computes use since the last reading."""

    def __init__(self, read: Callable[[], Counters] = read_counters) -> None:
        self._read = read
        self._last: Counters | None = None

    def use(self, rank_percents: Sequence[float | None]) -> CpuUse:
        """Return the use since the last call. ``rank_percents``: of each rank, 100 is one core; None if unknown."""
        last, now = self._last, self._read()
        self._last = now
        if last is None or now.total_s <= last.total_s:
            return CpuUse()
        total_s = now.total_s - last.total_s
        busy_s, stolen_s = total_s - (now.idle_s - last.idle_s), now.stolen_s - last.stolen_s
        percents = [percent for percent in rank_percents if percent is not None]
        ranks_s = sum(percents) / 100 * (now.monotonic_s - last.monotonic_s)
        others_s = busy_s - stolen_s - ranks_s - (now.own_s - last.own_s)
        return CpuUse(
            busy=_percent(busy_s, total_s),
            stolen=_percent(stolen_s, total_s),
            # May be below 0: counters tick, so single readings err both ways and only their mean is meaningful.
            others=100 * others_s / total_s if percents and len(percents) == len(rank_percents) else None,
        )


def _percent(part_s: float, total_s: float) -> float:
    return min(100.0, max(0.0, 100 * part_s / total_s))  # a virtual machine's idle time sometimes decreases


if __name__ == "__main__":
    print(json.dumps(asdict(capture())))
