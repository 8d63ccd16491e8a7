"""Checks the NVIDIA driver: its kernel module, libraries and device nodes, and whether the stack supports its version.

This module reads files; a child process opens the device nodes, and ``suite.env_check.gpu.gpus`` asks NVML in another.
``drivers.toml`` lists the drivers and GPUs that each stack runs on.
"""

import functools
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from suite.env_check.check import Fault, Judgement, Subject, parts
from suite.env_check.container import Container, read_container
from suite.env_check.libraries import SearchPath, is_compat, part_of, read_search_path, version_of
from suite.env_check.probes.run import run_probe
from suite.external.nvml.values import NvmlFault, NvmlState
from suite.files.toml_file import NonEmptyTuple, TomlTable, Tuple, read_toml
from suite.schema.record import Stack

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
ON_WINDOWS: Final = "Update NVIDIA's driver on Windows, then run wsl --update and wsl --shutdown there."

_KERNEL_VERSION: Final = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)")
_NVIDIA_VENDOR: Final = "0x10de"
_DISPLAY_CLASS: Final = "0x03"
_PASSED_ON: Final = "vfio-pci"  # the driver of a GPU that a virtual machine has
_OPEN_TIMEOUT_S: Final = 30.0  # the first open on an idle machine initialises a GPU, which takes seconds
PERMISSION: Final = ("EPERM", "EACCES")
NVOPTIX: Final = "usr/share/nvidia/nvoptix.bin"
CONTROL_NODE: Final = "/dev/nvidiactl"
UVM_NODE: Final = "/dev/nvidia-uvm"
RELOAD_UVM: Final = "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"
DRIVERS_PATH: Final = Path(__file__).with_name("drivers.toml")

type Version = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)*$")]
type Text = Annotated[str, StringConstraints(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class DriverLibrary:
    """One library of the driver's userspace part."""

    name: str  # as programs load it
    path: str | None  # None: no searched folder contains it
    file: str | None  # name of the file that the path links to: "libcuda.so.580.65.06"
    version: str | None  # read from the name in ``file``
    is_compat: bool = False  # see ``suite.env_check.libraries``


@dataclass(frozen=True, kw_only=True)
class DriverFacts:
    kernel_version: str | None  # from /proc/driver/nvidia/version
    kernel_line: str | None  # its first line
    libraries: tuple[DriverLibrary, ...]  # one for each of LIBRARIES
    nodes: tuple[str, ...]  # /dev/nvidia*
    num_pci_gpus: int  # NVIDIA GPUs on the PCI bus that no virtual machine has, with or without a driver
    container: Container
    refusals: Mapping[str, str] = field(default_factory=dict)  # node that does not open -> "EPERM", …, or "hung"
    has_nvoptix: bool = False  # the weights of OptiX' denoiser are there

    def library(self, name: str) -> DriverLibrary:
        return next(library for library in self.libraries if library.name == name)

    @property
    def gpu_nodes(self) -> tuple[str, ...]:
        return tuple(node for node in self.nodes if node.removeprefix("/dev/nvidia").isdecimal())

    @property
    def num_own_gpus(self) -> int:
        """Count the GPUs that are for this process: a container has fewer nodes, and a job may open fewer."""
        denied = sum(self.refusals.get(node) in PERMISSION for node in self.gpu_nodes)
        visible = min(self.num_pci_gpus, len(self.gpu_nodes)) if self.container.is_container else self.num_pci_gpus
        return max(visible - denied, 0)

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


def read_driver(environ: Mapping[str, str], root: Path = Path("/"), search: SearchPath | None = None) -> DriverFacts:
    """Read /proc, /dev and /sys below ``root``, and search for libraries in ``search``.

    Default of ``search``: the folders and the cache that this machine's dynamic loader uses.
    """
    search = search or read_search_path(environ)
    version_file = root / "proc/driver/nvidia/version"
    line = version_file.read_text(encoding="utf-8").partition("\n")[0] if version_file.exists() else None
    match = _KERNEL_VERSION.search(line or "")
    nodes = sorted(path for path in (root / "dev").glob("nvidia*") if not path.is_dir())
    libraries = tuple(_find(name, search, match[1] if match else None) for name in LIBRARIES)
    container = read_container(environ, root)
    is_wsl = container.is_wsl or any("wsl" in Path(library.path or "").parts for library in libraries)
    return DriverFacts(
        kernel_version=match[1] if match else None,
        kernel_line=line,
        libraries=libraries,
        nodes=tuple(f"/dev/{path.name}" for path in nodes),
        num_pci_gpus=sum(_is_nvidia_gpu(device) for device in (root / "sys/bus/pci/devices").glob("*")),
        container=replace(container, is_wsl=is_wsl),  # whose mark a container may hide
        refusals=_refusals(nodes, environ),
        has_nvoptix=(root / NVOPTIX).exists(),
    )


def _refusals(nodes: list[Path], environ: Mapping[str, str]) -> dict[str, str]:
    """Open each node, as CUDA does, and return node -> why not; permissions do not show what a cgroup denies."""
    if not nodes:
        return {}
    run = run_probe("machine", "nodes", *map(str, nodes), environ=environ, timeout_s=_OPEN_TIMEOUT_S)
    unanswered = run.end if run.end in ("hung", "died") else None
    return {f"/dev/{path.name}": why for path in nodes if (why := run.answer.get(str(path), unanswered))}


def _find(name: str, search: SearchPath, driver_version: str | None) -> DriverLibrary:
    if elf := search.find(name):
        file = Path(elf.path).resolve()
        version, compat = version_of(file.name), is_compat(file)
        return DriverLibrary(name=name, path=elf.path, file=file.name, version=version, is_compat=compat)
    without_link = search.find(f"{name.rpartition('.')[0]}.{driver_version}") if driver_version else None
    file_name = Path(without_link.path).name if without_link else None
    return DriverLibrary(name=name, path=None, file=file_name, version=None)


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
    subject = Subject(
        "kernel driver, libcuda and libnvidia-ml of one version",
        {
            "kernel_version": kernel,
            "nvml_version": nvml.nvml_version,
            "nvml_message": nvml.message,
            "libraries": facts.libraries,
            "kernel_line": facts.kernel_line,
            "num_pci_gpus": facts.num_pci_gpus,
        },
    )
    versions = {
        "kernel": kernel,
        CUDA: cuda.version or cuda.path,
        NVML: management.version or management.path,
        "NVML": nvml.nvml_version or nvml.message,
    }
    found = ", ".join(f"{what} {value or 'missing'}" for what, value in versions.items())
    if (fault := _versions_fault(facts, nvml)) is None:
        return subject.ok(found)
    word, repair = fault
    return subject.failure(word, "no NVIDIA driver" if word == "no_driver" else found, repair)


def _versions_fault(facts: DriverFacts, nvml: NvmlState) -> tuple[str, str] | None:
    """Return the fault's word and its repair."""
    kernel, cuda, management = kernel_version(facts, nvml), facts.library(CUDA), facts.library(NVML)
    container = facts.container
    if kernel is None and not facts.nodes and not container.is_wsl:
        return _no_kernel_driver(facts)
    if container.is_container and facts.gpu_nodes and _is_lost(facts, nvml):
        return "gpus_lost", ON_WINDOWS if container.is_wsl else LOST
    versions = {cuda.version if not cuda.is_compat else None, management.version} - {None}
    if not container.is_wsl:  # there the driver is that of Windows, and its libraries have no version in their names
        versions |= {kernel, nvml.nvml_version} - {None}
    if nvml.fault == "version_mismatch" or len(versions) > (0 if container.is_wsl else 1):
        return "version_mismatch", container.repair_of_mismatch(f"{CUDA} or {NVML}")
    if cuda.path is None:
        return "no_cuda_library", _library_repair(facts, cuda)
    if nvml.fault is None:
        return None
    return _nvml_fault(facts, nvml.fault)


def _nvml_fault(facts: DriverFacts, fault: NvmlFault) -> tuple[str, str]:
    management, container = facts.library(NVML), facts.container
    if management.path is None:  # NVML may find the library where this search does not
        return "no_nvml_library", _library_repair(facts, management)
    refused = NOT_OPEN if container.is_container else "Add this user to the group that owns /dev/nvidia*."
    repairs = {
        "nvml_no_permission": refused,
        "nvml_hung": "NVML hangs: look for Xid errors in dmesg, then restart the machine.",
        "nvml_crashed": "NVML crashes: reinstall the driver's libraries in the kernel driver's version.",
    }
    other = "Repair the driver until nvidia-smi works; look for NVRM and Xid lines in dmesg."
    word = f"nvml_{fault}"  # nvml_failed and nvml_no_driver too
    return word, ON_WINDOWS if container.is_wsl else repairs.get(word, other)


def _no_kernel_driver(facts: DriverFacts) -> tuple[str, str]:
    give_gpus = facts.container.repair_without_gpus if facts.container.is_container else None
    if any(library.path for library in facts.libraries):
        load = "Load it: sudo modprobe nvidia, and if that fails see dmesg (Secure Boot, new kernel)."
        return "driver_not_loaded", give_gpus or load
    if give_gpus:
        return "no_driver", f"{give_gpus} Or run on the CPU with --device cpu."
    if facts.num_pci_gpus:
        return "no_driver", f"{facts.num_pci_gpus} NVIDIA GPU(s) on the bus have no driver: install it, then restart."
    return "no_driver", "No NVIDIA GPU is on the bus: run on the CPU with --device cpu, or use a machine with one."


def _is_lost(facts: DriverFacts, nvml: NvmlState) -> bool:
    """Return whether a container's nodes no longer work: a reload of systemd on the host takes them away."""
    return nvml.fault is not None and (
        "EPERM" in facts.refusals.values() or "unknown error" in (nvml.message or "").lower()
    )


def _library_repair(facts: DriverFacts, library: DriverLibrary) -> str:
    part, container = part_of(library.name), facts.container
    if library.file:
        return f"{library.file} is there without the link {library.name}: run ldconfig."
    if container.is_container and not facts.nodes:
        more = "" if container.gives(part) else f" Set {container.with_part(part)}, too."
        return container.repair_without_gpus + more
    return container.repair_of(part, library.name)


def judge_device_nodes(facts: DriverFacts) -> Judgement:
    """Check that the device nodes CUDA needs exist, and that this user may open them."""
    subject = Subject(
        f"/dev/nvidia<number>, {CONTROL_NODE} and {UVM_NODE}, to read and write",
        {"nodes": facts.nodes, "closed_nodes": tuple(facts.refusals)},
    )
    if facts.container.is_wsl:
        return subject.ok("WSL 2, which has /dev/dxg in place of them")
    if facts.kernel_version is None and not facts.nodes:
        return subject.not_checked("no driver")
    if fault := _missing_node(facts) or _closed_node(facts):
        return subject.faulty(fault)
    opened = len(set(facts.gpu_nodes) - set(facts.refusals))
    of_all = f" of {len(facts.gpu_nodes)}" if opened < len(facts.gpu_nodes) else ""
    return subject.ok(f"{opened}{of_all} GPU(s), {CONTROL_NODE}, {UVM_NODE}")


def _missing_node(facts: DriverFacts) -> Fault | None:
    container = facts.container
    if not facts.gpu_nodes or CONTROL_NODE not in facts.nodes:
        on_host = "Run sudo nvidia-modprobe -c 0 (or nvidia-smi once as root), which creates them."
        repair = container.repair_without_gpus if container.is_container else on_host
        return Fault(word="no_device_nodes", found=", ".join(facts.nodes) or "none", repair=repair)
    if UVM_NODE in facts.nodes:
        return None
    then = ", on the host; then recreate the container" if container.is_container else ""
    return Fault(
        word="no_uvm_node",
        found=f"{len(facts.gpu_nodes)} GPU(s), but no {UVM_NODE}: CUDA does not start",
        repair=f"Run sudo nvidia-modprobe -u -c 0{then}.",
    )


def _closed_node(facts: DriverFacts) -> Fault | None:
    """Return the fault of nodes that do not open. A scheduler may open only the nodes of a job's own GPUs."""
    why = facts.refusals
    none_open = set(facts.gpu_nodes) <= set(why)
    needed = [node for node in why if node in (CONTROL_NODE, UVM_NODE) or (none_open and node in facts.gpu_nodes)]
    broken = [node for node in why if why[node] not in PERMISSION and node in (*facts.gpu_nodes, UVM_NODE)]
    is_docker = facts.container.is_container and not facts.container.is_apptainer
    lost = [node for node in why if why[node] == "EPERM" and is_docker and node in facts.gpu_nodes]
    found = ", ".join(f"{node} ({why[node]})" for node in needed or broken or lost)
    severity: Literal["failure", "warning"] = "failure" if needed else "warning"
    if broken:
        repair = f"Run {RELOAD_UVM} on the host." if UVM_NODE in broken else facts.repair_of_dead_gpu
        return Fault(word="device_node_broken", found=f"does not open: {found}", repair=repair, verdict=severity)
    if not needed and not lost:
        return None
    words = {why[node] for node in needed or lost}
    if "EPERM" in words and facts.container.is_container:
        return Fault(word="gpus_lost", found=f"the container may not open {found}", repair=LOST, verdict=severity)
    found = f"this user may not open {found}"
    return Fault(word="device_nodes_closed", found=found, repair=_closed_repair(words, facts))


def _closed_repair(words: Collection[str], facts: DriverFacts) -> str:
    if "EPERM" in words:
        return "A cgroup denies them, as a scheduler does to a job without GPUs: ask for GPUs (Slurm: --gpus)."
    if facts.container.is_container:
        return NOT_OPEN
    return "Add this user to the group that owns them (ls -l /dev/nvidia*)."


class SourcedVersion(TomlTable):
    version: Version
    source: Text


class KnownBad(TomlTable):
    """A range of drivers with a known bug: ``from`` belongs to it, ``below`` does not."""

    first: Version = Field(alias="from")
    below: Version
    what: Text
    source: Text

    def includes(self, version: str) -> bool:
        return parts(self.first) <= parts(version) < parts(self.below)


class StackDrivers(TomlTable):
    """The drivers and GPUs of one stack, or of one release of it."""

    name: Stack
    release: Version | None = None
    minimum: SourcedVersion
    validated: Tuple[SourcedVersion] = ()
    known_bad: Tuple[KnownBad] = ()
    minimum_compute_capability: SourcedVersion

    @property
    def title(self) -> str:
        return self.name if self.release is None else f"{self.name} {self.release}"


class _Document(TomlTable):
    stack: NonEmptyTuple[StackDrivers]


@functools.cache
def read_drivers() -> tuple[StackDrivers, ...]:
    return read_toml(DRIVERS_PATH).validate(_Document).stack


def drivers_for(stack: Stack, *, release: str | None = None) -> StackDrivers:
    """Return the stack's entry whose release ``release`` ("6.0.1") belongs to; without one, its first entry."""
    entries = [entry for entry in read_drivers() if entry.name == stack]
    fitting = [
        entry
        for entry in entries
        if release and entry.release and parts(release)[: len(parts(entry.release))] == parts(entry.release)
    ]
    return (fitting or entries)[0]


def judge_driver_for_stack(driver_version: str | None, drivers: StackDrivers) -> Judgement:
    """Compare the kernel driver's version with the versions that the stack needs."""
    bad = next((bad for bad in drivers.known_bad if driver_version and bad.includes(driver_version)), None)
    known_bad = f"{bad.what} ({bad.source})" if bad else None
    minimum, validated = drivers.minimum, [entry.version for entry in drivers.validated]
    subject = Subject(
        f"{minimum.version} or newer for {drivers.title}"
        + (f", validated with {', '.join(validated)}" if validated else ""),
        {
            "stack": drivers.title,
            "driver_version": driver_version,
            "minimum": minimum.version,
            "minimum_source": minimum.source,
            "validated": validated,
            "known_bad": known_bad,
            "validated_sources": [entry.source for entry in drivers.validated],
        },
    )
    if driver_version is None:
        return subject.not_checked("no driver")
    best = validated[0] if validated else f"{minimum.version} or newer"
    install = f"nstall driver {best}, on the host if this is a container."
    found = f"driver {driver_version}"
    if bad:
        return subject.failure("driver_known_bad", f"{found}: {known_bad}", f"I{install}")
    if parts(driver_version) < parts(minimum.version):
        return subject.failure("driver_too_old", found, f"I{install}")
    # A newer driver is normally fine. A stack that a newer driver broke before gets a warning.
    newest = max((parts(version)[0] for version in validated), default=None)
    if newest is not None and drivers.known_bad and parts(driver_version)[0] > newest:
        return subject.warning("driver_not_validated", found, f"If it crashes, i{install}")
    return subject.ok(found)
