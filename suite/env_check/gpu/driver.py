"""Checks that the NVIDIA driver's kernel module, libraries and device nodes exist and have the same version.

This module only reads files. ``suite.env_check.gpu.gpus`` asks NVML in a child process.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.env_check.check import Judgement, Subject
from suite.env_check.host.container import Container, read_container
from suite.env_check.libraries import search_path
from suite.env_check.libraries.library import is_compat
from suite.env_check.libraries.search_path import SearchPath
from suite.external.nvml.values import NvmlState

CUDA: Final = "libcuda.so.1"
NVML: Final = "libnvidia-ml.so.1"
GRAPHICS: Final = ("libGLX_nvidia.so.0", "libEGL_nvidia.so.0")
LIBRARIES: Final = (CUDA, NVML, *GRAPHICS)
CONTROL_NODE: Final = "/dev/nvidiactl"
UVM_NODE: Final = "/dev/nvidia-uvm"

_KERNEL_VERSION: Final = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)")
_FILE_VERSION: Final = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")
_NVIDIA_VENDOR: Final = "0x10de"
_DISPLAY_CLASS: Final = "0x03"


@dataclass(frozen=True, kw_only=True)
class Library:
    """One library of the driver's userspace part."""

    name: str  # as programs load it
    path: str | None  # None: no searched folder contains it
    file: str | None  # name of the file that the path links to: "libcuda.so.580.65.06"
    version: str | None  # read from the name in ``file``
    is_compat: bool = False  # see ``suite.env_check.libraries.library``


@dataclass(frozen=True, kw_only=True)
class DriverFacts:
    kernel_version: str | None  # from /proc/driver/nvidia/version
    kernel_line: str | None  # its first line
    libraries: tuple[Library, ...]  # one for each of LIBRARIES
    nodes: tuple[str, ...]  # /dev/nvidia*
    closed_nodes: tuple[str, ...]  # the nodes that this user may not open
    num_pci_gpus: int  # NVIDIA GPUs on the PCI bus, with or without a driver
    container: Container

    def library(self, name: str) -> Library:
        return next(library for library in self.libraries if library.name == name)

    @property
    def has_userspace(self) -> bool:
        return any(library.path for library in self.libraries)


@dataclass(frozen=True, kw_only=True)
class DriverVersions:
    """Evidence of ``driver_versions``."""

    kernel_version: str | None  # from /proc, else from NVML
    nvml_version: str | None
    nvml_message: str | None
    libraries: tuple[Library, ...]
    kernel_line: str | None
    num_pci_gpus: int


@dataclass(frozen=True, kw_only=True)
class DeviceNodes:
    """Evidence of ``device_nodes``."""

    nodes: tuple[str, ...]
    closed_nodes: tuple[str, ...]


def read(environ: Mapping[str, str], root: Path = Path("/"), search: SearchPath | None = None) -> DriverFacts:
    """Read /proc, /dev and /sys below ``root``, and search for libraries in ``search``.

    Default of ``search``: the folders and the cache that this machine's dynamic loader uses.
    """
    search = search or search_path.read(environ)
    version_file = root / "proc/driver/nvidia/version"
    line = version_file.read_text(encoding="utf-8").partition("\n")[0] if version_file.exists() else None
    match = _KERNEL_VERSION.search(line or "")
    nodes = sorted(path for path in (root / "dev").glob("nvidia*") if not path.is_dir())
    return DriverFacts(
        kernel_version=match[1] if match else None,
        kernel_line=line,
        libraries=tuple(_find(name, search) for name in LIBRARIES),
        nodes=tuple(f"/dev/{path.name}" for path in nodes),
        closed_nodes=tuple(f"/dev/{path.name}" for path in nodes if not os.access(path, os.R_OK | os.W_OK)),
        num_pci_gpus=sum(_is_nvidia_gpu(device) for device in (root / "sys/bus/pci/devices").glob("*")),
        container=read_container(environ, root),
    )


def _find(name: str, search: SearchPath) -> Library:
    found = search.find(name)
    if found is None:
        return Library(name=name, path=None, file=None, version=None)
    file = Path(found.path).resolve()
    match = _FILE_VERSION.search(file.name)
    return Library(
        name=name,
        path=found.path,
        file=file.name,
        version=match[1] if match else None,
        is_compat=is_compat(file),
    )


def _is_nvidia_gpu(device: Path) -> bool:
    vendor, kind = device / "vendor", device / "class"
    return (
        vendor.exists()
        and kind.exists()
        and vendor.read_text(encoding="utf-8").strip() == _NVIDIA_VENDOR
        and kind.read_text(encoding="utf-8").startswith(_DISPLAY_CLASS)
    )


def kernel_version(facts: DriverFacts, nvml: NvmlState) -> str | None:
    """Return the kernel driver's version. NVML answers even in sandboxes that hide /proc/driver."""
    return facts.kernel_version or nvml.driver_version


def judge_driver_versions(facts: DriverFacts, nvml: NvmlState) -> Judgement:
    """Check that the kernel driver, libcuda and libnvidia-ml exist and have the same version."""
    kernel, cuda, management = kernel_version(facts, nvml), facts.library(CUDA), facts.library(NVML)
    evidence = DriverVersions(
        kernel_version=kernel,
        nvml_version=nvml.nvml_version,
        nvml_message=nvml.message,
        libraries=facts.libraries,
        kernel_line=facts.kernel_line,
        num_pci_gpus=facts.num_pci_gpus,
    )
    subject = Subject("kernel driver, libcuda and libnvidia-ml of one version", evidence)
    seen = {
        "kernel": kernel,
        CUDA: cuda.version or cuda.path,
        NVML: management.version or management.path,
        "NVML": nvml.nvml_version or nvml.message,
    }
    found = ", ".join(f"{what} {value or 'missing'}" for what, value in seen.items())
    fault = _versions_fault(facts, nvml)
    if fault is None:
        return subject.ok(found)
    found = "no NVIDIA driver" if fault == "no_driver" else found
    return subject.failure(fault, found, _versions_repair(fault, facts))


def _versions_fault(facts: DriverFacts, nvml: NvmlState) -> str | None:
    kernel, cuda, management = kernel_version(facts, nvml), facts.library(CUDA), facts.library(NVML)
    if kernel is None and not facts.nodes:
        return "driver_not_loaded" if facts.has_userspace else "no_driver"
    versions = {kernel, cuda.version if not cuda.is_compat else None, management.version, nvml.nvml_version} - {None}
    if nvml.fault == "version_mismatch" or len(versions) > 1:
        return "version_mismatch"
    if cuda.path is None:
        return "no_cuda_library"
    if management.path is None and nvml.fault:  # NVML may find the library where this search does not
        return "no_nvml_library"
    return f"nvml_{nvml.fault}" if nvml.fault else None


def _versions_repair(fault: str, facts: DriverFacts) -> str:
    in_container = facts.container.is_container
    if fault == "no_driver" and in_container:
        return "Start the container with GPUs (docker run --gpus all), or run on the CPU with --device cpu."
    if fault == "no_driver" and facts.num_pci_gpus == 0:
        return "No NVIDIA GPU is on the bus: run on the CPU with --device cpu, or use a machine with one."
    library = {"no_cuda_library": ("compute", CUDA), "no_nvml_library": ("utility", NVML)}.get(fault)
    if library and in_container:
        return f"Start the container with --gpus all and NVIDIA_DRIVER_CAPABILITIES that include {library[0]}, or all."
    if library:
        return f"Install the package of the same driver version that contains {library[1]}, then run ldconfig."
    return {
        "no_driver": f"{facts.num_pci_gpus} NVIDIA GPU(s) on the bus have no driver: install it, then restart.",
        "driver_not_loaded": "Start the container with GPUs (docker run --gpus all); on a host without one, load the"
        " driver: sudo modprobe nvidia, and if that fails look at dmesg (Secure Boot, a new kernel).",
        "version_mismatch": "Restart the machine after a driver update (or unload and load the kernel module);"
        " in a container: recreate it, so that it gets the libraries of the running driver.",
        "nvml_no_permission": "Add this user to the group that owns /dev/nvidia*, or start the container with --gpus.",
        "nvml_hung": "NVML hangs: look for Xid errors in dmesg, then restart the machine.",
        "nvml_crashed": "NVML crashes: reinstall the driver's libraries in the kernel driver's version.",
    }.get(fault, "Repair the driver until nvidia-smi works; look for NVRM and Xid lines in dmesg.")


def judge_device_nodes(facts: DriverFacts) -> Judgement:
    """Check that the device nodes CUDA needs exist, and that this user may open them."""
    subject = Subject(
        f"/dev/nvidia<number>, {CONTROL_NODE} and {UVM_NODE}, to read and write",
        DeviceNodes(nodes=facts.nodes, closed_nodes=facts.closed_nodes),
    )
    gpus = [node for node in facts.nodes if node.removeprefix("/dev/nvidia").isdecimal()]
    opened = [node for node in gpus if node not in facts.closed_nodes]
    # A scheduler may open only the nodes of a job's own GPUs.
    needed_closed = [
        node for node in facts.closed_nodes if node in (CONTROL_NODE, UVM_NODE) or (node in gpus and not opened)
    ]
    if facts.kernel_version is None and not facts.nodes:
        return subject.not_checked("no driver")
    if not gpus or CONTROL_NODE not in facts.nodes:
        repair = (
            "Start the container with GPUs (docker run --gpus all); check NVIDIA_VISIBLE_DEVICES."
            if facts.container.is_container
            else "Run sudo nvidia-modprobe -c 0 (or nvidia-smi once as root), which creates them."
        )
        return subject.failure("no_device_nodes", ", ".join(facts.nodes) or "none", repair)
    if UVM_NODE not in facts.nodes:
        return subject.failure(
            "no_uvm_node",
            f"{len(gpus)} GPU(s), but no {UVM_NODE}: CUDA does not start",
            "On the host run sudo nvidia-modprobe -u -c 0, then recreate the container if there is one.",
        )
    if needed_closed:
        return subject.failure(
            "device_nodes_closed",
            f"this user may not open {', '.join(needed_closed)}",
            "Add this user to the group that owns them (ls -l /dev/nvidia*), or start the container with --gpus.",
        )
    of_all = f" of {len(gpus)}" if len(opened) < len(gpus) else ""
    return subject.ok(f"{len(opened)}{of_all} GPU(s), {CONTROL_NODE}, {UVM_NODE}")
