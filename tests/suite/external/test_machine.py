"""Capturing the machine: on this one, and on made-up control groups and checkouts."""

import os
import platform
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from suite import __version__
from suite.external import machine
from suite.external.machine import capture, cores_in_order, cpu_model, git_state, num_usable_cpus, usable_memory_gb
from suite.schema.record import Gpu
from tests.fixtures.runs.own_task_runs import committed

NUM_AFFINE_CPUS = len(os.sched_getaffinity(0))


def test_capture_describes_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(index=0, name="NVIDIA H200", memory_gb=150.8, compute_capability="9.0")
    monkeypatch.setattr(machine, "read_gpus", lambda: ((gpu,), "580.65.06", "13.0"))
    captured = capture(host_label="desk", worker_pins_sha256="a" * 64, asset_sha256="b" * 64)
    assert captured.host_label == "desk"
    assert captured.cpu_model
    assert captured.num_cpus is not None
    assert 1 <= captured.num_cpus <= NUM_AFFINE_CPUS
    assert captured.memory_gb is not None
    assert 0 < captured.memory_gb < psutil.virtual_memory().total / 1e9 + 0.1
    assert captured.kernel == platform.release()
    assert captured.suite_version == __version__
    assert (captured.worker_pins_sha256, captured.asset_sha256) == ("a" * 64, "b" * 64)
    assert (captured.gpus, captured.driver_version, captured.cuda_driver_version) == ((gpu,), "580.65.06", "13.0")
    if socket.gethostname() != "localhost":
        assert socket.gethostname() not in repr(captured)


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


def test_threads_of_a_core_and_cores_of_a_processor_stand_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processors of two cores with two threads each, numbered as Linux does: first threads of all cores first."""
    for cpu in range(8):
        topology = tmp_path / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{cpu % 4 // 2}\n")
        (topology / "core_id").write_text(f"{cpu % 2}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)) - {3})
    assert cores_in_order(tmp_path) == (0, 4, 1, 5, 2, 6, 7)
    assert cores_in_order(tmp_path / "none") == (0, 1, 2, 4, 5, 6, 7)


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
    assert git_state(tmp_path) == (None, None)
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_text("1")
    commit = committed(tmp_path)
    assert git_state(tmp_path) == (commit, False)
    assert git_state(tmp_path / "inner") == (None, None)  # not the checkout itself
    subprocess.run(["git", "-C", tmp_path, "config", "status.showUntrackedFiles", "no"], check=True)
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # git's own way to test "dubious ownership"
    assert git_state(tmp_path) == (commit, False)
    out = tmp_path / "a [new] folder" / "results"
    out.mkdir(parents=True)
    (out / "campaign.json").write_text("{}")
    assert git_state(tmp_path) == (commit, True)
    assert git_state(tmp_path, out=out) == git_state(tmp_path, out=out.parent) == (commit, False)
    assert git_state(tmp_path, out=tmp_path) == git_state(tmp_path, out=tmp_path.parent) == (commit, True)
    (out.parent / "beside").write_text("")
    assert git_state(tmp_path, out=out) == (commit, True)
    (out.parent / "beside").unlink()
    assert git_state(tmp_path, out=tmp_path / "other") == (commit, True)
    (tmp_path / "inner" / "file").write_text("2")
    assert git_state(tmp_path, out=out) == git_state(tmp_path, out=tmp_path / "inner") == (commit, True)
    monkeypatch.setenv("PATH", "/nowhere")
    assert git_state(tmp_path) == (None, None)


def test_a_copy_in_an_image_says_of_which_commit_it_was_made_unless_git_does(tmp_path: Path) -> None:
    (tmp_path / "origin.json").write_text('{"suite_commit": "abc123", "suite_dirty": true}')
    assert git_state(tmp_path) == ("abc123", True)
    commit = committed(tmp_path)
    assert git_state(tmp_path) == (commit, False)


def test_an_installed_bundle_says_of_which_commit_it_was_made(tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text('{"suite_commit": "abc123", "suite_dirty": false}')
    assert git_state(tmp_path / "labscale") == ("abc123", False)


@pytest.mark.parametrize("content", ["[]", "{}", "[" * 100_000, '{"suite_commit": 1, "suite_dirty": false}', "\udcff"])
def test_a_bundle_json_of_somebody_else_says_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "bundle.json").write_text(content, errors="surrogateescape")
    assert git_state(tmp_path / "labscale") == (None, None)
