"""The operating system, the cores and their load: real limits where they can be made, else changed facts."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from suite.env_check import host
from suite.env_check.check import Judgement
from suite.env_check.container import judge_capabilities, read_container
from suite.env_check.host import (
    MAX_CORES,
    UNLIMITED,
    Busy,
    CoreFacts,
    HostFacts,
    LoadFacts,
    judge_core_speed,
    judge_cpu_load,
    read_cores,
    read_host,
    read_load,
    spread,
)
from suite.external.machine import Counters
from tests.fixtures.stand_ins.denied_folders import deny

LAPTOP: Final = HostFacts(
    shm_gb=8.0, shm_free_gb=7.9, memlock_bytes=8 * 2**20, memlock_hard_bytes=8 * 2**20, nofile=1024,
    nofile_hard=524_288, rdma_devices=(), xdg_runtime_dir="/run/user/1000", runtime_dir="good",
    governors=("performance",), scaling_driver="intel_pstate", num_cpus=8, libc="glibc", libc_version="2.39",
    cache_dir="/home", cache_free_gb=100.0, cache_writable=True,
)  # fmt: skip
JUDGES: Final[dict[str, Callable[[HostFacts], Judgement]]] = {
    "shared_memory": host.judge_shared_memory,
    "memlock": host.judge_memlock,
    "nofile": host.judge_nofile,
    "xdg_runtime_dir": host.judge_xdg_runtime_dir,
    "cpu_governor": host.judge_cpu_governor,
    "cores_per_gpu": lambda facts: host.judge_cores_per_gpu(facts, 2),
    "cores_without_gpu": lambda facts: host.judge_cores_per_gpu(facts, 0),
    "cache_disk": lambda facts: host.judge_cache_disk(facts, 7.0),
    "libc": host.judge_libc,
}
RDMA: Final = {"rdma_devices": ("mlx5_0",)}


def test_a_good_machine_has_no_fault() -> None:
    verdicts = {name: judge(LAPTOP).verdict for name, judge in JUDGES.items()}
    assert verdicts == dict.fromkeys(JUDGES, "ok") | {"cores_without_gpu": "not_checked"}


@pytest.mark.parametrize(
    ("name", "changes", "verdict", "fault", "repair"),
    [
        ("shared_memory", {"shm_gb": None, "shm_free_gb": None}, "failure", "no_dev_shm", "tmpfs"),
        ("shared_memory", {"shm_gb": 0.067, "shm_free_gb": 0.067}, "failure", "small_dev_shm", "--shm-size"),
        ("shared_memory", {"shm_gb": 0.5, "shm_free_gb": 0.5}, "warning", "small_dev_shm", "--ipc=host"),
        ("shared_memory", {"shm_free_gb": 0.5}, "warning", "full_dev_shm", "nccl-*"),
        ("shared_memory", {"shm_free_gb": 0.01}, "failure", "full_dev_shm", "nccl-*"),
        ("memlock", RDMA, "warning", "low_memlock", "ulimit -l unlimited"),
        ("memlock", RDMA | {"memlock_bytes": UNLIMITED}, "ok", None, ""),
        ("nofile", {"nofile": 256}, "failure", "low_nofile", "ulimit -n"),
        ("nofile", {"nofile": UNLIMITED}, "ok", None, ""),
        ("xdg_runtime_dir", {"runtime_dir": "unset"}, "warning", "no_xdg_runtime_dir", "export XDG_RUNTIME_DIR"),
        ("cpu_governor", {"governors": ("performance", "powersave")}, "warning", "powersave_governor", "cpupower"),
        ("cpu_governor", {"governors": ()}, "not_checked", None, ""),
        ("cores_per_gpu", {"num_cpus": 7}, "warning", "few_cores_per_gpu", "8 cores"),
        ("cache_disk", {"cache_free_gb": 6.9}, "failure", "cache_disk_full", "LABSCALE_CACHE"),
        ("cache_disk", {"cache_writable": False}, "failure", "cache_not_writable", "LABSCALE_CACHE"),
        ("cache_disk", {"cache_noexec": True}, "failure", "cache_noexec", "LABSCALE_CACHE"),
        ("libc", {"libc_version": "2.31"}, "failure", "glibc_too_old", "Ubuntu 22.04"),
        ("libc", {"libc": "", "libc_version": ""}, "failure", "not_glibc", "Ubuntu 22.04"),
    ],
)
def test_a_fault_of_the_host_has_its_word_and_repair(
    name: str, changes: dict[str, Any], verdict: str, fault: str | None, repair: str
) -> None:
    check = JUDGES[name](replace(LAPTOP, **changes))
    assert (check.verdict, check.fault) == (verdict, fault), check
    assert repair in (check.repair or "")


def test_this_machine_can_be_read(tmp_path: Path) -> None:
    facts = read_host(os.environ, cache_dir=tmp_path / "not" / "there")
    assert (facts.cache_dir, facts.cache_writable) == (str(tmp_path), True)
    assert facts.num_cpus >= 1
    assert json.loads(json.dumps(asdict(facts)))["nofile"] == facts.nofile
    assert host.judge_libc(facts).verdict == "ok"


def test_the_home_of_another_user_is_no_place_for_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    deny(monkeypatch, home)
    facts = read_host({"XDG_RUNTIME_DIR": str(home / "run")}, cache_dir=home / ".cache" / "labscale")
    assert (facts.cache_dir, facts.runtime_dir) == (str(home), "missing")


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str, str], Path]]:
    """Mount a tmpfs with an option, as root may."""
    made: list[Path] = []

    def mount(name: str, option: str) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", option, "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip("may not mount a tmpfs")
        made.append(folder)
        return folder

    yield mount
    for folder in made:
        subprocess.run(["umount", str(folder)], check=True)


def test_mounts_are_read(mounted: Callable[[str, str], Path], tmp_path: Path) -> None:
    """Docker's default of shared memory; and a cache where nothing may run, as hardened hosts mount /home and /tmp."""
    mounted("dev/shm", "size=64m")
    facts = read_host(os.environ, cache_dir=mounted("cache", "noexec") / "labscale", root=tmp_path)
    assert facts.shm_gb == pytest.approx(0.0671, abs=0.0001)
    assert host.judge_shared_memory(facts).fault == "small_dev_shm"
    assert facts.cache_noexec


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file stands where the folder should be; and, as root may write everywhere, another user's answer is given."""
    (tmp_path / "cache").touch()
    assert not read_host(os.environ, cache_dir=tmp_path / "cache").cache_writable
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert not read_host(os.environ, cache_dir=tmp_path).cache_writable


def test_limits_are_read(tmp_path: Path) -> None:
    """This process lowers its own limits for a moment."""
    limits = {resource.RLIMIT_NOFILE: 512, resource.RLIMIT_MEMLOCK: 65536}
    before = {limit: resource.getrlimit(limit) for limit in limits}
    try:
        for limit, value in limits.items():
            resource.setrlimit(limit, (value, before[limit][1]))
        facts = read_host(os.environ, cache_dir=tmp_path)
    finally:
        for limit, values in before.items():
            resource.setrlimit(limit, values)
    assert (facts.nofile, facts.memlock_bytes) == (512, 65536)


def test_rdma_devices_and_governors_are_read(tmp_path: Path) -> None:
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    for cpu in range(3):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        folder.mkdir(parents=True)
        for name, text in (("scaling_governor", f"governor{cpu}"), ("scaling_driver", "acpi-cpufreq")):
            if cpu:
                (folder / name).write_text(f"{text}\n")
            else:
                (folder / name).mkdir()  # an OSError, as the kernel's EBUSY for a core that is switched off is
    facts = read_host(os.environ, cache_dir=tmp_path, root=tmp_path)
    assert (facts.rdma_devices, facts.governors) == (("mlx5_0",), ("governor1", "governor2"))
    assert facts.scaling_driver == "acpi-cpufreq"


def test_runtime_dir(tmp_path: Path) -> None:
    private, open_to_all, file = tmp_path / "private", tmp_path / "open", tmp_path / "file"
    private.mkdir(mode=0o700)
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    file.touch()
    expected = {
        None: "no_xdg_runtime_dir",
        "": "no_xdg_runtime_dir",
        str(tmp_path / "gone"): "xdg_runtime_dir_missing",
        str(file): "xdg_runtime_dir_not_a_folder",
        str(open_to_all): "xdg_runtime_dir_open",
        str(private): None,
    }
    for value, fault in expected.items():
        environ = {} if value is None else {"XDG_RUNTIME_DIR": value}
        assert host.judge_xdg_runtime_dir(read_host(environ, cache_dir=tmp_path)).fault == fault


FAST_S, SLOW_S = 1.0e-4, 1.9e-4


def test_every_core_of_this_machine_is_looked_at_in_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "LOOKS", 2 * MAX_CORES)
    facts = read_cores(os.environ, has_gpu=True)
    cores = sorted(os.sched_getaffinity(0))
    assert (facts.message, facts.num_cores, sorted(facts.looks_s)) == ("", len(cores), spread(cores, MAX_CORES))
    assert {len(looks_s) for looks_s in facts.looks_s.values()} == {2 * MAX_CORES // len(facts.looks_s)}
    assert facts.fastest_s > 0
    assert judge_core_speed(facts).verdict in ("ok", "warning")
    assert os.sched_getaffinity(0) == set(cores)


def test_cores_that_were_not_timed_are_not_checked() -> None:
    assert judge_core_speed(read_cores({}, has_gpu=False)).verdict == "not_checked"
    failed = judge_core_speed(read_cores({"PYTHONHOME": "/nowhere"}, has_gpu=True))
    assert failed.verdict == "not_checked"
    assert failed.found.startswith("the probe failed: ")


LAPTOP_CORES: Final = dict.fromkeys(range(12), (FAST_S,) * 4) | dict.fromkeys(range(12, 14), (SLOW_S,) * 4)


@pytest.mark.parametrize(
    ("looks_s", "fault", "found"),
    [
        (dict.fromkeys(range(32), (FAST_S, 1.1 * FAST_S, 1.2 * FAST_S)), None, "0 of 96 looks at 32 of 64 cores"),
        (dict.fromkeys(range(31), (FAST_S,) * 4) | {31: (FAST_S, SLOW_S, FAST_S, FAST_S)}, None, "1 of 128 looks"),
        ({core: (FAST_S, SLOW_S if core % 2 else FAST_S) for core in range(8)}, "cores_slowed", "4 of 16 looks"),
        (LAPTOP_CORES, "cores_differ", "cores 12, 13 at every look"),  # its efficiency cores are no neighbours
        (LAPTOP_CORES | dict.fromkeys(range(4), (FAST_S, SLOW_S) * 2), "cores_slowed", "cores 12, 13 at every look"),
    ],
)
def test_slow_cores(looks_s: Mapping[int, tuple[float, ...]], fault: str | None, found: str) -> None:
    check = judge_core_speed(CoreFacts(num_cores=64, looks_s=looks_s, message=""))
    assert (check.verdict, check.fault) == ("warning" if fault else "ok", fault)
    assert found in check.found


def test_many_cores_are_sampled_evenly() -> None:
    assert spread(range(128), 32) == list(range(0, 128, 4))
    assert spread([0, 2, 5], 32) == [0, 2, 5]
    assert len(set(spread(range(33), 32))) == 32


@pytest.fixture
def busy_process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=-1) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()


def counted(*seconds: tuple[float, float, float, float]) -> Callable[[], Counters]:
    """Return a reader of four cores at 0 s and 1 s: idle, stolen, own and total seconds since."""
    readings = iter([(0.0, 0.0, 0.0, 0.0), *seconds])

    def counters() -> Counters:
        idle_s, stolen_s, own_s, total_s = next(readings)
        monotonic_s = total_s / 4
        return Counters(total_s=total_s, idle_s=idle_s, stolen_s=stolen_s, own_s=own_s, monotonic_s=monotonic_s)

    return counters


def test_a_busy_process_is_seen_and_named(
    busy_process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tests may leave it little of a core, so the host is watched until it has had ``used_s`` of one."""
    used_s, wait, process = 0.3, time.sleep, psutil.Process(busy_process.pid)

    def sleep(_: float) -> None:
        until_s = process.cpu_times().user + used_s
        while process.cpu_times().user < until_s:
            wait(0.05)

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(host, "NAMED", 1000)
    start_s = time.monotonic()
    facts = read_load()
    least_percent = 100 * used_s / (time.monotonic() - start_s)
    assert (facts.others_percent or 0) > 0.9 * least_percent / (psutil.cpu_count() or 1)  # its counters have ticks
    (busy,) = (process for process in facts.busiest if process.pid == busy_process.pid)
    assert busy.percent >= least_percent
    assert "python" in busy.name


def test_what_is_neither_idle_nor_stolen_nor_its_own_is_of_others() -> None:
    facts = read_load(0.0, counters=counted((2.9, 0.4, 0.1, 4.0)))
    assert facts.others_percent == pytest.approx(15.0)
    assert read_load(0.0, counters=counted((4.1, 0.0, 0.0, 4.0))).others_percent == 0.0  # idle time goes ahead
    assert judge_cpu_load(read_load(0.0, counters=counted((0.0, 0.0, 0.0, 0.0)))).verdict == "not_checked"


def test_only_the_repair_names_the_busiest() -> None:
    """``found`` is published with every record; whose processes run is nobody's business."""
    busiest = (Busy(pid=7, name="make", percent=198.4), Busy(pid=9, name="rsync", percent=12.0))
    check = judge_cpu_load(LoadFacts(others_percent=5.1, busiest=busiest, message=""))
    assert (check.verdict, check.fault) == ("warning", "host_busy")
    assert "make (pid 7, 198 % of a core), rsync (pid 9" in (check.repair or "")
    assert "make" not in check.found
    assert "pid" not in (judge_cpu_load(LoadFacts(others_percent=52.0, busiest=(), message="")).repair or "pid")
    assert judge_cpu_load(LoadFacts(others_percent=5.0, busiest=busiest, message="")).verdict == "ok"


def test_few_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = iter([{(pid, "x"): 0.0 for pid in range(10)}, {(pid, "x"): 0.05 * pid for pid in range(10)}])
    monkeypatch.setattr(host, "_cpu_times_s", lambda: next(spent))
    facts = read_load(0.0, counters=counted((0.0, 0.0, 0.0, 4.0)))
    assert [busy.pid for busy in facts.busiest] == [9, 8, 7]
    busiest, *_, least = facts.busiest
    assert busiest.percent / least.percent == pytest.approx(9 / 7)


@pytest.mark.parametrize(
    ("files", "environ", "is_container"),
    [
        ({}, {}, False),
        ({".dockerenv": ""}, {}, True),
        ({"run/.containerenv": ""}, {}, True),
        ({"proc/1/cgroup": "0::/kubepods/burstable/pod1\n"}, {}, True),
        ({"proc/1/cgroup": "0::/init.scope\n"}, {}, False),
        ({}, {"APPTAINER_CONTAINER": "/images/a.sif"}, True),
        ({}, {"container": "podman"}, True),
    ],
)
def test_a_container_is_known_by_its_marks(
    files: dict[str, str], environ: dict[str, str], is_container: bool, tmp_path: Path
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert read_container(environ, tmp_path).is_container is is_container


def test_other_users_processes_that_proc_hides_are_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide other users' processes, as /proc mounted with hidepid=1 does on hosts of many users."""
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/cgroup").write_text("0::/kubepods/pod1")
    deny(monkeypatch, tmp_path / "proc/1")
    assert read_container({}, tmp_path).signs == ()


@pytest.mark.parametrize(
    ("value", "fault", "compute_fault"),
    [
        (None, "capabilities_missing", None),
        ("", "capabilities_missing", None),
        ("compute, graphics ,utility", None, None),
        ("all", None, None),
        ("graphics,display", None, "capabilities_missing"),
        ("compute", "capabilities_missing", "capabilities_missing"),
    ],
)
def test_capabilities_of_a_container(
    value: str | None, fault: str | None, compute_fault: str | None, tmp_path: Path
) -> None:
    (tmp_path / ".dockerenv").touch()
    container = read_container({} if value is None else {"NVIDIA_DRIVER_CAPABILITIES": value}, tmp_path)
    graphics = judge_capabilities(container, ("graphics",), "580", ())
    compute = judge_capabilities(container, ("compute", "utility"), "580", ())
    assert (graphics.fault, compute.fault) == (fault, compute_fault)
    if fault:
        assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics" in (graphics.repair or "")
    if compute_fault and value and "display" in value:  # what is set already stays
        assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics,display" in (compute.repair or "")


def test_capabilities_do_not_matter_where_the_libraries_came_otherwise(tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    container = read_container({}, tmp_path)
    assert judge_capabilities(container, ("graphics",), "580", ("libGLX_nvidia.so.0",)).verdict == "ok"
    assert judge_capabilities(container, ("graphics",), None, ()).verdict == "not_checked"
    on_host = replace(container, is_container=False)
    assert judge_capabilities(on_host, ("graphics",), "580", ()).verdict == "ok"
