"""Checks that CUDA starts, and that the driver and the GPUs support CUDA graphs.

Each code of ``cuInit`` that has a known cause has its own fault and repair. Without a CUDA graph the CPU launches every
kernel of a physics step separately, which is slower. Isaac Lab captures Newton's physics steps in a graph. MuJoCo Warp
warns of "CUDA version < 12.4 detected", or fails with "Conditional graph nodes require CUDA driver 12.4+"; Warp warns
"Support for CUDA memory pools was not detected".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.env_check.check import Judgement, Subject, parts
from suite.env_check.gpu.driver import CUDA, RELOAD_UVM, DriverFacts, judge_device_nodes, kernel_version
from suite.env_check.gpu.gpus import SHOW_GPUS, by_value
from suite.env_check.probes.run import End, run_probe
from suite.external.nvml.values import NvmlState

TIMEOUT_S: Final = 60.0  # the first call on an idle machine initialises every GPU, which takes seconds for each
NO_GPU: Final = "no GPU"
NO_DEVICE: Final = 100  # this and the codes below are of cuda.h
OWN_CAUSE: Final = (34, 802, 803, 804)  # whatever the device nodes are like
OLDEST_FOR_GRAPHS: Final = "12.4"  # CUDA of the driver: MuJoCo Warp's solver uses conditional nodes
GRAPHS_WANTED: Final = f"a driver of CUDA {OLDEST_FOR_GRAPHS} or newer, and memory pools on every GPU"
WITHOUT_GRAPHS: Final = "the override env.sim.physics.use_cuda_graph=False trains without a graph, but more slowly"


@dataclass(frozen=True, kw_only=True)
class CudaFacts:
    driver_version: str | None = None  # the CUDA version that the driver supports: "13.0"
    memory_pools: tuple[bool, ...] = ()  # one for each GPU that CUDA_VISIBLE_DEVICES shows
    message: str | None = None  # why the driver gave no answer
    code: int | None = None  # of the call that failed, as in cuda.h
    end: End = "answered"  # of the process that asked


def read_cuda(environ: Mapping[str, str]) -> CudaFacts:
    """Ask the CUDA driver in a child process, because a broken driver may hang or abort."""
    run = run_probe("machine", "cuda", environ=environ, timeout_s=TIMEOUT_S)
    if run.end != "answered":
        last_words = "".join(f": {line}" for line in run.stderr.strip().splitlines()[-1:])
        return CudaFacts(message=f"the CUDA driver {run.how} when asked{last_words}", end=run.end)
    return run.as_facts(CudaFacts)


def judge_cuda_start(facts: CudaFacts, driver: DriverFacts, nvml: NvmlState) -> Judgement:
    """Check that ``cuInit`` returns 0, and that CUDA then lists a GPU if NVML does."""
    subject = Subject("cuInit returns 0 and CUDA lists a GPU", facts)
    if facts.message is None and (facts.memory_pools or not nvml.gpus):
        return subject.ok(f"CUDA {facts.driver_version}") if facts.memory_pools else subject.not_checked(NO_GPU)
    if facts.message == NO_GPU:
        return subject.not_checked(NO_GPU)
    code = NO_DEVICE if facts.message is None else facts.code
    found = facts.message or f"CUDA lists no GPU, NVML lists {len(nvml.gpus)}"
    if code == NO_DEVICE and nvml.num_gpus and not nvml.gpus:
        return subject.failure("gpus_hidden", f"{found}: CUDA_VISIBLE_DEVICES hides all", SHOW_GPUS)
    word, repair = _word_and_repair(facts.end, code, driver, nvml)
    of_nodes = judge_device_nodes(driver).repair
    return subject.failure(word, found, repair if code in OWN_CAUSE or of_nodes is None else of_nodes)


def _word_and_repair(end: End, code: int | None, driver: DriverFacts, nvml: NvmlState) -> tuple[str, str]:
    cuda, container = driver.library(CUDA), driver.container
    path = cuda.path or CUDA
    version = kernel_version(driver, nvml) or "the running driver"
    other = f"Repair what driver_versions and cuda_driver name; else reinstall the driver of {path}."
    if end == "hung":
        return "cuda_hung", "Look for Xid errors in dmesg, then restart the machine."
    if end == "died":
        return "cuda_aborted", other
    compat = f"{path} of the package cuda-compat" if cuda.is_compat else "a libcuda of the package cuda-compat"
    folder = Path(path).parent if cuda.is_compat else "/usr/local/cuda/compat"
    recreate = "Recreate the container, which may have lost its GPUs. If that does not help, on the host: "
    start_mps = "Start the MPS server again (nvidia-cuda-mps-control -d), or unset CUDA_MPS_PIPE_DIRECTORY."
    faults = {  # codes of cuda.h
        34: (
            "cuda_stub_library",
            f"{path} is the stub that programs are linked with: take its folder out of LD_LIBRARY_PATH.",
        ),
        NO_DEVICE: (
            "cuda_no_device",
            "Look at what nvidia-smi -L prints and at dmesg for NVRM; MIG needs compute instances.",
        ),
        802: ("cuda_system_not_ready", _fabric_repair(nvml, version)),
        803: ("cuda_driver_mismatch", container.repair_of_mismatch(path)),
        804: (
            "cuda_compat_not_supported",
            (
                f"CUDA loads {compat}, which works on data centre GPUs only: take its folder ({folder}) out of"
                f" LD_LIBRARY_PATH and /etc/ld.so.conf.d, then run ldconfig; or install a newer driver than {version},"
                " on the host."
            ),
        ),
        **dict.fromkeys(range(805, 811), ("cuda_mps_failed", start_mps)),
        999: (
            "cuda_unknown_error",
            f"{recreate if container.is_container else ''}{RELOAD_UVM}; look at dmesg for NVRM and Xid.",
        ),
    }
    return faults.get(code or 0, ("cuda_not_started", other))


def _fabric_repair(nvml: NvmlState, version: str) -> str:
    """Return the next step where the system is not ready: CUDA waits for the Fabric Manager of NVSwitch."""
    states = {gpu.fabric for gpu in nvml.gpus}
    if states == {"completed"}:
        start = "Restart the Fabric Manager after a reset of the GPUs, with nobody on them: sudo systemctl stop"
        start += " nvidia-fabricmanager && sudo nvidia-smi -r && sudo systemctl start nvidia-fabricmanager."
    else:
        start = f"Start the Fabric Manager of exactly {version} on the host: sudo systemctl start nvidia-fabricmanager."
    return f"{start} With confidential computing: sudo nvidia-smi conf-compute -srs 1."


def judge_cuda_graphs(facts: CudaFacts) -> Judgement:
    """Fail a driver that is too old; warn of GPUs without memory pools, because some graphs need none."""
    subject = Subject(GRAPHS_WANTED, facts)
    version = facts.driver_version
    if version is None or not facts.memory_pools:
        return subject.not_checked(facts.message or "no GPU")
    pools = by_value(
        {index: f"{'' if has_pools else 'no '}memory pools" for index, has_pools in enumerate(facts.memory_pools)}
    )
    found = f"a driver of CUDA {version}, {pools}"
    if parts(version) < parts(OLDEST_FOR_GRAPHS):
        return subject.failure(
            "driver_too_old_for_graphs",
            found,
            f"Install a driver of CUDA {OLDEST_FOR_GRAPHS} or newer (550 and later). Until then {WITHOUT_GRAPHS}.",
        )
    if not all(facts.memory_pools):
        return subject.warning(
            "no_memory_pools",
            found,
            f"In a virtual machine ask its host for unified memory (enable_uvm of NVIDIA vGPU). Else {WITHOUT_GRAPHS}.",
        )
    return subject.ok(found)
