"""Lists every check of env_check. ``look`` reads the machine; ``CHECKS`` gives the function that judges each part."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.env_check.check import Check, Feature, Judgement
from suite.env_check.gpu import cuda_graphs, cuda_start, device_nodes, driver, driver_table, gpus, links, nccl, rt_cores
from suite.env_check.gpu.cuda_start import CudaFacts
from suite.env_check.gpu.driver import DriverFacts
from suite.env_check.gpu.driver_table import StackDrivers
from suite.env_check.gpu.each_gpu import FABRIC, SETTINGS, EachGpu, compute_capability, mig
from suite.env_check.gpu.nccl import NcclFacts
from suite.env_check.graphics import look as graphics
from suite.env_check.graphics.devices import Seen, judge_devices
from suite.env_check.graphics.frame import judge_frame
from suite.env_check.graphics.icd_checks import judge_manifests
from suite.env_check.graphics.icd_manifests import ManifestsSeen
from suite.env_check.graphics.look import GraphicsSeen
from suite.env_check.graphics.vulkan import judge_ray_tracing
from suite.env_check.host import assets, container, cores, cpu_load, kernel_cache, system, worker
from suite.env_check.host.assets import AssetFacts
from suite.env_check.host.cores import CoreFacts
from suite.env_check.host.cpu_load import LoadFacts
from suite.env_check.host.kernel_cache import KernelFacts
from suite.env_check.host.system import HostFacts
from suite.env_check.host.worker import WorkerFacts
from suite.env_check.libraries import driver_libraries
from suite.env_check.libraries.driver_libraries import judge_driver_libraries, judge_libraries
from suite.env_check.request import Request
from suite.external.nvml.values import NvmlState
from suite.files.cache import cache_root
from suite.files.paths import ROOT
from suite.install import worker as provision
from suite.schema.record import Stack


@dataclass(frozen=True, kw_only=True)
class Machine:
    """All facts that were read, before any is judged."""

    stack: Stack  # the one to run
    driver: DriverFacts
    nvml: NvmlState
    cuda: CudaFacts
    graphics: GraphicsSeen
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
        return driver_table.drivers_for(self.stack, driver_table.read_drivers(), release=self.worker.isaac_sim)

    @property
    def cuda_uuids(self) -> tuple[str, ...]:
        """Return the UUID of each GPU, in CUDA order; empty unless all are known."""
        uuids = tuple(gpu.uuid or "" for gpu in self.nvml.gpus)
        return uuids if all(uuids) else ()

    @property
    def cache_needed_gb(self) -> float:
        is_installed = self.worker.exists and self.worker.is_complete
        return system.KERNEL_CACHE_GB if is_installed else provision.INSTALL_DISK_GB


@dataclass(frozen=True)
class Row:
    """One check: its name in reports, its feature, and the function that judges the machine."""

    name: str
    feature: Feature
    judge: Callable[[Machine], Judgement]

    def check(self, machine: Machine) -> Check:
        return Check(name=self.name, feature=self.feature, **vars(self.judge(machine)))


def _each_gpu(table: EachGpu) -> Row:
    return Row(table.name, table.feature, lambda m: table.judge(m.nvml))


def _compute_capabilities(m: Machine) -> Judgement:
    libraries = tuple(name for name in (driver.CUDA, driver.NVML) if m.driver.library(name).path)
    return container.judge_driver_capabilities(
        m.driver.container, ("compute", "utility"), has_driver=m.driver_version is not None, libraries=libraries
    )


def _graphics_capabilities(m: Machine) -> Judgement:
    seen = m.graphics.libraries.named(*driver.GRAPHICS)
    libraries = tuple(library.name for library in seen if not library.fault)
    return container.judge_driver_capabilities(
        m.driver.container, ("graphics",), has_driver=m.driver_version is not None, libraries=libraries
    )


def _nccl_all_reduce(m: Machine) -> Judgement:
    shm_repair = system.judge_shared_memory(m.host).repair
    return nccl.judge_nccl_all_reduce(m.nccl, num_gpus=m.num_gpus, shm_repair=shm_repair)


def _devices(m: Machine, seen: Seen, manifests: ManifestsSeen) -> Judgement:
    return judge_devices(seen, manifests, m.driver, m.graphics.libraries, m.cuda_uuids)


# Sorted in the order in which a person would repair them.
CHECKS: Final = (
    Row("libc", "host", lambda m: system.judge_libc(m.host)),
    Row("nofile", "host", lambda m: system.judge_nofile(m.host)),
    Row("cache_disk", "host", lambda m: system.judge_cache_disk(m.host, needed_gb=m.cache_needed_gb)),
    Row("worker_packages", "worker", lambda m: worker.judge_worker_packages(m.worker)),
    Row("asset_root", "worker", lambda m: assets.judge_asset_root(m.assets)),
    Row("kernel_cache", "worker", lambda m: kernel_cache.judge_kernel_cache(m.kernels)),
    Row("gpus_present", "cuda", lambda m: gpus.judge_gpus_present(m.nvml, m.driver)),
    Row("driver_versions", "cuda", lambda m: driver.judge_driver_versions(m.driver, m.nvml)),
    Row("device_nodes", "cuda", lambda m: device_nodes.judge_device_nodes(m.driver)),
    Row("cuda_start", "cuda", lambda m: cuda_start.judge_cuda_start(m.cuda, m.driver, m.nvml)),
    Row("driver_for_stack", "cuda", lambda m: driver_table.judge_driver_for_stack(m.driver_version, m.drivers)),
    Row("driver_capabilities_compute", "cuda", _compute_capabilities),
    Row("compute_capability", "cuda", lambda m: compute_capability(m.drivers.minimum_compute_capability).judge(m.nvml)),
    Row("cuda_graphs", "cuda-graphs", lambda m: cuda_graphs.judge_cuda_graphs(m.cuda)),
    Row("mig", "cuda", lambda m: mig(m.num_gpus).judge(m.nvml)),
    *map(_each_gpu, SETTINGS),
    Row("cpu_governor", "cuda", lambda m: system.judge_cpu_governor(m.host)),
    Row("cores_per_gpu", "cuda", lambda m: system.judge_cores_per_gpu(m.host, m.num_gpus)),
    Row("cpu_load", "host", lambda m: cpu_load.judge_cpu_load(m.load)),
    Row("core_speed", "cuda", lambda m: cores.judge_core_speed(m.cores)),
    Row("gpus_alike", "nccl", lambda m: gpus.judge_gpus_alike(m.nvml)),
    Row("gpu_links", "nccl", lambda m: links.judge_gpu_links(m.nvml)),
    _each_gpu(FABRIC),
    Row("shared_memory", "nccl", lambda m: system.judge_shared_memory(m.host)),
    Row("memlock", "nccl", lambda m: system.judge_memlock(m.host)),
    Row("nccl_all_reduce", "nccl", _nccl_all_reduce),
    Row("driver_capabilities", "vulkan", _graphics_capabilities),
    Row("cuda_driver", "cuda", lambda m: judge_driver_libraries(m.graphics.libraries, driver_libraries.CUDA_DRIVER)),
    Row("libgl", "egl", lambda m: judge_libraries(m.graphics.libraries, driver_libraries.LIBGL)),
    Row("egl_loader", "egl", lambda m: judge_libraries(m.graphics.libraries, driver_libraries.EGL_LOADER)),
    Row(
        "egl_driver", "egl",
        lambda m: judge_driver_libraries(m.graphics.libraries, driver_libraries.egl_driver(m.driver_version)),
    ),
    Row("egl_vendors", "egl", lambda m: judge_manifests(m.graphics.egl_vendors)),
    Row("egl_devices", "egl", lambda m: _devices(m, m.graphics.egl, m.graphics.egl_vendors)),
    Row("egl_frame", "egl", lambda m: judge_frame(m.graphics.egl_frame, "EGL")),
    Row("vulkan_loader", "vulkan", lambda m: judge_libraries(m.graphics.libraries, driver_libraries.VULKAN_LOADER)),
    Row(
        "vulkan_driver", "vulkan",
        lambda m: judge_driver_libraries(m.graphics.libraries, driver_libraries.VULKAN_DRIVER),
    ),
    Row("vulkan_manifests", "vulkan", lambda m: judge_manifests(m.graphics.vulkan_manifests)),
    Row(
        "vulkan_devices", "vulkan",
        lambda m: _devices(m, m.graphics.vulkan, m.graphics.vulkan_manifests),
    ),
    Row("vulkan_frame", "vulkan", lambda m: judge_frame(m.graphics.vulkan_frame, "Vulkan")),
    Row("vulkan_ray_tracing", "rt-cores", lambda m: judge_ray_tracing(m.graphics.vulkan)),
    Row("xdg_runtime_dir", "vulkan", lambda m: system.judge_xdg_runtime_dir(m.host)),
    Row("rt_cores", "rt-cores", lambda m: rt_cores.judge_rt_cores(m.nvml, rt_cores.read_table())),
    Row("denoiser", "rt-cores", lambda m: rt_cores.judge_denoiser(m.driver, m.nvml, rt_cores.read_table())),
)  # fmt: skip


def judge(machine: Machine) -> tuple[Check, ...]:
    return tuple(row.check(machine) for row in CHECKS)


def look(request: Request, environ: Mapping[str, str]) -> Machine:
    """Read the whole machine. Slow readers run in parallel with the rest, in processes of their own."""
    located = provision.locate_worker(
        project_root=ROOT,
        stack=request.stack,
        worker_python=request.worker_python,
        worker_packages=request.worker_packages,
    )
    load_seen = cpu_load.read()
    cores_seen = cores.read(environ, has_gpu=_has_device_node())  # runs alone: other readers would slow the cores
    with ThreadPoolExecutor() as pool:
        nvml = pool.submit(gpus.read, environ)
        cuda = pool.submit(_read_cuda, environ)
        nccl_facts = pool.submit(_read_nccl, located.python, environ, nvml)
        worker_facts = pool.submit(
            worker.read,
            located.python,
            is_own=request.worker_python is not None or request.stack == "isaacsim",
            pins_path=None if located.pins_sha256 is None else provision.worker_pins(ROOT, request.stack),
            needed=provision.NEEDED[request.stack],
            environ=environ,
            also=request.other_workers,
        )
        own_assets = environ.get("ISAACSIM_ASSET_ROOT")
        asset_facts = pool.submit(assets.read, own_assets or located.asset_root, is_own=own_assets is not None)
        driver_facts = driver.read(environ)
        version = driver.kernel_version(driver_facts, nvml.result())
        return Machine(
            stack=request.stack,
            driver=driver_facts,
            nvml=nvml.result(),
            cuda=cuda.result(),
            graphics=graphics.read(environ, driver_version=version),
            nccl=nccl_facts.result(),
            host=system.read(environ, cache_dir=cache_root()),
            load=load_seen,
            cores=cores_seen,
            worker=worker_facts.result(),
            assets=asset_facts.result(),
            kernels=kernel_cache.read(located.cache_dir),
        )


def _read_cuda(environ: Mapping[str, str]) -> CudaFacts:
    return cuda_start.read(environ) if _has_device_node() else CudaFacts(message=cuda_start.NO_GPU)


def _read_nccl(python: Path, environ: Mapping[str, str], nvml: Future[NvmlState]) -> NcclFacts:
    """Start torch only if a device node exists. With several GPUs, repeat a failed run without each suspect path."""
    if not _has_device_node():
        return NcclFacts(python=str(python), fault="no_cuda", message="no GPU")
    facts = nccl.read(python, environ=environ)
    return nccl.try_paths(facts, environ=environ) if len(nvml.result().gpus) > 1 else facts


def _has_device_node() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()
