"""The driver's checks on made trees of /proc, /dev and libraries with real faults in them.

The kernel driver itself needs a GPU; its files are made here as it writes them, and NVML's answer is handed in.
"""

import os
from pathlib import Path

import pytest

from suite.env_check.gpu import driver
from suite.env_check.gpu.driver import DriverFacts, judge_device_nodes, judge_driver_versions
from suite.env_check.libraries.search_path import SearchPath
from suite.external.nvml.values import NvmlFault, NvmlState

OPEN_LINE = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@host)  Sun Jul 27 2025\n"
)
CLOSED_LINE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Thu Oct 19 18:56:32 UTC 2023\n"
GOOD_NVML = NvmlState(driver_version="580.65.06", nvml_version="580.65.06", num_gpus=1)


class Machine:
    """A root folder with what the driver leaves in a file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ: dict[str, str] = {}
        self.write("proc/driver/nvidia/version", OPEN_LINE + "GCC version:  gcc version 13.3.0\n")
        for node in ("nvidia0", "nvidiactl", "nvidia-uvm"):
            self.write(f"dev/{node}", "")
        for name in ("libcuda.so", "libnvidia-ml.so"):
            self.library(name + ".1", f"{name}.580.65.06")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def library(self, name: str, file: str) -> None:
        self.write(f"lib/{file}", "not loaded by these checks")
        link = self.root / "lib" / name
        link.unlink(missing_ok=True)
        link.symlink_to(Path(file).name if "/" not in file else file)

    def remove(self, name: str) -> None:
        (self.root / name).unlink()

    def facts(self) -> DriverFacts:
        search = SearchPath(library_path=(), cache={}, default_folders=(str(self.root / "lib"),))
        return driver.read(self.environ, self.root, search)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("line", [OPEN_LINE, CLOSED_LINE])
def test_a_whole_driver_is_ok(machine: Machine, line: str) -> None:
    machine.write("proc/driver/nvidia/version", line)
    facts = machine.facts()
    assert facts.kernel_version == "580.65.06"
    check = judge_driver_versions(facts, GOOD_NVML)
    assert (check.verdict, check.fault) == ("ok", None)
    assert check.found.count("580.65.06") == 4
    assert judge_device_nodes(facts).verdict == "ok"


def test_this_machine_can_be_read() -> None:
    facts = driver.read(os.environ)
    assert {library.name for library in facts.libraries} == set(driver.LIBRARIES)
    state = NvmlState(fault="no_library", message="NVML Shared Library Not Found")
    if facts.kernel_version is None and not facts.has_userspace:
        check = judge_driver_versions(facts, state)
        assert (check.fault, check.found) == ("no_driver", "no NVIDIA driver")
        assert "--device cpu" in (check.repair or "")
        assert judge_device_nodes(facts).verdict == "not_checked"


def test_a_library_left_from_before_the_update(machine: Machine) -> None:
    machine.library("libcuda.so.1", "libcuda.so.570.124.04")
    check = judge_driver_versions(machine.facts(), GOOD_NVML)
    assert (check.verdict, check.fault) == ("failure", "version_mismatch")
    assert "libcuda.so.1 570.124.04" in check.found
    assert "Restart" in (check.repair or "")
    assert "recreate" in (check.repair or "")


def test_nvmls_own_word_for_a_mismatch(machine: Machine) -> None:
    check = judge_driver_versions(machine.facts(), NvmlState(fault="version_mismatch", message="RM has detected"))
    assert check.fault == "version_mismatch"


def test_a_compat_libcuda_may_be_newer(machine: Machine) -> None:
    machine.write("compat/libcuda.so.590.44.01", "")
    (machine.root / "lib/libcuda.so.1").unlink()
    (machine.root / "lib/libcuda.so.1").symlink_to("../compat/libcuda.so.590.44.01")
    assert judge_driver_versions(machine.facts(), GOOD_NVML).verdict == "ok"


@pytest.mark.parametrize("in_container", [True, False])
@pytest.mark.parametrize(
    ("library", "fault", "words"),
    [
        ("libcuda.so.1", "no_cuda_library", ("compute", "libcuda.so.1")),
        ("libnvidia-ml.so.1", "no_nvml_library", ("utility", "libnvidia-ml.so.1")),
    ],
)
def test_a_library_is_missing(
    machine: Machine, library: str, fault: str, words: tuple[str, str], in_container: bool
) -> None:
    machine.remove(f"lib/{library}")
    if in_container:
        machine.write(".dockerenv", "")
    nvml = GOOD_NVML if library == "libcuda.so.1" else NvmlState(fault="no_library", message="not found")
    check = judge_driver_versions(machine.facts(), nvml)
    assert (check.verdict, check.fault) == ("failure", fault)
    assert words[0 if in_container else 1] in (check.repair or "")


def test_libraries_without_a_kernel_driver(machine: Machine) -> None:
    machine.remove("proc/driver/nvidia/version")
    for node in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        machine.remove(f"dev/{node}")
    check = judge_driver_versions(machine.facts(), NvmlState(fault="no_driver", message="Driver Not Loaded"))
    assert check.fault == "driver_not_loaded"
    assert "modprobe" in (check.repair or "")


def test_a_gpu_on_the_bus_without_a_driver(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "whole")
    bare = Machine(tmp_path / "bare")
    for name in ("proc/driver/nvidia/version", "dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm"):
        bare.remove(name)
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        bare.remove(f"lib/{name}")
    state = NvmlState(fault="no_library", message="not found")
    assert bare.facts().num_pci_gpus == 0
    assert "--device cpu" in (judge_driver_versions(bare.facts(), state).repair or "")
    for slot, (vendor, kind) in enumerate([("0x10de", "0x030200"), ("0x10de", "0x040300"), ("0x8086", "0x030000")]):
        bare.write(f"sys/bus/pci/devices/0000:0{slot}:00.0/vendor", vendor + "\n")
        bare.write(f"sys/bus/pci/devices/0000:0{slot}:00.0/class", kind + "\n")
    check = judge_driver_versions(bare.facts(), state)
    assert (check.fault, check.evidence.num_pci_gpus) == ("no_driver", 1)  # not its sound device, not Intel's
    assert "install" in (check.repair or "")
    assert machine.facts().has_userspace


@pytest.mark.parametrize("fault", ["no_permission", "failed", "crashed", "hung"])
def test_nvml_fails_on_a_whole_driver(machine: Machine, fault: NvmlFault) -> None:
    check = judge_driver_versions(machine.facts(), NvmlState(fault=fault, message="because"))
    assert (check.verdict, check.fault) == ("failure", f"nvml_{fault}")
    assert "because" in check.found
    assert check.repair


def test_a_sandbox_that_hides_proc_is_believed_through_nvml(machine: Machine) -> None:
    machine.remove("proc/driver/nvidia/version")
    facts = machine.facts()
    assert driver.kernel_version(facts, GOOD_NVML) == "580.65.06"
    assert judge_driver_versions(facts, GOOD_NVML).verdict == "ok"


@pytest.mark.parametrize(
    ("missing", "fault", "word"),
    [
        (("nvidia0",), "no_device_nodes", "nvidia-modprobe"),
        (("nvidiactl",), "no_device_nodes", "nvidia-modprobe"),
        (("nvidia-uvm",), "no_uvm_node", "nvidia-modprobe -u"),
    ],
)
def test_a_device_node_is_missing(machine: Machine, missing: tuple[str, ...], fault: str, word: str) -> None:
    for node in missing:
        machine.remove(f"dev/{node}")
    check = judge_device_nodes(machine.facts())
    assert (check.verdict, check.fault) == ("failure", fault)
    assert word in (check.repair or "")


def test_no_device_node_in_a_container(machine: Machine) -> None:
    for node in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        machine.remove(f"dev/{node}")
    machine.write(".dockerenv", "")
    check = judge_device_nodes(machine.facts())
    assert check.fault == "no_device_nodes"
    assert "--gpus all" in (check.repair or "")


def test_a_device_node_that_this_user_may_not_open(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may open everything, so the system's answer is replaced by that for another user."""
    monkeypatch.setattr(os, "access", lambda path, _: not str(path).endswith("nvidia-uvm"))
    check = judge_device_nodes(machine.facts())
    assert (check.fault, check.evidence.closed_nodes) == ("device_nodes_closed", ("/dev/nvidia-uvm",))
    assert "group" in (check.repair or "")


def test_gpus_of_other_jobs_may_be_closed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some schedulers give a job's user the nodes of its own GPUs."""
    machine.write("dev/nvidia1", "")
    closed = ["nvidia0"]
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name not in closed)
    check = judge_device_nodes(machine.facts())
    assert (check.verdict, check.found) == ("ok", "1 of 2 GPU(s), /dev/nvidiactl, /dev/nvidia-uvm")
    closed.append("nvidia1")
    check = judge_device_nodes(machine.facts())
    assert (check.fault, check.found) == ("device_nodes_closed", "this user may not open /dev/nvidia0, /dev/nvidia1")
