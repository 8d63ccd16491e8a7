"""The driver's checks on made trees of /proc, /dev and libraries with real faults in them.

The kernel driver itself needs a GPU; its files are made here as it writes them, and NVML's answer is handed in.
"""

import contextlib
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, get_args

import pytest

from suite.env_check.check import parts
from suite.env_check.container import Container
from suite.env_check.gpu import driver
from suite.env_check.gpu.driver import (
    DriverFacts,
    drivers_for,
    judge_device_nodes,
    judge_driver_for_stack,
    judge_driver_versions,
    read_drivers,
)
from suite.env_check.libraries import SearchPath
from suite.external.nvml.values import NvmlState
from suite.schema.record import Stack
from tests.fixtures.machines.nvidia_gpus import APPTAINER, DOCKER, DRIVER, HEALTHY, HOST, NO_DRIVER, NODES, OPEN_MODULES

CLOSED_MODULES: Final = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Thu Oct 19 18:56:32 UTC 2023\n"
VERSION_FILE: Final = "proc/driver/nvidia/version"
DEVICE_NODES: Final = ("dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm")
WSL: Final = NvmlState(driver_version="591.44", nvml_version="590.52.01", num_gpus=1)
NO_LIBRARY: Final = NvmlState(fault="no_library", message="not found")
UNKNOWN: Final = NvmlState(fault="failed", message="Unknown Error")
NO_PERMISSION: Final = NvmlState(fault="no_permission", message="Insufficient Permissions")


class Machine:
    """A root folder with what the driver leaves in a file system."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ: dict[str, str] = {}
        self.write(VERSION_FILE, OPEN_MODULES + "\nGCC version:  gcc version 13.3.0\n")
        for node in DEVICE_NODES:
            self.write(node, "")
        for name in ("libcuda.so", "libnvidia-ml.so"):
            self.library(name + ".1", f"{name}.580.65.06")

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def library(self, name: str, file: str) -> None:
        """Make a library's file, and its link of this name."""
        self.write(f"lib/{file}", "not loaded by these checks")
        link = self.root / "lib" / name
        link.unlink(missing_ok=True)
        link.symlink_to(Path(file).name if "/" not in file else file)

    def remove(self, *names: str) -> None:
        for name in names:
            (self.root / name).unlink()

    def remove_kernel_driver(self) -> None:
        self.remove(VERSION_FILE, *DEVICE_NODES)

    def add_pci_device(self, slot: int, vendor: str, kind: str, module: str = "nvidia") -> None:
        device = f"sys/bus/pci/devices/0000:0{slot}:00.0"
        self.write(f"{device}/vendor", vendor + "\n")
        self.write(f"{device}/class", kind + "\n")
        (self.root / device / "driver").symlink_to(f"../../drivers/{module}")

    def facts(self) -> DriverFacts:
        search = SearchPath(library_path=(), cache={}, default_folders=(str(self.root / "lib"),))
        return driver.read_driver(self.environ, self.root, search)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


Change = Callable[[Machine], object]


def in_docker(machine: Machine) -> None:
    machine.write(".dockerenv", "")


def old_cuda(machine: Machine) -> None:
    machine.library("libcuda.so.1", "libcuda.so.570.124.04")  # from before the update


def no_libraries(machine: Machine) -> None:
    machine.remove("lib/libcuda.so.1", "lib/libnvidia-ml.so.1")


def without(stem: str) -> Change:
    return lambda machine: machine.remove(*(f"lib/{file.name}" for file in (machine.root / "lib").glob(f"{stem}*")))


def with_capabilities(value: str) -> Change:
    return lambda machine: machine.environ.update(NVIDIA_DRIVER_CAPABILITIES=value)


def on_wsl(machine: Machine) -> None:
    """WSL 2: the driver is that of Windows, its libraries have no version, and NVML has another version."""
    machine.remove_kernel_driver()
    machine.write("dev/dxg", "")
    for name in ("libcuda.so", "libnvidia-ml.so"):
        machine.remove(f"lib/{name}.1")
        machine.write(f"usr/lib/wsl/lib/{name}.1", "not loaded by these checks")
        machine.library(f"{name}.1", f"../usr/lib/wsl/lib/{name}.1")


def bus(machine: Machine) -> None:
    """A GPU, its sound device, and Intel's GPU."""
    for slot, (vendor, kind) in enumerate([("0x10de", "0x030200"), ("0x10de", "0x040300"), ("0x8086", "0x030000")]):
        machine.add_pci_device(slot, vendor, kind)


@pytest.mark.parametrize(
    ("changes", "nvml", "fault", "words"),
    [
        ((), HEALTHY, None, ""),
        ((lambda m: m.write(VERSION_FILE, CLOSED_MODULES),), HEALTHY, None, ""),
        ((lambda m: m.remove(VERSION_FILE),), HEALTHY, None, ""),  # a sandbox; NVML knows it
        ((old_cuda,), HEALTHY, "version_mismatch", "Restart"),
        ((old_cuda, in_docker), HEALTHY, "version_mismatch", "Recreate the container"),
        (  # images may be newer than the host
            (lambda m: m.library("libcuda.so.1", "../compat/libcuda.so.590.44.01"),), HEALTHY, None, "",
        ),
        ((without("libcuda.so"),), HEALTHY, "no_cuda_library", "libcuda.so.1"),
        ((without("libcuda.so"), in_docker), HEALTHY, "no_cuda_library", "requests the compute part already"),
        (
            (without("libcuda.so"), in_docker, with_capabilities("graphics")), HEALTHY,
            "no_cuda_library", "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics",
        ),
        (
            (without("libcuda.so"), in_docker, lambda m: m.remove(*DEVICE_NODES)),
            HEALTHY, "no_cuda_library", "docker run --gpus all",
        ),
        ((lambda m: m.remove("lib/libcuda.so.1"),), HEALTHY, "no_cuda_library", "without the link libcuda.so.1"),
        ((without("libnvidia-ml.so"),), NO_LIBRARY, "no_nvml_library", "libnvidia-ml.so.1"),
        ((without("libnvidia-ml.so"), in_docker), NO_LIBRARY, "no_nvml_library", "requests the utility part already"),
        ((Machine.remove_kernel_driver,), NO_LIBRARY, "driver_not_loaded", "modprobe"),
        ((Machine.remove_kernel_driver, no_libraries), NO_LIBRARY, "no_driver", "--device cpu"),
        ((Machine.remove_kernel_driver, no_libraries, bus), NO_LIBRARY, "no_driver", "install"),
        ((), NO_PERMISSION, "nvml_no_permission", "group"),
        ((), NvmlState(fault="crashed", message="because"), "nvml_crashed", "reinstall"),
        ((), NvmlState(fault="hung", message="because"), "nvml_hung", "Xid"),
        ((), UNKNOWN, "nvml_failed", "nvidia-smi"),
        # A systemctl daemon-reload on the host leaves the nodes of a container listed, and a cgroup denies them.
        ((in_docker,), UNKNOWN, "gpus_lost", "nvidia-ctk cdi generate"),
        ((in_docker,), NO_PERMISSION, "nvml_no_permission", "label=disable"),
        ((in_docker,), NvmlState(fault="failed", message="GPU is lost"), "nvml_failed", "nvidia-smi"),
        ((on_wsl,), WSL, None, ""),
        ((on_wsl,), NvmlState(fault="no_driver", message="Driver Not Loaded"), "nvml_no_driver", "on Windows"),
        ((on_wsl,), NvmlState(fault="failed", message="GPU access blocked"), "nvml_failed", "wsl --update"),
        (
            (on_wsl, lambda m: m.library("libcuda.so.1", "libcuda.so.580.65.06")), WSL,
            "version_mismatch", "Remove the Linux driver",
        ),
        ((on_wsl, lambda m: m.library("libcuda.so.1", "libcuda.so.1.1")), WSL, None, ""),  # in containers
        ((on_wsl, lambda m: m.remove("lib/libcuda.so.1")), WSL, "no_cuda_library", "update that driver"),
    ],
)  # fmt: skip
def test_a_fault_of_the_driver_has_its_word_and_repair(
    machine: Machine, changes: tuple[Change, ...], nvml: NvmlState, fault: str | None, words: str
) -> None:
    (machine.root / "compat").mkdir()
    for change in changes:
        change(machine)
    facts = machine.facts()
    check = judge_driver_versions(facts, nvml)
    assert (check.verdict, check.fault) == ("failure" if fault else "ok", fault), check
    assert words in (check.repair or "")
    if facts.container.is_wsl:
        assert judge_device_nodes(facts).verdict == "ok"
        assert "modprobe" not in (check.repair or "")


def test_denied_nodes_of_a_container_are_lost_gpus(machine: Machine) -> None:
    in_docker(machine)
    denied = replace(machine.facts(), refusals=dict.fromkeys(NODES, "EPERM"))
    assert judge_driver_versions(denied, NO_PERMISSION).fault == "gpus_lost"


def test_wsl_is_known_by_its_libraries_where_a_container_hides_its_device(machine: Machine) -> None:
    on_wsl(machine)
    machine.remove("dev/dxg")
    folder = str(machine.root / "usr/lib/wsl/lib")
    search = SearchPath(library_path=(folder,), cache={}, default_folders=())
    facts = driver.read_driver({}, machine.root, search)
    assert facts.container.is_wsl
    assert judge_driver_versions(facts, WSL).verdict == "ok"


def test_gpus_on_the_bus_are_counted_unless_a_virtual_machine_has_them(machine: Machine) -> None:
    bus(machine)
    assert machine.facts().num_pci_gpus == 1
    machine.add_pci_device(4, "0x10de", "0x030200", module="vfio-pci")
    assert machine.facts().num_pci_gpus == 1


def test_without_a_driver_no_node_is_missing() -> None:
    assert judge_device_nodes(NO_DRIVER).verdict == "not_checked"


def test_nodes_are_opened_for_real(machine: Machine) -> None:
    """A socket in place of a node: permissions allow it, and it does not open."""
    machine.remove("dev/nvidia-uvm")
    with socket.socket(socket.AF_UNIX) as node, contextlib.chdir(machine.root / "dev"):
        node.bind("nvidia-uvm")
    facts = machine.facts()
    assert os.access(machine.root / "dev/nvidia-uvm", os.R_OK | os.W_OK)
    assert facts.refusals == {"/dev/nvidia-uvm": "ENXIO"}
    check = judge_device_nodes(facts)
    assert (check.verdict, check.fault) == ("failure", "device_node_broken")
    assert "modprobe -r nvidia_uvm" in (check.repair or "")


UVM, FIRST, SECOND, CONTROL = NODES


@pytest.mark.parametrize(
    ("nodes", "refusals", "container", "verdict", "fault", "word"),
    [
        ((UVM, CONTROL), {}, HOST, "failure", "no_device_nodes", "nvidia-modprobe"),
        ((UVM, FIRST), {}, HOST, "failure", "no_device_nodes", "nvidia-modprobe"),
        ((FIRST, CONTROL), {}, HOST, "failure", "no_uvm_node", "nvidia-modprobe -u"),
        ((), {}, DOCKER, "failure", "no_device_nodes", "--gpus all"),
        (NODES, {UVM: "EACCES"}, HOST, "failure", "device_nodes_closed", "group"),
        (NODES, {UVM: "EACCES"}, DOCKER, "failure", "device_nodes_closed", "label=disable"),
        (NODES, {FIRST: "EACCES", SECOND: "EACCES"}, HOST, "failure", "device_nodes_closed", "group"),
        (NODES, {FIRST: "EPERM", SECOND: "EPERM"}, HOST, "failure", "device_nodes_closed", "scheduler"),
        (NODES, dict.fromkeys(NODES, "EPERM"), DOCKER, "failure", "gpus_lost", "cdi generate"),
        (NODES, {CONTROL: "EPERM"}, DOCKER, "failure", "gpus_lost", "recreate"),
        (NODES, {SECOND: "EPERM"}, DOCKER, "warning", "gpus_lost", "recreate"),  # one of two
        (NODES, {SECOND: "EPERM"}, APPTAINER, "ok", None, ""),  # which has the nodes of all jobs
        (NODES, {SECOND: "EACCES"}, HOST, "ok", None, ""),  # so has a host of several jobs
        (NODES, {SECOND: "EIO"}, HOST, "warning", "device_node_broken", "dmesg | grep NVRM"),
        (NODES, {FIRST: "EIO", SECOND: "hung"}, DOCKER, "failure", "device_node_broken", "dmesg | grep NVRM"),
    ],
)
def test_a_node_that_is_missing_or_does_not_open(
    nodes: tuple[str, ...], refusals: dict[str, str], container: Container, verdict: str, fault: str | None, word: str
) -> None:
    check = judge_device_nodes(replace(DRIVER, nodes=nodes, refusals=refusals, container=container))
    assert (check.verdict, check.fault) == (verdict, fault), check
    assert all(f"{node} ({why})" in check.found for node, why in refusals.items() if fault)
    assert word in (check.repair or "")


@pytest.mark.parametrize(
    ("stack", "release", "version", "verdict", "fault"),
    [
        ("kitless", None, "580.65.06", "ok", None),
        ("kitless", None, "595.71.05", "ok", None),
        ("kitless", None, "580.65.05", "failure", "driver_too_old"),
        ("ovphysx", None, "580.159.04", "ok", None),
        ("isaacsim", None, "580.65.06", "failure", "driver_too_old"),
        ("isaacsim", "6.0.1", "595.58.03", "ok", None),
        ("isaacsim", "5.1.0", "580.65.06", "ok", None),
        ("isaacsim", "5.1.0", "595.71.05", "failure", "driver_known_bad"),
        ("isaacsim", "5.1.0", "610.43.02", "failure", "driver_known_bad"),
        ("isaacsim", "5.1.0", "600.10", "warning", "driver_not_validated"),
        ("isaacsim", None, None, "not_checked", None),
    ],
)
def test_driver_for_stack(
    stack: Stack, release: str | None, version: str | None, verdict: str, fault: str | None
) -> None:
    check = judge_driver_for_stack(version, drivers_for(stack, release=release))
    assert (check.verdict, check.fault) == (verdict, fault)
    assert ("580." in (check.repair or "")) == bool(fault)


def test_each_entry_of_drivers_has_its_own_release_and_ranges_of_versions() -> None:
    entries = read_drivers()
    assert len({entry.title for entry in entries}) == len(entries)
    assert {entry.name for entry in entries} == set(get_args(Stack))
    assert all(parts(bad.first) < parts(bad.below) for entry in entries for bad in entry.known_bad)
    assert drivers_for("isaacsim", release="7.0").release == "6"  # no entry names it, so the first is for it
