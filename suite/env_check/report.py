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
from suite.env_check.check import Check, ExitCode, Feature, Judgement
from suite.env_check.container import Part
from suite.env_check.gpu import cuda, driver, gpus, nccl
from suite.env_check.gpu.cuda import CudaFacts
from suite.env_check.gpu.driver import DriverFacts, StackDrivers
from suite.env_check.gpu.nccl import NcclFacts
from suite.env_check.graphics import devices, frame, manifests
from suite.env_check.graphics.frame import GraphicsFacts, read_graphics
from suite.env_check.host import CoreFacts, HostFacts, LoadFacts
from suite.env_check.libraries import LibraryFacts
from suite.env_check.request import Request, needs, unproved, weigh
from suite.env_check.worker import AssetFacts, KernelFacts, WorkerFacts
from suite.external.nvml.values import NvmlState
from suite.files.cache import cache_root
from suite.install import worker as provision
from suite.options.options import Setup
from suite.records.redaction import public
from suite.schema.record import CheckResult, Device, Stack

RENDERING: Final[frozenset[Feature]] = frozenset({"egl", "vulkan", "rt-cores"})


@dataclass(frozen=True, kw_only=True)
class Machine:
    """All facts that were read, before any is judged."""

    stack: Stack  # the one to run, on ``device``
    device: Device
    needed: frozenset[str]  # features, and single checks of others
    driver: DriverFacts
    nvml: NvmlState
    cuda: CudaFacts
    libraries: LibraryFacts
    graphics: GraphicsFacts | None  # None: nothing is to be rendered, and no more was asked for
    nccl: NcclFacts
    host: HostFacts
    load: LoadFacts
    cores: CoreFacts
    worker: WorkerFacts
    assets: AssetFacts
    kernels: KernelFacts

    @property
    def driver_version(self) -> str | None:
        return driver.kernel_version(self.driver, self.nvml)

    @property
    def drivers(self) -> StackDrivers:
        """Return the drivers that the stack supports, for the installed release of Isaac Sim."""
        return driver.drivers_for(self.stack, release=self.worker.isaac_sim)

    def judge_capabilities(self, *wanted: Part) -> Judgement:
        """Judge what a container requests, and which of the driver's libraries of these parts are there anyway."""
        if "graphics" in wanted:
            there = [library.name for library in self.libraries.named(*driver.GRAPHICS) if not library.fault]
        else:
            there = [name for name in (driver.CUDA, driver.NVML) if self.driver.library(name).path]
        return container.judge_capabilities(self.driver.container, wanted, self.driver_version, tuple(there))

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
    """A check: its name in reports, its feature, and its judgement; None if the facts for it were not read."""

    name: str
    feature: Feature
    judge: Callable[[Machine], Judgement | None]


def _of_gpus(check: gpus.GpuCheck) -> Row:
    return Row(check.name, check.feature, lambda m: check.judge(m.nvml))


def _rendered(name: str, feature: Feature, judge: Callable[[Machine, GraphicsFacts], Judgement]) -> Row:
    return Row(name, feature, lambda m: judge(m, m.graphics) if m.graphics else None)


# Every check, in the order in which a person would repair them.
CHECKS: Final = (
    Row("libc", "host", lambda m: host.judge_libc(m.host)),
    Row("nofile", "host", lambda m: host.judge_nofile(m.host)),
    Row("cache_disk", "host", lambda m: host.judge_cache_disk(m.host, m.cache_needed_gb)),
    Row("worker_packages", "worker", lambda m: worker.judge_worker_packages(m.worker)),
    Row("asset_root", "worker", lambda m: worker.judge_asset_root(m.assets)),
    Row("kernel_cache", "worker", lambda m: worker.judge_kernel_cache(m.kernels)),
    Row("gpus_present", "cuda", lambda m: gpus.judge_gpus_present(m.nvml, m.driver)),
    Row("driver_versions", "cuda", lambda m: driver.judge_driver_versions(m.driver, m.nvml)),
    Row("device_nodes", "cuda", lambda m: driver.judge_device_nodes(m.driver)),
    Row("cuda_start", "cuda", lambda m: cuda.judge_cuda_start(m.cuda, m.driver, m.nvml)),
    Row("driver_for_stack", "cuda", lambda m: driver.judge_driver_for_stack(m.driver_version, m.drivers)),
    Row("driver_capabilities_compute", "cuda", lambda m: m.judge_capabilities("compute", "utility")),
    Row("compute_capability", "cuda", lambda m: gpus.judge_compute_capability(m.nvml, m.drivers)),
    Row("cuda_graphs", "cuda-graphs", lambda m: cuda.judge_cuda_graphs(m.cuda)),
    Row("mig", "cuda", lambda m: gpus.judge_mig(m.nvml)),
    *map(_of_gpus, gpus.SETTINGS),
    Row("cpu_governor", "cuda", lambda m: host.judge_cpu_governor(m.host)),
    Row("cores_per_gpu", "cuda", lambda m: host.judge_cores_per_gpu(m.host, len(m.nvml.gpus))),
    Row("cpu_load", "host", lambda m: host.judge_cpu_load(m.load)),
    Row("core_speed", "cuda", lambda m: host.judge_core_speed(m.cores)),
    Row("gpus_alike", "nccl", lambda m: gpus.judge_gpus_alike(m.nvml)),
    Row("gpu_links", "nccl", lambda m: gpus.judge_gpu_links(m.nvml)),
    _of_gpus(gpus.FABRIC),
    Row("shared_memory", "nccl", lambda m: host.judge_shared_memory(m.host)),
    Row("memlock", "nccl", lambda m: host.judge_memlock(m.host)),
    Row(
        "nccl_all_reduce",
        "nccl",
        lambda m: nccl.judge_nccl_all_reduce(m.nccl, len(m.nvml.gpus), host.judge_shared_memory(m.host).repair),
    ),
    Row("driver_capabilities", "vulkan", lambda m: m.judge_capabilities("graphics")),
    Row("cuda_driver", "cuda", lambda m: libraries.judge_driver_libraries(m.libraries, libraries.CUDA_DRIVER)),
    Row("libgl", "egl", lambda m: libraries.judge_libraries(m.libraries, libraries.LIBGL)),
    Row("egl_loader", "egl", lambda m: libraries.judge_libraries(m.libraries, libraries.EGL_LOADER)),
    Row(
        "egl_driver",
        "egl",
        lambda m: libraries.judge_driver_libraries(m.libraries, libraries.egl_driver(m.libraries.driver_version)),
    ),
    _rendered("egl_vendors", "egl", lambda _, read: manifests.judge_manifests(read.egl_vendors)),
    _rendered(
        "egl_devices",
        "egl",
        lambda m, read: devices.judge_devices(read.egl, read.egl_vendors, m.driver, m.libraries, m.uuids),
    ),
    _rendered("egl_frame", "egl", lambda _, read: frame.judge_frame(read.egl_frame, "EGL")),
    Row("vulkan_loader", "vulkan", lambda m: libraries.judge_libraries(m.libraries, libraries.VULKAN_LOADER)),
    Row("vulkan_driver", "vulkan", lambda m: libraries.judge_driver_libraries(m.libraries, libraries.VULKAN_DRIVER)),
    _rendered("vulkan_manifests", "vulkan", lambda _, read: manifests.judge_manifests(read.vulkan_manifests)),
    _rendered(
        "vulkan_devices",
        "vulkan",
        lambda m, read: devices.judge_devices(read.vulkan, read.vulkan_manifests, m.driver, m.libraries, m.uuids),
    ),
    _rendered("vulkan_frame", "vulkan", lambda _, read: frame.judge_frame(read.vulkan_frame, "Vulkan")),
    _rendered("vulkan_ray_tracing", "rt-cores", lambda _, read: devices.judge_ray_tracing(read.vulkan)),
    Row("xdg_runtime_dir", "vulkan", lambda m: host.judge_xdg_runtime_dir(m.host)),
    Row("rt_cores", "rt-cores", lambda m: gpus.judge_rt_cores(m.nvml)),
    Row("denoiser", "rt-cores", lambda m: gpus.judge_denoiser(m.driver, m.nvml)),
)


def checks_of(machine: Machine) -> tuple[Check, ...]:
    judged = ((row, row.judge(machine)) for row in CHECKS)
    return tuple(Check(name=row.name, feature=row.feature, **vars(judgement)) for row, judgement in judged if judgement)


def look(request: Request, environ: Mapping[str, str]) -> Machine:
    """Read the whole machine. Slow readers run in parallel with the rest, in processes of their own."""
    setup = Setup(worker_python=request.worker_python, worker_packages=request.worker_packages)
    located = provision.locate_worker(stack=request.stack, setup=setup)
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
            pins_path=None if located.pins_sha256 is None else provision.worker_pins(request.stack),
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
        needed = needs(request.stack, device=device, num_gpus=len(nvml.result().gpus), require=request.require)
        renders = request.everything or RENDERING & needed
        return Machine(
            stack=request.stack,
            device=device,
            needed=needed,
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


@dataclass(frozen=True, kw_only=True)
class Report:
    host: str
    stack: Stack
    device: Device
    needed: frozenset[str]  # features, and single checks of others
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
        return unproved(self.checks, self.needed)

    @property
    def exit_code(self) -> ExitCode:
        return 2 if self.failures else 1 if self.warnings or self.unproved else 0

    def as_document(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "stack": self.stack,
            "device": self.device,
            "needed": sorted(self.needed),
            "exit_code": self.exit_code,
            "duration_s": round(self.duration_s, 3),
            # Who reads the JSON wants to know first which check it is; in the class what is inherited comes first.
            "checks": [{"name": check.name, "feature": check.feature, **asdict(check)} for check in self.checks],
        }

    def as_json(self) -> str:
        return json.dumps(self.as_document(), indent=1, allow_nan=False)


def env_check(request: Request, environ: Mapping[str, str] = os.environ) -> Report:
    """Check this machine for a stack. This takes 1 to 2 s; GPUs and an installed worker add some seconds."""
    start_s = time.monotonic()
    machine = look(request, environ)
    return Report(
        host=platform.node(),
        stack=request.stack,
        device=machine.device,
        needed=machine.needed,
        checks=tuple(weigh(check, machine.needed) for check in checks_of(machine)),
        duration_s=time.monotonic() - start_s,
    )


def read_report(text: str) -> Report:
    """Read a report that was printed with ``as_json`` on another node or in an image.

    Raises:
        ValueError: the text is no report; the message says why in one line.
    """
    if not text.strip():
        raise ValueError("the report is empty")
    try:
        return TypeAdapter(Report).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise ValueError(f"not a report of env_check: {where}: {first['msg']}") from None


def summarised(report: Report) -> tuple[CheckResult, ...]:
    """Return every check as records store it: without evidence, and with paths and host names redacted."""
    return tuple(
        CheckResult(
            name=check.name, feature=check.feature, verdict=check.verdict, found=public(check.found), fault=check.fault
        )
        for check in report.checks
    )
