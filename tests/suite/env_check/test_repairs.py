"""A repair follows from all facts: on about a thousand faulty machines, no check advises what is set already."""

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from suite.env_check import report as all_checks
from suite.env_check.container import Container
from suite.env_check.gpu.cuda import CudaFacts
from suite.env_check.gpu.driver import LIBRARIES, DriverFacts
from suite.env_check.gpu.nccl import PATHS, NcclFacts, PathTry, unset
from suite.env_check.graphics.devices import LoneDriver
from suite.env_check.graphics.frame import GraphicsFacts
from suite.env_check.graphics.manifests import LIBEGL, ManifestFacts
from suite.env_check.libraries import PACKAGES, Library, LibraryFacts
from suite.env_check.report import Machine
from suite.external.nvml.values import NvmlState
from tests.fixtures.machines.nvidia_gpus import (
    APPTAINER,
    CUDA_LIBRARY,
    DOCKER,
    HEALTHY,
    HOST,
    NODES,
    OPEN_MODULES,
    VERSION,
)  # fmt: skip

CONTAINERS: Final = (
    HOST,
    replace(HOST, is_wsl=True),
    DOCKER,
    replace(DOCKER, visible_devices="void"),
    replace(DOCKER, driver_capabilities="all"),
    replace(DOCKER, driver_capabilities="graphics,utility,compute"),
    APPTAINER,
)
NODES_SEEN: Final[tuple[tuple[tuple[str, ...], dict[str, str]], ...]] = (  # with those that do not open
    ((), {}),
    (NODES, {}),
    (NODES, dict.fromkeys(NODES, "EPERM")),
    (NODES, dict.fromkeys(NODES, "EACCES")),
    (NODES, {"/dev/nvidia0": "EIO"}),
    (NODES[1:], {}),  # without /dev/nvidia-uvm
)
STATES: Final = (
    replace(HEALTHY, gpus=tuple(replace(gpu, name="NVIDIA L40S", compute_capability="8.9") for gpu in HEALTHY.gpus)),
    replace(HEALTHY, gpus=()),
    replace(HEALTHY, gpus=(), num_gpus=0),
    NvmlState(fault="failed", message="Unknown Error"),
    NvmlState(fault="no_library", message="not found"),
    NvmlState(fault="version_mismatch", message="Driver/library version mismatch"),
)


def has(machine: Machine, library: str) -> bool:
    assert machine.graphics
    there = (*machine.libraries.libraries, *machine.graphics.vulkan_manifests.nvidia.values())
    return all(other.fault is None for other in there if other.name == library)


def in_docker(machine: Machine) -> bool:
    return machine.driver.container.is_container and not machine.driver.container.is_apptainer


# What a repair may say -> whether the machine has it already, or cannot have it.
ALREADY: Final[dict[str, Callable[[Machine], bool]]] = {
    "NVIDIA_DRIVER_CAPABILITIES": lambda m: not in_docker(m) or m.driver.container.gives("graphics"),
    "--gpus all": lambda m: not in_docker(m) or set(m.driver.nodes) == set(NODES),
    r"[Rr]ecreate (it|the container)|[Ss]tart the container|docker run": lambda m: not m.driver.container.is_container,
    "NVIDIA_VISIBLE_DEVICES": lambda m: m.driver.container.visible_devices != "void",
    "nvidia-modprobe -u": lambda m: "/dev/nvidia-uvm" in m.driver.nodes,
    "modprobe nvidia,": lambda m: m.driver.kernel_version is not None,
    "--ipc=host|--shm-size": lambda _: True,  # of every machine here, /dev/shm is large enough
    "(Unset|set) CUDA_VISIBLE_DEVICES": lambda m: bool(m.nvml.gpus) or not m.nvml.num_gpus,
    "need the open kernel": lambda m: m.driver.kernel_line == OPEN_MODULES,
    "Start the Fabric Manager": lambda m: {gpu.fabric for gpu in m.nvml.gpus} == {"completed"},
    "Windows|wsl --": lambda m: not m.driver.container.is_wsl,
    "Start with --nv": lambda m: not m.driver.container.is_apptainer,
    "NCCL_P2P_DISABLE=1": lambda m: "NCCL_P2P_DISABLE" in m.nccl.variables,
    "NCCL_SHM_DISABLE=1": lambda m: "NCCL_SHM_DISABLE" in m.nccl.variables,
    "NCCL_DEBUG=INFO": lambda m: "NCCL_DEBUG" in m.nccl.variables,
    **{f"install (--reinstall )?{package} ": partial(has, library=name) for name, package in PACKAGES.items()},
}


def machines(seen: Machine) -> Iterator[Machine]:
    host = replace(seen.host, shm_gb=64.0, shm_free_gb=64.0, nofile=65_536, rdma_devices=())
    seen = replace(seen, host=host)
    for container, (nodes, refusals), state in itertools.product(CONTAINERS, NODES_SEEN, STATES):
        if container.is_wsl and nodes:
            continue
        for loads, code in ((True, 802), (True, 999), (False, 100), (False, 804)):
            has_kernel = not container.is_wsl and (bool(nodes) or code == 999)
            yield replace(
                seen,
                driver=driver_facts(container, nodes, refusals, loads=loads, has_kernel=has_kernel),
                nvml=state,
                cuda=CudaFacts(message=f"cuInit returns {code}", code=code),
                nccl=nccl_facts(code),
                libraries=libraries_seen(seen.libraries, container, loads=loads),
                graphics=graphics_seen(seen.graphics, container, loads=loads),
            )


def driver_facts(
    container: Container, nodes: tuple[str, ...], refusals: dict[str, str], *, loads: bool, has_kernel: bool
) -> DriverFacts:
    folder = "/usr/lib/wsl/lib" if container.is_wsl else "/usr/lib/x86_64-linux-gnu"
    there = [replace(CUDA_LIBRARY, name=name, path=f"{folder}/{name}", file=None) for name in LIBRARIES]
    return DriverFacts(
        kernel_version=VERSION if has_kernel else None,
        kernel_line=OPEN_MODULES if loads else None,
        libraries=tuple(there if loads else (replace(library, path=None) for library in there)),
        nodes=nodes,
        num_pci_gpus=0 if container.is_wsl else 2,
        container=container,
        refusals=refusals,
    )


def nccl_facts(code: int) -> NcclFacts:
    """A try of NCCL with what the user turned off before: the last path, or nothing, is to blame."""
    variables = {"NCCL_P2P_DISABLE": "1", "NCCL_DEBUG": "INFO"} if code in (802, 804) else {}
    tries = tuple(
        PathTry(variables=path.variables, fault="nccl_error", message=None, wall_s=1.0, bus_bandwidth_gb_s=None)
        for path in PATHS
        if unset(path, variables)
    )
    works = replace(tries[-1], fault=None) if code in (802, 999) else tries[-1]
    return NcclFacts(
        python="python", fault="nccl_error", message="unhandled", tries=(*tries[:-1], works), variables=variables
    )


def library(name: str, *, is_there: bool) -> Library:
    if is_there:
        return Library(name=name, path=f"/lib/{name}", fault=None)
    return Library(name=name, path=None, fault="library_missing", missing=name)


def libraries_seen(seen: LibraryFacts, container: Container, *, loads: bool) -> LibraryFacts:
    """NVIDIA's driver with or without its libraries; libEGL is missing where they are."""
    libraries = tuple(library(loaded.name, is_there=loads == (loaded.name != LIBEGL)) for loaded in seen.libraries)
    return replace(seen, driver_version=VERSION, container=container, libraries=libraries)


def graphics_seen(seen: GraphicsFacts | None, container: Container, *, loads: bool) -> GraphicsFacts:
    """No manifest of NVIDIA's, and a driver that lists no device."""
    assert seen

    def manifests(read: ManifestFacts) -> ManifestFacts:
        nvidia = {name: library(name, is_there=loads == (name != LIBEGL)) for name in read.nvidia}
        return replace(read, manifests=(), variables={}, driver_version=VERSION, container=container, nvidia=nvidia)

    of_driver = LoneDriver(
        manifest="nvidia_icd.json", library="libGLX_nvidia.so.0", end="answered", signal=None, exit_code=0,
        stage="vkCreateInstance", missing="vkCreateInstance" if loads else None, num_devices=0,
    )  # fmt: skip
    return replace(
        seen,
        vulkan_manifests=manifests(seen.vulkan_manifests),
        egl_vendors=manifests(seen.egl_vendors),
        vulkan=replace(seen.vulkan, devices=(), drivers=(of_driver,)),
    )


def test_no_check_advises_what_is_set_already(this_machine: Machine) -> None:
    words, wrong = set(), set()
    for machine in machines(this_machine):
        for check in all_checks.checks_of(machine):
            words.add(check.fault)
            wrong |= {
                (check.name, check.fault, phrase)
                for phrase, is_set in ALREADY.items()
                if check.repair and re.search(phrase, check.repair) and is_set(machine)
            }
    assert wrong == set()
    assert {
        "capabilities_missing", "cuda_compat_not_supported", "cuda_system_not_ready", "cuda_unknown_error",
        "device_node_broken", "device_nodes_closed", "driver_function_missing", "driver_not_loaded",
        "gpus_hidden", "gpus_lost", "gpus_not_initialised", "library_missing", "nccl_nvls_broken",
        "nccl_error", "no_cuda_library", "no_denoiser_weights", "no_device_nodes", "no_driver", "no_manifest",
        "no_uvm_node", "version_mismatch",
    } <= words  # fmt: skip
