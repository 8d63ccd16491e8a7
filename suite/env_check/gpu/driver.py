"""Checks that the NVIDIA driver's kernel module and libraries exist and have the same version.

This module reads files; a child process opens the device nodes, and ``suite.env_check.gpu.gpus`` asks NVML in another.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from suite.env_check.check import Judgement, Subject
from suite.env_check.host.container import Container, read_container
from suite.env_check.libraries import search_path
from suite.env_check.libraries.library import is_compat, part_of, version_of
from suite.env_check.libraries.search_path import SearchPath
from suite.env_check.probes.run import run_probe
from suite.external.nvml.values import NvmlState

CUDA: Final = "libcuda.so.1"
NVML: Final = "libnvidia-ml.so.1"
GRAPHICS: Final = ("libGLX_nvidia.so.0", "libEGL_nvidia.so.0")
LIBRARIES: Final = (CUDA, NVML, *GRAPHICS)
LOST: Final = (
    "The host took the GPUs from this container, as systemctl daemon-reload does: recreate the container. To keep them,"
    " give them by CDI: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml, then docker run --device"
    " nvidia.com/gpu=all."
)
NOT_OPEN: Final = (
    "Run the container as a user who may open /dev/nvidia* (ls -l /dev/nvidia*); on SELinux hosts start it with"
    " --security-opt label=disable."
)

_KERNEL_VERSION: Final = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)")
_NVIDIA_VENDOR: Final = "0x10de"
_DISPLAY_CLASS: Final = "0x03"
_PASSED_ON: Final = "vfio-pci"  # the driver of a GPU that a virtual machine has
_OPEN_TIMEOUT_S: Final = 30.0  # the first open on an idle machine initialises a GPU, which takes seconds
PERMISSION: Final = ("EPERM", "EACCES")
NVOPTIX: Final = "usr/share/nvidia/nvoptix.bin"


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
    num_pci_gpus: int  # NVIDIA GPUs on the PCI bus that no virtual machine has, with or without a driver
    container: Container
    refusals: Mapping[str, str] = field(default_factory=dict)  # closed node -> "EPERM", …, or "hung"
    has_nvoptix: bool = False  # the weights of OptiX' denoiser are there

    def library(self, name: str) -> Library:
        return next(library for library in self.libraries if library.name == name)

    @property
    def has_userspace(self) -> bool:
        return any(library.path for library in self.libraries)

    @property
    def is_wsl(self) -> bool:
        return self.container.is_wsl or any("wsl" in Path(library.path or "").parts for library in self.libraries)

    @property
    def gpu_nodes(self) -> tuple[str, ...]:
        return tuple(node for node in self.nodes if node.removeprefix("/dev/nvidia").isdecimal())

    @property
    def num_own_gpus(self) -> int:
        """Count the GPUs that are for this process: a container has fewer nodes, and a job may open fewer."""
        closed = set(self.gpu_nodes) & set(self.closed_nodes)
        denied = sum(self.refusals.get(node, "EACCES") in PERMISSION for node in closed)
        seen = min(self.num_pci_gpus, len(self.gpu_nodes)) if self.container.is_container else self.num_pci_gpus
        return max(seen - denied, 0)

    @property
    def repair_of_dead_gpu(self) -> str:
        """Return the next step for a GPU that is on the bus and that the driver could not initialise."""
        modules = (
            "GPUs before Turing need the proprietary kernel modules"
            if "Open Kernel Module" in (self.kernel_line or "")
            else "Blackwell and newer GPUs need the open kernel modules"
        )
        return (
            f"Run sudo dmesg | grep NVRM on the host, which says why the driver could not initialise it. {modules};"
            " large memory needs Above 4G Decoding in the BIOS; else switch the machine off and on, and reseat the GPU."
        )


@dataclass(frozen=True, kw_only=True)
class DriverVersions:
    """Evidence of ``driver_versions``."""

    kernel_version: str | None  # from /proc, else from NVML
    nvml_version: str | None
    nvml_message: str | None
    libraries: tuple[Library, ...]
    kernel_line: str | None
    num_pci_gpus: int


def read(environ: Mapping[str, str], root: Path = Path("/"), search: SearchPath | None = None) -> DriverFacts:
    """Read /proc, /dev and /sys below ``root``, and search for libraries in ``search``.

    Default of ``search``: the folders and the cache that this machine's dynamic loader uses.
    """
    search = search or search_path.read(environ)
    version_file = root / "proc/driver/nvidia/version"
    line = version_file.read_text(encoding="utf-8").partition("\n")[0] if version_file.exists() else None
    match = _KERNEL_VERSION.search(line or "")
    nodes = sorted(path for path in (root / "dev").glob("nvidia*") if not path.is_dir())
    refusals = _open(nodes, environ)
    return DriverFacts(
        kernel_version=match[1] if match else None,
        kernel_line=line,
        libraries=tuple(_find(name, search, match[1] if match else None) for name in LIBRARIES),
        nodes=tuple(f"/dev/{path.name}" for path in nodes),
        closed_nodes=tuple(refusals),
        num_pci_gpus=sum(_is_nvidia_gpu(device) for device in (root / "sys/bus/pci/devices").glob("*")),
        container=read_container(environ, root),
        refusals=refusals,
        has_nvoptix=(root / NVOPTIX).exists(),
    )


def _open(nodes: list[Path], environ: Mapping[str, str]) -> dict[str, str]:
    """Open each node, as CUDA does, and return node -> why not; permissions do not show what a cgroup denies."""
    if not nodes:
        return {}
    run = run_probe("probes.device_nodes", *map(str, nodes), environ=environ, timeout_s=_OPEN_TIMEOUT_S)
    unanswered = run.end if run.end in ("hung", "died") else None
    return {f"/dev/{path.name}": why for path in nodes if (why := run.answer.get(str(path), unanswered))}


def _find(name: str, search: SearchPath, driver_version: str | None) -> Library:
    found = search.find(name)
    if found is None:
        without_link = search.find(f"{name.rpartition('.')[0]}.{driver_version}") if driver_version else None
        return Library(name=name, path=None, file=Path(without_link.path).name if without_link else None, version=None)
    file = Path(found.path).resolve()
    return Library(
        name=name,
        path=found.path,
        file=file.name,
        version=version_of(file.name),
        is_compat=is_compat(file),
    )


def _is_nvidia_gpu(device: Path) -> bool:
    vendor, kind = device / "vendor", device / "class"
    return (
        vendor.exists()
        and kind.exists()
        and vendor.read_text(encoding="utf-8").strip() == _NVIDIA_VENDOR
        and kind.read_text(encoding="utf-8").startswith(_DISPLAY_CLASS)
        and (device / "driver").resolve().name != _PASSED_ON
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
    if kernel is None and not facts.nodes and not facts.is_wsl:
        return "driver_not_loaded" if facts.has_userspace else "no_driver"
    if facts.container.is_container and facts.gpu_nodes and _is_lost(facts, nvml):
        return "gpus_lost"
    versions = {cuda.version if not cuda.is_compat else None, management.version} - {None}
    if not facts.is_wsl:  # there the driver is that of Windows, and its libraries have no version in their names
        versions |= {kernel, nvml.nvml_version} - {None}
    if nvml.fault == "version_mismatch" or len(versions) > (0 if facts.is_wsl else 1):
        return "version_mismatch"
    if cuda.path is None:
        return "no_cuda_library"
    if management.path is None and nvml.fault:  # NVML may find the library where this search does not
        return "no_nvml_library"
    return f"nvml_{nvml.fault}" if nvml.fault else None


def _is_lost(facts: DriverFacts, nvml: NvmlState) -> bool:
    """Return whether a container's nodes no longer work: a reload of systemd on the host takes them away."""
    return nvml.fault is not None and (
        "EPERM" in facts.refusals.values() or "unknown error" in (nvml.message or "").lower()
    )


def _versions_repair(fault: str, facts: DriverFacts) -> str:
    container = replace(facts.container, is_wsl=facts.is_wsl)
    if library := {"no_cuda_library": CUDA, "no_nvml_library": NVML}.get(fault):
        return _library_repair(facts, facts.library(library), container)
    if fault == "version_mismatch":
        return container.repair_of_mismatch(f"{CUDA} or {NVML}")
    if facts.is_wsl:
        return "Update NVIDIA's driver on Windows, then run wsl --update and wsl --shutdown there."
    on_bus = f"{facts.num_pci_gpus} NVIDIA GPU(s) on the bus have no driver: install it, then restart."
    none = "No NVIDIA GPU is on the bus: run on the CPU with --device cpu, or use a machine with one."
    repairs = {
        "no_driver": on_bus if facts.num_pci_gpus else none,
        "driver_not_loaded": "Load it: sudo modprobe nvidia, and if that fails see dmesg (Secure Boot, new kernel).",
        "gpus_lost": LOST,
        "nvml_no_permission": "Add this user to the group that owns /dev/nvidia*.",
        "nvml_hung": "NVML hangs: look for Xid errors in dmesg, then restart the machine.",
        "nvml_crashed": "NVML crashes: reinstall the driver's libraries in the kernel driver's version.",
    }
    in_container = {
        "no_driver": f"{container.repair_without_gpus} Or run on the CPU with --device cpu.",
        "driver_not_loaded": container.repair_without_gpus,
        "nvml_no_permission": NOT_OPEN,
    }
    if container.is_container:
        repairs |= in_container
    return repairs.get(fault, "Repair the driver until nvidia-smi works; look for NVRM and Xid lines in dmesg.")


def _library_repair(facts: DriverFacts, library: Library, container: Container) -> str:
    part = part_of(library.name)
    if library.file:
        return f"{library.file} is there without the link {library.name}: run ldconfig."
    if container.is_container and not facts.nodes:
        more = "" if container.gives(part) else f" Set {container.with_part(part)}, too."
        return container.repair_without_gpus + more
    return container.repair_of(part, library.name)
