"""All checks of this machine: look, judge, weigh. The program is ``look`` and the tuple in ``judge``."""

import json
import os
import platform
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from suite.env_check import requirements
from suite.env_check.check import Check, ExitCode
from suite.env_check.gpu import cuda_graphs, driver, driver_table, nccl, rt_cores
from suite.env_check.gpu import each_gpu as gpu_settings
from suite.env_check.gpu import gpus as gpu
from suite.env_check.gpu import links as gpu_links
from suite.env_check.gpu.cuda_graphs import CudaFacts
from suite.env_check.gpu.driver import DriverFacts
from suite.env_check.gpu.nccl import NcclFacts
from suite.env_check.graphics import look as graphics
from suite.env_check.graphics.look import GraphicsSeen
from suite.env_check.host import assets, container, cores, worker
from suite.env_check.host import cpu_load as load
from suite.env_check.host import facts as host
from suite.env_check.host import kernel_cache as kernels
from suite.env_check.host import system as host_checks
from suite.env_check.host.assets import AssetFacts
from suite.env_check.host.cores import CoreFacts
from suite.env_check.host.cpu_load import LoadFacts
from suite.env_check.host.facts import HostFacts
from suite.env_check.host.kernel_cache import KernelFacts
from suite.env_check.host.worker import WorkerFacts
from suite.env_check.nodes.differences import read_report
from suite.env_check.request import Request
from suite.env_check.requirements import Needs
from suite.external.nvml.values import NvmlState
from suite.files.cache import cache_root
from suite.install import worker as provision
from suite.records.redaction import public
from suite.schema.record import CheckResult, Device, Stack

ROOT: Final = Path(__file__).resolve().parents[2]
GRAPHICS_LIBRARIES: Final = ("libEGL_nvidia.so.0", "libGLX_nvidia.so.0")
COMPUTE_LIBRARIES: Final = ("libcuda.so.1", "libnvidia-ml.so.1")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Everything that was seen, before any judgement."""

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


@dataclass(frozen=True, kw_only=True)
class Report:
    host: str
    stack: Stack
    device: Device
    needs: Needs
    checks: tuple[Check[Any], ...]
    duration_s: float

    @property
    def failures(self) -> tuple[Check[Any], ...]:
        return tuple(check for check in self.checks if check.verdict == "failure")

    @property
    def warnings(self) -> tuple[Check[Any], ...]:
        return tuple(check for check in self.checks if check.verdict == "warning")

    @property
    def unproved(self) -> tuple[Check[Any], ...]:
        return requirements.unproved(self.checks, self.needs)

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


def read(text: str) -> Report:
    """A report that was printed with ``as_json``, on another node or in an image; evidence stays plain JSON.

    Raises:
        ValueError: it is none, with what is wrong in one line.
    """
    sent = read_report(text)
    return Report(
        host=sent.host,
        stack=sent.stack,
        device=sent.device,
        needs=Needs.of(sent.needed),
        checks=tuple(
            Check(**{field.name: getattr(check, field.name) for field in fields(check)}) for check in sent.checks
        ),
        duration_s=sent.duration_s,
    )


def env_check(request: Request, environ: Mapping[str, str] = os.environ) -> Report:
    """Check this machine for a stack. Takes a second or two, with GPUs and the worker some seconds more."""
    start_s = time.monotonic()
    machine = look(request, environ)
    device = request.device or default_device(request.stack, machine)
    needed = requirements.needs(request.stack, device=device, num_gpus=len(machine.nvml.gpus), require=request.require)
    return Report(
        host=platform.node(),
        stack=request.stack,
        device=device,
        needs=needed,
        checks=tuple(requirements.weigh(check, needed) for check in judge(machine, request)),
        duration_s=time.monotonic() - start_s,
    )


def look(request: Request, environ: Mapping[str, str]) -> Machine:
    """Read everything; what takes long runs beside the rest, in processes of its own."""
    located = provision.locate_worker(
        project_root=ROOT,
        stack=request.stack,
        worker_python=request.worker_python,
        worker_packages=request.worker_packages,
    )
    seen_load = load.read()
    seen_cores = cores.read(environ, has_gpu=_has_device_node())  # alone: the others would be neighbours
    with ThreadPoolExecutor() as pool:
        of_nvml = pool.submit(gpu.read, environ)
        of_cuda = pool.submit(_read_cuda, environ)
        of_nccl = pool.submit(_read_nccl, located.python, environ, of_nvml)
        of_worker = pool.submit(
            worker.read,
            located.python,
            is_own=request.worker_python is not None or request.stack == "isaacsim",
            pins_path=None if located.pins_sha256 is None else provision.worker_pins(ROOT, request.stack),
            needed=provision.NEEDED[request.stack],
            environ=environ,
        )
        own_assets = environ.get("ISAACSIM_ASSET_ROOT")
        of_assets = pool.submit(assets.read, own_assets or located.asset_root, is_own=own_assets is not None)
        seen_driver = driver.read(environ)
        nvml = of_nvml.result()
        version = driver.kernel_version(seen_driver, nvml)
        return Machine(
            driver=seen_driver,
            nvml=nvml,
            cuda=of_cuda.result(),
            graphics=graphics.read(environ, driver_version=version),
            nccl=of_nccl.result(),
            host=host.read(environ, cache_dir=cache_root()),
            load=seen_load,
            cores=seen_cores,
            worker=of_worker.result(),
            assets=of_assets.result(),
            kernels=kernels.read(located.cache_dir),
        )


def _read_cuda(environ: Mapping[str, str]) -> CudaFacts:
    return cuda_graphs.read(environ) if _has_device_node() else CudaFacts(message="no GPU")


def _read_nccl(python: Path, environ: Mapping[str, str], of_nvml: Future[NvmlState]) -> NcclFacts:
    """Start torch only where a device node says that it can find a GPU, and again where a path may be broken."""
    if not _has_device_node():
        return NcclFacts(
            python=str(python), fault="no_cuda", message="no GPU", exit_code=None, signal=None, output="", wall_s=None,
            result=None,
        )  # fmt: skip
    facts = nccl.read(python, environ=environ)
    return nccl.try_paths(facts, environ=environ) if len(of_nvml.result().gpus) > 1 else facts


def _has_device_node() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


def default_device(stack: Stack, machine: Machine) -> Device:
    """Return cuda also where a driver or GPU is there but broken: to fall back silently would hide the fault."""
    has_gpu = bool(machine.nvml.num_gpus or machine.driver.kernel_version or machine.driver.num_pci_gpus)
    return "cuda" if has_gpu or stack != "kitless" else "cpu"


def judge(machine: Machine, request: Request) -> tuple[Check[Any], ...]:
    """Every check, in the order in which a person would repair."""
    nvml, seen = machine.nvml, machine.driver
    num_gpus, version = len(nvml.gpus), driver.kernel_version(seen, nvml)
    drivers = driver_table.drivers_for(request.stack, driver_table.read_drivers(), release=machine.worker.isaac_sim)
    uuids = [gpu_state.uuid or "" for gpu_state in nvml.gpus]
    installed = machine.worker.exists and machine.worker.is_complete

    def there(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(library.name for library in machine.graphics.libraries.named(*names) if not library.fault)

    return (
        host_checks.check_libc(machine.host),
        host_checks.check_nofile(machine.host),
        host_checks.check_cache_disk(
            machine.host, needed_gb=host_checks.KERNEL_CACHE_GB if installed else provision.INSTALL_DISK_GB
        ),
        worker.check_worker_packages(machine.worker),
        assets.check_asset_root(machine.assets),
        kernels.check_kernel_cache(machine.kernels),
        gpu.check_gpus_present(nvml, has_driver=version is not None),
        driver.check_driver_versions(seen, nvml),
        driver.check_device_nodes(seen),
        driver_table.check_driver_for_stack(version, drivers),
        container.check_driver_capabilities_compute(
            seen.container, has_driver=version is not None, libraries=_driver_libraries(seen, COMPUTE_LIBRARIES)
        ),
        gpu.check_compute_capability(nvml, drivers.minimum_compute_capability),
        cuda_graphs.check_cuda_graphs(machine.cuda),
        gpu.check_mig(nvml),
        gpu.check_other_processes(nvml),
        gpu_settings.check_gpu_clocks(nvml),
        gpu_settings.check_gpu_throttling(nvml),
        gpu_settings.check_power_limit(nvml),
        gpu_settings.check_ecc(nvml),
        gpu_settings.check_ecc_errors(nvml),
        gpu_settings.check_persistence(nvml),
        gpu_settings.check_pcie_width(nvml),
        host_checks.check_cpu_governor(machine.host),
        host_checks.check_cores_per_gpu(machine.host, num_gpus),
        load.check_cpu_load(machine.load),
        cores.check_core_speed(machine.cores),
        gpu.check_gpus_alike(nvml),
        gpu_links.check_gpu_links(nvml),
        gpu_links.check_fabric(nvml),
        host_checks.check_shared_memory(machine.host),
        host_checks.check_memlock(machine.host),
        nccl.check_nccl_all_reduce(machine.nccl, num_gpus=num_gpus),
        container.check_driver_capabilities(
            seen.container, has_driver=version is not None, libraries=there(GRAPHICS_LIBRARIES)
        ),
        *graphics.checks(machine.graphics, cuda_uuids=uuids if all(uuids) else None),
        host_checks.check_xdg_runtime_dir(machine.host),
        rt_cores.check_rt_cores(nvml, rt_cores.read_table()),
    )


def _driver_libraries(seen: DriverFacts, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if seen.library(name).path)


def summarised(report: Report) -> tuple[CheckResult, ...]:
    """Every check as records keep it: without evidence, and without what names this machine's folders."""
    return tuple(
        CheckResult(
            name=check.name, feature=check.feature, verdict=check.verdict, found=public(check.found), fault=check.fault
        )
        for check in report.checks
    )
