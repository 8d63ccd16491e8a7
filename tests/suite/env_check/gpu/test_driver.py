"""The driver's checks on made trees of /proc, /dev and libraries with real faults in them.

The kernel driver itself needs a GPU; its files are made here as it writes them, and NVML's answer is handed in.
"""

import contextlib
import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from suite.env_check.gpu import driver
from suite.env_check.gpu.driver import DriverFacts, judge_device_nodes, judge_driver_versions
from suite.env_check.libraries import SearchPath
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
        return driver.read_driver(self.environ, self.root, search)


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
    facts = driver.read_driver(os.environ)
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
    machine.write(".dockerenv", "")
    assert "Recreate the container" in (judge_driver_versions(machine.facts(), GOOD_NVML).repair or "")


def test_a_compat_libcuda_may_be_newer(machine: Machine) -> None:
    machine.write("compat/libcuda.so.590.44.01", "")
    (machine.root / "lib/libcuda.so.1").unlink()
    (machine.root / "lib/libcuda.so.1").symlink_to("../compat/libcuda.so.590.44.01")
    assert judge_driver_versions(machine.facts(), GOOD_NVML).verdict == "ok"


@pytest.mark.parametrize(
    ("library", "fault", "on_host", "in_container"),
    [
        ("libcuda.so.1", "no_cuda_library", "libcuda.so.1", "requests the compute part already"),
        ("libnvidia-ml.so.1", "no_nvml_library", "libnvidia-ml.so.1", "requests the utility part already"),
    ],
)
def test_a_library_is_missing(machine: Machine, library: str, fault: str, on_host: str, in_container: str) -> None:
    for file in (machine.root / "lib").glob(f"{library.removesuffix('.1')}*"):
        file.unlink()
    nvml = GOOD_NVML if library == "libcuda.so.1" else NvmlState(fault="no_library", message="not found")

    def repair() -> str:
        check = judge_driver_versions(machine.facts(), nvml)
        assert (check.verdict, check.fault) == ("failure", fault)
        return check.repair or ""

    assert on_host in repair()
    machine.write(".dockerenv", "")
    assert in_container in repair()
    machine.environ["NVIDIA_DRIVER_CAPABILITIES"] = "graphics"
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics" in repair()
    for node in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        machine.remove(f"dev/{node}")
    assert "docker run --gpus all" in repair()


def test_a_library_that_is_there_without_its_link(machine: Machine) -> None:
    machine.remove("lib/libcuda.so.1")
    check = judge_driver_versions(machine.facts(), GOOD_NVML)
    assert (check.fault, check.repair) == (
        "no_cuda_library",
        "libcuda.so.580.65.06 is there without the link libcuda.so.1: run ldconfig.",
    )


def wsl(root: Path) -> Machine:
    """WSL 2: the driver is that of Windows, its libraries have no version, and NVML has another version."""
    machine = Machine(root)
    for name in ("proc/driver/nvidia/version", "dev/nvidia0", "dev/nvidiactl", "dev/nvidia-uvm"):
        machine.remove(name)
    machine.write("dev/dxg", "")
    for name in ("libcuda.so", "libnvidia-ml.so"):
        machine.remove(f"lib/{name}.1")
        machine.write(f"usr/lib/wsl/lib/{name}.1", "not loaded by these checks")
        machine.library(f"{name}.1", f"../usr/lib/wsl/lib/{name}.1")
    return machine


WSL_NVML = NvmlState(driver_version="591.44", nvml_version="590.52.01", num_gpus=1)


def test_the_driver_of_windows_has_two_versions(tmp_path: Path) -> None:
    facts = wsl(tmp_path).facts()
    check = judge_driver_versions(facts, WSL_NVML)
    assert (check.verdict, check.fault) == ("ok", None), check
    assert judge_device_nodes(facts).verdict == "ok"
    by_libraries = replace(  # without /dev/dxg, as in some containers
        facts,
        container=replace(facts.container, is_wsl=False),
        libraries=tuple(replace(library, path=f"/usr/lib/wsl/lib/{library.name}") for library in facts.libraries),
    )
    assert judge_driver_versions(by_libraries, WSL_NVML).verdict == "ok"
    native = replace(by_libraries, libraries=Machine(tmp_path / "native").facts().libraries)
    assert judge_driver_versions(replace(native, kernel_version="591.44"), WSL_NVML).fault == "version_mismatch"


@pytest.mark.parametrize(
    ("library", "nvml", "fault", "word"),
    [
        (None, NvmlState(fault="no_driver", message="Driver Not Loaded"), "nvml_no_driver", "on Windows"),
        (None, NvmlState(fault="failed", message="GPU access blocked"), "nvml_failed", "wsl --update"),
        ("libcuda.so.580.65.06", WSL_NVML, "version_mismatch", "Remove the Linux driver"),
        ("libcuda.so.1.1", WSL_NVML, None, None),  # the file's name in containers; no version of a driver
        ("gone", WSL_NVML, "no_cuda_library", "update that driver"),
    ],
)
def test_faults_of_wsl_have_their_repair_on_windows(
    tmp_path: Path, library: str | None, nvml: NvmlState, fault: str | None, word: str | None
) -> None:
    machine = wsl(tmp_path)
    if library == "gone":
        machine.remove("lib/libcuda.so.1")
    elif library:
        machine.library("libcuda.so.1", library)
    check = judge_driver_versions(machine.facts(), nvml)
    assert check.fault == fault
    assert (word or "") in (check.repair or "")
    assert "modprobe" not in (check.repair or "")


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
    assert (check.fault, check.evidence["num_pci_gpus"]) == ("no_driver", 1)  # not its sound device, not Intel's
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


UNKNOWN = NvmlState(fault="failed", message="Unknown Error")


def test_gpus_that_a_running_container_lost(machine: Machine) -> None:
    """A systemctl daemon-reload on the host leaves the nodes listed, and a cgroup denies them."""
    machine.write(".dockerenv", "")
    check = judge_driver_versions(machine.facts(), UNKNOWN)
    assert (check.verdict, check.fault) == ("failure", "gpus_lost")
    for word in ("recreate the container", "nvidia-ctk cdi generate"):
        assert word in (check.repair or "")
    denied = replace(machine.facts(), closed_nodes=NODES, refusals=dict.fromkeys(NODES, "EPERM"))
    no_permission = NvmlState(fault="no_permission", message="Insufficient Permissions")
    assert judge_driver_versions(denied, no_permission).fault == "gpus_lost"
    assert judge_driver_versions(machine.facts(), no_permission).fault == "nvml_no_permission"
    assert judge_driver_versions(machine.facts(), replace(UNKNOWN, message="GPU is lost")).fault == "nvml_failed"
    on_host = replace(machine.facts(), container=replace(denied.container, is_container=False))
    assert judge_driver_versions(on_host, UNKNOWN).fault == "nvml_failed"


def test_nodes_are_opened_for_real(machine: Machine) -> None:
    """A socket in place of a node: permissions allow it, and it does not open."""
    machine.remove("dev/nvidia-uvm")
    with socket.socket(socket.AF_UNIX) as node, contextlib.chdir(machine.root / "dev"):
        node.bind("nvidia-uvm")
    facts = machine.facts()
    assert os.access(machine.root / "dev/nvidia-uvm", os.R_OK | os.W_OK)
    assert (facts.closed_nodes, facts.refusals) == (("/dev/nvidia-uvm",), {"/dev/nvidia-uvm": "ENXIO"})
    check = judge_device_nodes(facts)
    assert (check.verdict, check.fault) == ("failure", "device_node_broken")
    assert "modprobe -r nvidia_uvm" in (check.repair or "")


NODES = ("/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl")
UVM, FIRST, SECOND, CONTROL = NODES
DOCKER, APPTAINER = {".dockerenv"}, {"APPTAINER_CONTAINER"}


@pytest.mark.parametrize(
    ("refusals", "signs", "verdict", "fault", "word"),
    [
        ({UVM: "EACCES"}, None, "failure", "device_nodes_closed", "group"),
        ({UVM: "EACCES"}, DOCKER, "failure", "device_nodes_closed", "label=disable"),
        ({FIRST: "EACCES", SECOND: "EACCES"}, None, "failure", "device_nodes_closed", "group"),
        ({FIRST: "EPERM", SECOND: "EPERM"}, None, "failure", "device_nodes_closed", "scheduler"),
        (dict.fromkeys(NODES, "EPERM"), DOCKER, "failure", "gpus_lost", "cdi generate"),
        ({CONTROL: "EPERM"}, DOCKER, "failure", "gpus_lost", "recreate"),
        ({SECOND: "EPERM"}, DOCKER, "warning", "gpus_lost", "recreate"),  # one of two
        ({SECOND: "EPERM"}, APPTAINER, "ok", None, ""),  # which has the nodes of all jobs
        ({SECOND: "EACCES"}, None, "ok", None, ""),  # so has a host of several jobs
        ({SECOND: "EIO"}, None, "warning", "device_node_broken", "dmesg | grep NVRM"),
        ({FIRST: "EIO", SECOND: "hung"}, DOCKER, "failure", "device_node_broken", "dmesg | grep NVRM"),
    ],
)
def test_a_node_that_does_not_open_has_one_of_several_causes(
    machine: Machine, refusals: dict[str, str], signs: set[str] | None, verdict: str, fault: str | None, word: str
) -> None:
    facts = machine.facts()
    container = replace(facts.container, is_container=bool(signs), signs=tuple(signs or ()))
    facts = replace(facts, nodes=NODES, closed_nodes=tuple(refusals), refusals=refusals, container=container)
    check = judge_device_nodes(facts)
    assert (check.verdict, check.fault) == (verdict, fault), check
    assert all(f"{node} ({why})" in check.found for node, why in refusals.items() if fault)
    assert word in (check.repair or "")
    if verdict == "ok":
        assert check.found == "1 of 2 GPU(s), /dev/nvidiactl, /dev/nvidia-uvm"


def test_a_gpu_that_a_virtual_machine_has_is_not_counted(machine: Machine) -> None:
    for slot, module in enumerate(("nvidia", "vfio-pci")):
        device = f"sys/bus/pci/devices/0000:0{slot}:00.0"
        machine.write(f"{device}/vendor", "0x10de\n")
        machine.write(f"{device}/class", "0x030200\n")
        (machine.root / device / "driver").symlink_to(f"../../drivers/{module}")
    assert machine.facts().num_pci_gpus == 1
