"""Capturing the machine: on this one, and on made-up control groups, GPUs and checkouts."""

import os
import platform
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace

import psutil
import pynvml
import pytest

from suite import __version__
from suite.environment import capture, cpu_model, git_state, num_usable_cpus, read_gpus, usable_memory_gb
from suite.errors import WorkerEnvironmentError
from suite.schema import Gpu

NUM_AFFINE_CPUS = len(os.sched_getaffinity(0))


def no_driver(code: int) -> object:
    def init() -> None:
        raise pynvml.NVMLError(code)

    return init


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML of a host with an H200 and a GPU that shares the host's memory."""

    def by_index(index: int) -> int:
        if index > 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return index

    def by_uuid(uuid: str) -> int:
        if uuid not in ("GPU-a", "GPU-b"):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return ("GPU-a", "GPU-b").index(uuid)

    def memory(handle: int) -> SimpleNamespace:
        if handle == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(total=150_754_820_096)

    answers = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.65.06",
        "nvmlSystemGetCudaDriverVersion_v2": lambda: 13020,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": by_index,
        "nvmlDeviceGetHandleByUUID": by_uuid,
        "nvmlDeviceGetName": lambda handle: ("NVIDIA H200", "NVIDIA GB10")[handle],
        "nvmlDeviceGetMemoryInfo": memory,
        "nvmlDeviceGetCudaComputeCapability": lambda handle: ((9, 0), (12, 1))[handle],
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_capture_describes_this_machine() -> None:
    environment = capture(host_label="desk", worker_pins_sha256="a" * 64, asset_sha256="b" * 64)
    assert environment.host_label == "desk"
    assert environment.cpu_model
    assert environment.num_cpus is not None
    assert 1 <= environment.num_cpus <= NUM_AFFINE_CPUS
    assert environment.memory_gb is not None
    assert 0 < environment.memory_gb < psutil.virtual_memory().total / 1e9 + 0.1
    assert environment.kernel == platform.release()
    assert environment.suite_version == __version__
    assert (environment.worker_pins_sha256, environment.asset_sha256) == ("a" * 64, "b" * 64)
    if socket.gethostname() != "localhost":
        assert socket.gethostname() not in repr(environment)


@pytest.mark.usefixtures("two_gpus")
def test_gpus_are_read() -> None:
    gpus, driver_version, cuda_driver_version = read_gpus()
    assert gpus == (
        Gpu(index=0, name="NVIDIA H200", memory_gb=150.8, compute_capability="9.0"),
        Gpu(index=1, name="NVIDIA GB10", memory_gb=None, compute_capability="12.1"),
    )
    assert (driver_version, cuda_driver_version) == ("580.65.06", "13.2")


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("1", ["NVIDIA GB10"]),
        ("1, 0", ["NVIDIA GB10", "NVIDIA H200"]),
        ("GPU-b", ["NVIDIA GB10"]),
        ("0,7,1", ["NVIDIA H200"]),
        ("GPU-z,GPU-a", []),
        ("", []),
        ("-1", []),
    ],
)
def test_only_visible_gpus_count(visible: str, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpus, _, _ = read_gpus()
    assert [gpu.name for gpu in gpus] == names
    assert [gpu.index for gpu in gpus] == list(range(len(names)))


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED])
def test_no_driver_means_no_gpus(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(pynvml, "nvmlInit", no_driver(code))
    assert read_gpus() == ((), None, None)


def test_broken_driver_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(pynvml, "nvmlInit", no_driver(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH))
    with pytest.raises(WorkerEnvironmentError, match="nvidia-smi"):
        read_gpus()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # the way out that the message names
    assert read_gpus() == ((), None, None)


@pytest.mark.parametrize(
    ("membership", "files", "quota_cores"),
    [
        ("0::/job\n", {"job/cpu.max": "150000 100000"}, 1),
        ("0::/job\n", {"job/cpu.max": "max 100000"}, None),
        ("0::/job/step\n", {"job/step/cpu.max": "max 100000", "job/cpu.max": "100000 100000"}, 1),
        ("0::/job\n", {"job/cpu.max": "50000 100000"}, 1),
        ("4:cpu,cpuacct:/d\n", {"cpu/d/cpu.cfs_quota_us": "100000", "cpu/d/cpu.cfs_period_us": "100000"}, 1),
        ("4:cpu,cpuacct:/d\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("4:cpuset:/d\n", {}, None),
    ],
)
def test_cpu_quota_limits_the_count(
    membership: str, files: dict[str, str], quota_cores: int | None, tmp_path: Path
) -> None:
    root = write_cgroups(tmp_path, membership, files)
    expected = NUM_AFFINE_CPUS if quota_cores is None else min(NUM_AFFINE_CPUS, quota_cores)
    assert num_usable_cpus(root, tmp_path / "membership") == expected


@pytest.mark.parametrize(
    ("membership", "files", "limit_gb"),
    [
        ("0::/job\n", {"job/memory.max": "1000000000"}, 1.0),
        ("0::/job\n", {"job/memory.max": "max"}, None),
        ("3:memory:/d\n", {"memory/d/memory.limit_in_bytes": "500000000"}, 0.5),
        ("3:memory:/d\n", {"memory/d/memory.limit_in_bytes": "9223372036854771712"}, None),
    ],
)
def test_memory_limit_counts(membership: str, files: dict[str, str], limit_gb: float | None, tmp_path: Path) -> None:
    root = write_cgroups(tmp_path, membership, files)
    expected = psutil.virtual_memory().total / 1e9 if limit_gb is None else limit_gb
    assert usable_memory_gb(root, tmp_path / "membership") == pytest.approx(expected)


def write_cgroups(folder: Path, membership: str, files: dict[str, str]) -> Path:
    (folder / "membership").write_text(membership)
    for name, text in files.items():
        path = folder / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return folder / "cgroup"


def test_cpu_model_of_arm_comes_from_lscpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n")
    lscpu = tmp_path / "lscpu"
    lscpu.write_text("#!/bin/sh\necho 'Architecture:  aarch64'\necho 'Model name:    Neoverse-V2'\n")
    lscpu.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert cpu_model(cpuinfo) == "Neoverse-V2"
    monkeypatch.setenv("PATH", "/nowhere")
    assert cpu_model(cpuinfo) is None


def test_git_state_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*argv: str) -> str:
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        return subprocess.check_output(["git", "-C", str(tmp_path), *identity, *argv], text=True).strip()

    assert git_state(tmp_path) == (None, None)
    git("init", "--quiet")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_text("1")
    git("add", ".")
    git("commit", "--quiet", "--message", "m")
    commit = git("rev-parse", "HEAD")
    assert git_state(tmp_path) == (commit, False)
    assert git_state(tmp_path / "inner") == (None, None)  # not the checkout itself
    (tmp_path / "inner" / "file").write_text("2")
    assert git_state(tmp_path) == (commit, True)
    monkeypatch.setenv("PATH", "/nowhere")
    assert git_state(tmp_path) == (None, None)


def test_an_installed_bundle_says_of_which_commit_it_was_made(tmp_path: Path) -> None:
    (tmp_path / "labscale").mkdir()
    (tmp_path / "bundle.json").write_text('{"suite_commit": "abc123", "suite_dirty": false}')
    assert git_state(tmp_path / "labscale") == ("abc123", False)
