"""Lists every check of env_check, runs them, and makes the report that nodes and images send as JSON.

``look`` reads the machine; ``CHECKS`` gives the function that judges each part.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from suite.env_check import container, host, libraries, worker
from suite.env_check.check import Check, Declaration, ExitCode, Feature, Judgement
from suite.env_check.gpu import cuda, driver, gpus, nccl
from suite.env_check.gpu.cuda import CudaFacts
from suite.env_check.gpu.driver import DriverFacts, StackDrivers
from suite.env_check.gpu.nccl import NcclFacts
from suite.env_check.graphics import devices, frame, manifests
from suite.env_check.graphics.frame import GraphicsSeen, read_graphics
from suite.env_check.host import CoreFacts, HostFacts, LoadFacts
from suite.env_check.libraries import LibrariesSeen
from suite.env_check.request import Needs, Request, needs, unproved, weigh
from suite.env_check.worker import AssetFacts, KernelFacts, WorkerFacts
from suite.external.nvml.values import NvmlState
from suite.files.cache import cache_root
from suite.files.paths import ROOT
from suite.install import worker as provision
from suite.records.redaction import public
from suite.schema.record import CheckResult, Device, Stack

RENDERING: Final[frozenset[Feature]] = frozenset({"egl", "vulkan", "rt-cores"})


@dataclass(frozen=True, kw_only=True)
class Machine:
    """All facts that were read, before any is judged."""

    stack: Stack  # the one to run
    driver: DriverFacts
    nvml: NvmlState
    cuda: CudaFacts
    libraries: LibrariesSeen
    graphics: GraphicsSeen | None  # None: nothing is to be rendered, and no more was asked for
    nccl: NcclFacts
    host: HostFacts
    load: LoadFacts
    cores: CoreFacts
    worker: WorkerFacts
    assets: AssetFacts
    kernels: KernelFacts

    @property
    def num_gpus(self) -> int:
        return len(self.nvml.gpus)

    @property
    def driver_version(self) -> str | None:
        return driver.kernel_version(self.driver, self.nvml)

    @property
    def drivers(self) -> StackDrivers:
        """Return the drivers that the stack supports, for the installed release of Isaac Sim."""
        return driver.drivers_for(self.stack, driver.read_drivers(), release=self.worker.isaac_sim)

    @property
    def cuda_libraries(self) -> tuple[str, ...]:
        """Return the names of the driver's libraries for CUDA and NVML that are there."""
        return tuple(name for name in (driver.CUDA, driver.NVML) if self.driver.library(name).path)

    @property
    def graphics_libraries(self) -> tuple[str, ...]:
        """Return the names of the driver's libraries for rendering that load."""
        return tuple(library.name for library in self.libraries.named(*driver.GRAPHICS) if not library.fault)

    @property
    def uuids(self) -> tuple[str, ...]:
        """Return the UUID of each GPU, in CUDA order; empty unless all are known."""
        uuids = tuple(gpu.uuid or "" for gpu in self.nvml.gpus)
        return uuids if all(uuids) else ()

    @property
    def cache_needed_gb(self) -> float:
        is_installed = self.worker.exists and self.worker.is_complete
        return host.KERNEL_CACHE_GB if is_installed else provision.INSTALL_DISK_GB


@dataclass(frozen=True)
class Row:
    """A declared check, and the judgement of a machine; None if the facts that it looks at were not read."""

    name: str
    feature: Feature
    judge: Callable[[Machine], Judgement | None]


def _row[*Facts](declared: Declaration[*Facts], facts: Callable[[Machine], tuple[*Facts] | None]) -> Row:
    def judge(machine: Machine) -> Judgement | None:
        read = facts(machine)
        return None if read is None else declared.judge(*read)

    return Row(declared.name, declared.feature, judge)


def _of_host(declared: Declaration[HostFacts]) -> Row:
    return _row(declared, lambda m: (m.host,))


def _of_gpus(declared: Declaration[NvmlState] | gpus.EachGpu) -> Row:
    return Row(declared.name, declared.feature, lambda m: declared.judge(m.nvml))


def _of_libraries(declared: Declaration[LibrariesSeen]) -> Row:
    return _row(declared, lambda m: (m.libraries,))


def _rendered[*Facts](declared: Declaration[*Facts], facts: Callable[[Machine, GraphicsSeen], tuple[*Facts]]) -> Row:
    return _row(declared, lambda m: facts(m, m.graphics) if m.graphics else None)


# What each check looks at, in the order in which a person would repair them.
CHECKS: Final = (
    _of_host(host.judge_libc),
    _of_host(host.judge_nofile),
    _row(host.judge_cache_disk, lambda m: (m.host, m.cache_needed_gb)),
    _row(worker.judge_worker_packages, lambda m: (m.worker,)),
    _row(worker.judge_asset_root, lambda m: (m.assets,)),
    _row(worker.judge_kernel_cache, lambda m: (m.kernels,)),
    _row(gpus.judge_gpus_present, lambda m: (m.nvml, m.driver)),
    _row(driver.judge_driver_versions, lambda m: (m.driver, m.nvml)),
    _row(driver.judge_device_nodes, lambda m: (m.driver,)),
    _row(cuda.judge_cuda_start, lambda m: (m.cuda, m.driver, m.nvml)),
    _row(driver.judge_driver_for_stack, lambda m: (m.driver_version, m.drivers)),
    _row(container.judge_compute_capabilities, lambda m: (m.driver.container, m.driver_version, m.cuda_libraries)),
    _row(gpus.judge_compute_capability, lambda m: (m.nvml, m.drivers.minimum_compute_capability)),
    _row(cuda.judge_cuda_graphs, lambda m: (m.cuda,)),
    _of_gpus(gpus.judge_mig),
    *map(_of_gpus, gpus.SETTINGS),
    _of_host(host.judge_cpu_governor),
    _row(host.judge_cores_per_gpu, lambda m: (m.host, m.num_gpus)),
    _row(host.judge_cpu_load, lambda m: (m.load,)),
    _row(host.judge_core_speed, lambda m: (m.cores,)),
    _of_gpus(gpus.judge_gpus_alike),
    _of_gpus(gpus.judge_gpu_links),
    _of_gpus(gpus.FABRIC),
    _of_host(host.judge_shared_memory),
    _of_host(host.judge_memlock),
    _row(nccl.judge_nccl_all_reduce, lambda m: (m.nccl, m.num_gpus, host.judge_shared_memory(m.host).repair)),
    _row(
        container.judge_graphics_capabilities,
        lambda m: (m.driver.container, m.driver_version, m.graphics_libraries),
    ),
    _of_libraries(libraries.JUDGE_CUDA_DRIVER),
    _of_libraries(libraries.JUDGE_LIBGL),
    _of_libraries(libraries.JUDGE_EGL_LOADER),
    _of_libraries(libraries.judge_egl_driver),
    _rendered(manifests.JUDGE_EGL_VENDORS, lambda _, seen: (seen.egl_vendors,)),
    _rendered(devices.JUDGE_EGL_DEVICES, lambda m, seen: (seen.egl, seen.egl_vendors, m.driver, m.libraries, m.uuids)),
    _rendered(frame.judge_egl_frame, lambda _, seen: (seen.egl_frame,)),
    _of_libraries(libraries.JUDGE_VULKAN_LOADER),
    _of_libraries(libraries.JUDGE_VULKAN_DRIVER),
    _rendered(manifests.JUDGE_VULKAN_MANIFESTS, lambda _, seen: (seen.vulkan_manifests,)),
    _rendered(
        devices.JUDGE_VULKAN_DEVICES,
        lambda m, seen: (seen.vulkan, seen.vulkan_manifests, m.driver, m.libraries, m.uuids),
    ),
    _rendered(frame.judge_vulkan_frame, lambda _, seen: (seen.vulkan_frame,)),
    _rendered(devices.judge_ray_tracing, lambda _, seen: (seen.vulkan,)),
    _of_host(host.judge_xdg_runtime_dir),
    _row(gpus.judge_rt_cores, lambda m: (m.nvml, gpus.read_table())),
    _row(gpus.judge_denoiser, lambda m: (m.driver, m.nvml, gpus.read_table())),
)


def judge(machine: Machine) -> tuple[Check, ...]:
    judged = ((row, row.judge(machine)) for row in CHECKS)
    return tuple(Check(name=row.name, feature=row.feature, **vars(judgement)) for row, judgement in judged if judgement)


def look(request: Request, environ: Mapping[str, str]) -> Machine:
    """Read the whole machine. Slow readers run in parallel with the rest, in processes of their own."""
    located = provision.locate_worker(
        project_root=ROOT,
        stack=request.stack,
        worker_python=request.worker_python,
        worker_packages=request.worker_packages,
    )
    load = host.read_load()
    has_gpu = _has_device_node()
    cores = host.read_cores(environ, has_gpu=has_gpu)  # runs alone: other readers would slow the cores
    with ThreadPoolExecutor() as pool:
        nvml = pool.submit(gpus.read_nvml, environ)
        cuda_facts = pool.submit(cuda.read_cuda, environ) if has_gpu else None
        nccl_facts = pool.submit(_read_nccl, located.python, environ, nvml)
        worker_facts = pool.submit(
            worker.read_worker,
            located.python,
            is_own=request.worker_python is not None or request.stack == "isaacsim",
            pins_path=None if located.pins_sha256 is None else provision.worker_pins(ROOT, request.stack),
            needed=provision.NEEDED[request.stack],
            environ=environ,
            also=request.other_workers,
        )
        own_assets = environ.get("ISAACSIM_ASSET_ROOT")
        assets = pool.submit(worker.read_assets, own_assets or located.asset_root, is_own=own_assets is not None)
        driver_facts = driver.read_driver(environ)
        version = driver.kernel_version(driver_facts, nvml.result())
        loaded = pool.submit(libraries.read_driver_libraries, environ, driver_version=version)
        device = request.device or default_device(request.stack, nvml.result(), driver_facts)
        renders = request.everything or RENDERING & needed_by(request, device, nvml.result()).features
        return Machine(
            stack=request.stack,
            driver=driver_facts,
            nvml=nvml.result(),
            cuda=cuda_facts.result() if cuda_facts else CudaFacts(message=cuda.NO_GPU),
            graphics=read_graphics(environ, driver_version=version) if renders else None,
            libraries=loaded.result(),
            nccl=nccl_facts.result(),
            host=host.read_host(environ, cache_dir=cache_root()),
            load=load,
            cores=cores,
            worker=worker_facts.result(),
            assets=assets.result(),
            kernels=worker.read_kernels(located.cache_dir),
        )


def _read_nccl(python: Path, environ: Mapping[str, str], nvml: Future[NvmlState]) -> NcclFacts:
    """Start torch only if a device node exists. With several GPUs, repeat a failed run without each suspect path."""
    if not _has_device_node():
        return NcclFacts(python=str(python), fault="no_cuda", message="no GPU")
    facts = nccl.read_nccl(python, environ=environ)
    return nccl.try_paths(facts, environ=environ) if len(nvml.result().gpus) > 1 else facts


def _has_device_node() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


def default_device(stack: Stack, nvml: NvmlState, facts: DriverFacts) -> Device:
    """Return cuda even if a driver or GPU is broken: a silent fallback to the CPU would hide the fault."""
    has_gpu = bool(nvml.num_gpus or facts.kernel_version or facts.num_pci_gpus)
    return "cuda" if has_gpu or stack != "kitless" else "cpu"


def needed_by(request: Request, device: Device, nvml: NvmlState) -> Needs:
    return needs(request.stack, device=device, num_gpus=len(nvml.gpus), require=request.require)


@dataclass(frozen=True, kw_only=True)
class Report:
    host: str
    stack: Stack
    device: Device
    needs: Needs
    checks: tuple[Check, ...]
    duration_s: float

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.verdict == "failure")

    @property
    def warnings(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.verdict == "warning")

    @property
    def unproved(self) -> tuple[Check, ...]:
        return unproved(self.checks, self.needs)

    @property
    def exit_code(self) -> ExitCode:
        return 2 if self.failures else 1 if self.warnings or self.unproved else 0

    def as_document(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "stack": self.stack,
            "device": self.device,
            "needed": sorted(self.needs.names),
            "exit_code": self.exit_code,
            "duration_s": round(self.duration_s, 3),
            "checks": [asdict(check) for check in self.checks],
        }

    def as_json(self) -> str:
        return json.dumps(self.as_document(), indent=1, allow_nan=False)


def env_check(request: Request, environ: Mapping[str, str] = os.environ) -> Report:
    """Check this machine for a stack. This takes 1 to 2 s; GPUs and an installed worker add some seconds."""
    start_s = time.monotonic()
    machine = look(request, environ)
    device = request.device or default_device(machine.stack, machine.nvml, machine.driver)
    needed = needed_by(request, device, machine.nvml)
    return Report(
        host=platform.node(),
        stack=request.stack,
        device=device,
        needs=needed,
        checks=tuple(weigh(check, needed) for check in judge(machine)),
        duration_s=time.monotonic() - start_s,
    )


@dataclass(frozen=True, kw_only=True)
class _Document:
    """The output of ``as_document``; evidence is plain JSON."""

    host: str
    stack: Stack
    device: Device
    needed: frozenset[str]
    exit_code: ExitCode
    duration_s: float
    checks: tuple[Check, ...]


def read_report(text: str) -> Report:
    """Read a report that was printed with ``as_json`` on another node or in an image.

    Raises:
        ValueError: the text is no report; the message says why in one line.
    """
    if not text.strip():
        raise ValueError("the report is empty")
    try:
        sent = TypeAdapter(_Document).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise ValueError(f"not a report of env_check: {where}: {first['msg']}") from None
    return Report(
        host=sent.host,
        stack=sent.stack,
        device=sent.device,
        needs=Needs.of(sent.needed),
        checks=sent.checks,
        duration_s=sent.duration_s,
    )


def summarised(report: Report) -> tuple[CheckResult, ...]:
    """Return every check as records store it: without evidence, and with paths and host names redacted."""
    return tuple(
        CheckResult(
            name=check.name, feature=check.feature, verdict=check.verdict, found=public(check.found), fault=check.fault
        )
        for check in report.checks
    )
