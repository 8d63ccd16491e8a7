"""The operating system's limits: real ones where they can be made, else trees of /sys and changed facts."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from suite.env_check import host as system
from suite.env_check.host import HostFacts
from suite.files.paths import ROOT
from tests.fixtures.stand_ins.denied_folders import deny

LAPTOP = HostFacts(
    shm_gb=8.0,
    shm_free_gb=7.9,
    memlock_bytes=8 * 2**20,
    memlock_hard_bytes=8 * 2**20,
    nofile=1024,
    nofile_hard=524_288,
    rdma_devices=(),
    xdg_runtime_dir="/run/user/1000",
    runtime_dir="good",
    governors=("powersave",),
    scaling_driver="intel_pstate",
    num_cpus=8,
    libc="glibc",
    libc_version="2.39",
    cache_dir="/home",
    cache_free_gb=100.0,
    cache_writable=True,
)


def test_this_machine_can_be_read(tmp_path: Path) -> None:
    facts = system.read_host(os.environ, cache_dir=tmp_path / "not" / "there")
    assert facts.cache_dir == str(tmp_path)
    assert facts.cache_writable
    assert facts.num_cpus >= 1
    assert json.loads(json.dumps(asdict(facts)))["nofile"] == facts.nofile
    assert system.judge_libc(facts).verdict == "ok"


def test_the_home_of_another_user_is_no_place_for_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    deny(monkeypatch, home)
    runtime_dir = {"XDG_RUNTIME_DIR": str(home / "run")}
    facts = system.read_host(runtime_dir, cache_dir=home / ".cache" / "labscale")
    assert (facts.cache_dir, facts.runtime_dir) == (str(home), "missing")


@pytest.fixture
def small_shm(tmp_path: Path) -> Iterator[Path]:
    """A root whose /dev/shm is a real tmpfs of 64 MiB, as docker gives by default."""
    shm = tmp_path / "dev" / "shm"
    shm.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(shm)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a tmpfs")
    yield tmp_path
    subprocess.run(["umount", str(shm)], check=True)


def test_docker_default_shared_memory(small_shm: Path) -> None:
    facts = system.read_host(os.environ, cache_dir=small_shm, root=small_shm)
    assert facts.shm_gb == pytest.approx(0.0671, abs=0.0001)
    check = system.judge_shared_memory(facts)
    assert (check.verdict, check.fault) == ("failure", "small_dev_shm")
    assert check.found.startswith("67 MB")
    assert "--ipc=host" in (check.repair or "")
    assert "--shm-size" in (check.repair or "")


def test_no_shared_memory(tmp_path: Path) -> None:
    check = system.judge_shared_memory(system.read_host(os.environ, cache_dir=tmp_path, root=tmp_path))
    assert (check.verdict, check.fault) == ("failure", "no_dev_shm")


@pytest.mark.parametrize(
    ("size_gb", "free_gb", "verdict", "fault"),
    [
        (0.5, 0.5, "warning", "small_dev_shm"),
        (8.0, 0.5, "warning", "full_dev_shm"),
        (8.0, 0.01, "failure", "full_dev_shm"),
        (8.0, 8.0, "ok", None),
    ],
)
def test_shared_memory(size_gb: float, free_gb: float, verdict: str, fault: str | None) -> None:
    check = system.judge_shared_memory(replace(LAPTOP, shm_gb=size_gb, shm_free_gb=free_gb))
    assert (check.verdict, check.fault) == (verdict, fault)


def limited(limit: str, value: int, tmp_path: Path) -> HostFacts:
    """Facts of a child process that lowered a limit of its own for real."""
    program = (
        "import dataclasses, json, os, resource, sys; from pathlib import Path;"
        "from suite.env_check import host as system;"
        f"hard = resource.getrlimit(resource.{limit})[1]; resource.setrlimit(resource.{limit}, ({value}, hard));"
        "print(json.dumps(dataclasses.asdict(system.read_host(os.environ, cache_dir=Path(sys.argv[1])))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return HostFacts(**json.loads(done.stdout))


def test_few_open_files(tmp_path: Path) -> None:
    check = system.judge_nofile(limited("RLIMIT_NOFILE", 256, tmp_path))
    assert (check.verdict, check.fault, check.found) == ("failure", "low_nofile", "256")
    assert "ulimit -n" in (check.repair or "")
    assert system.judge_nofile(replace(LAPTOP, nofile=system.UNLIMITED)).verdict == "ok"


def test_little_locked_memory_matters_where_there_is_rdma(tmp_path: Path) -> None:
    facts = limited("RLIMIT_MEMLOCK", 65536, tmp_path)
    assert facts.memlock_bytes == 65536
    assert system.judge_memlock(replace(facts, rdma_devices=())).verdict == "ok"
    check = system.judge_memlock(replace(facts, rdma_devices=("mlx5_0",)))
    assert (check.verdict, check.fault) == ("warning", "low_memlock")
    assert "ulimit -l unlimited" in (check.repair or "")
    unlimited = replace(facts, rdma_devices=("mlx5_0",), memlock_bytes=system.UNLIMITED)
    assert "mlx5_0" in system.judge_memlock(unlimited).found


def test_rdma_devices_and_governors_are_read(tmp_path: Path) -> None:
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    for cpu, governor in enumerate(("performance", "powersave")):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_governor").write_text(governor + "\n")
        (folder / "scaling_driver").write_text("acpi-cpufreq\n")
    facts = system.read_host(os.environ, cache_dir=tmp_path, root=tmp_path)
    assert facts.rdma_devices == ("mlx5_0",)
    check = system.judge_cpu_governor(facts)
    assert (check.verdict, check.fault) == ("warning", "powersave_governor")
    assert "powersave" in check.found
    assert "cpupower" in (check.repair or "")


def test_a_core_that_is_switched_off_has_no_governor(tmp_path: Path) -> None:
    for cpu in range(2):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
        folder.mkdir(parents=True)
        for name, text in (("scaling_governor", "performance"), ("scaling_driver", "intel_pstate")):
            if cpu == 1:
                (folder / name).write_text(f"{text}\n")
            else:
                (folder / name).mkdir()  # an OSError, as the kernel's EBUSY is
    check = system.judge_cpu_governor(system.read_host(os.environ, cache_dir=tmp_path, root=tmp_path))
    assert (check.verdict, check.found) == ("ok", "performance (intel_pstate)")


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
        check = system.judge_xdg_runtime_dir(system.read_host(environ, cache_dir=tmp_path))
        assert (check.fault, check.verdict) == (fault, "warning" if fault else "ok")
        if fault:
            assert "export XDG_RUNTIME_DIR" in (check.repair or "")


def test_few_cores() -> None:
    assert system.judge_cores_per_gpu(LAPTOP, 2).verdict == "ok"
    check = system.judge_cores_per_gpu(LAPTOP, 4)
    assert (check.verdict, check.fault) == ("warning", "few_cores_per_gpu")
    assert "16 cores" in (check.repair or "")
    assert system.judge_cores_per_gpu(LAPTOP, 0).verdict == "not_checked"


def test_little_disk(tmp_path: Path) -> None:
    facts = system.read_host(os.environ, cache_dir=tmp_path)
    check = system.judge_cache_disk(facts, needed_gb=facts.cache_free_gb + 1000)
    assert (check.verdict, check.fault) == ("failure", "cache_disk_full")
    assert "LABSCALE_CACHE" in (check.repair or "")


def test_a_cache_where_nothing_may_run(tmp_path: Path) -> None:
    """Hardened hosts mount /home and /tmp so. The cache itself is not there yet."""
    cache = tmp_path / "cache"
    cache.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "noexec", "tmpfs", str(cache)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("may not mount a tmpfs")
    try:
        check = system.judge_cache_disk(system.read_host(os.environ, cache_dir=cache / "labscale"), needed_gb=0.0)
    finally:
        subprocess.run(["umount", str(cache)], check=True)
    assert (check.verdict, check.fault) == ("failure", "cache_noexec")
    assert "LABSCALE_CACHE" in (check.repair or "")
    assert system.judge_cache_disk(system.read_host(os.environ, cache_dir=cache), needed_gb=0.0).verdict == "ok"


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file stands where the folder should be; and, as root may write everywhere, another user's answer is given."""
    (tmp_path / "cache").touch()
    check = system.judge_cache_disk(system.read_host(os.environ, cache_dir=tmp_path / "cache"), needed_gb=0.0)
    assert (check.verdict, check.fault) == ("failure", "cache_not_writable")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert system.judge_cache_disk(system.read_host(os.environ, cache_dir=tmp_path), needed_gb=0.0).fault == check.fault


def test_libc() -> None:
    assert system.WORKER_GLIBC == "2.35"
    check = system.judge_libc(replace(LAPTOP, libc_version="2.31"))
    assert (check.verdict, check.fault) == ("failure", "glibc_too_old")
    assert "Ubuntu 22.04" in (check.repair or "")
    assert system.judge_libc(replace(LAPTOP, libc="", libc_version="")).fault == "not_glibc"
