"""Checks that the CUDA driver starts. Each code of ``cuInit`` that has a known cause has its own fault and repair."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.env_check.check import Judgement, Subject
from suite.env_check.gpu.device_nodes import RELOAD_UVM, judge_device_nodes
from suite.env_check.gpu.driver import CUDA, DriverFacts, kernel_version
from suite.env_check.gpu.gpus import SHOW_GPUS
from suite.env_check.probes.run import End, how_it_ended, run_probe
from suite.external.nvml.values import NvmlState

TIMEOUT_S: Final = 60.0  # the first call on an idle machine initialises every GPU, which takes seconds for each
NO_GPU: Final = "no GPU"
NO_DEVICE: Final = 100  # this and the codes below are of cuda.h
WORDS: Final[Mapping[int, str]] = {
    34: "cuda_stub_library",
    NO_DEVICE: "cuda_no_device",
    802: "cuda_system_not_ready",
    803: "cuda_driver_mismatch",
    804: "cuda_compat_not_supported",
    **dict.fromkeys(range(805, 811), "cuda_mps_failed"),
    999: "cuda_unknown_error",
}
OWN_CAUSE: Final = (34, 802, 803, 804)  # whatever the device nodes are like


@dataclass(frozen=True, kw_only=True)
class CudaFacts:
    driver_version: str | None = None  # the CUDA version that the driver supports: "13.0"
    memory_pools: tuple[bool, ...] = ()  # one for each GPU that CUDA_VISIBLE_DEVICES shows
    message: str | None = None  # why the driver gave no answer
    code: int | None = None  # of the call that failed, as in cuda.h
    end: End = "answered"  # of the process that asked


def read(environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> CudaFacts:
    """Ask the CUDA driver in a child process, because a broken driver may hang or abort."""
    run = run_probe("probes.cuda", environ=environ, timeout_s=timeout_s)
    if run.end != "answered":
        last_words = "".join(f": {line}" for line in run.stderr.strip().splitlines()[-1:])
        return CudaFacts(message=f"the CUDA driver {how_it_ended(run)} when asked{last_words}", end=run.end)
    if message := run.answer.get("message"):
        return CudaFacts(message=message, code=run.answer.get("code"))
    return CudaFacts(driver_version=run.answer["driver_version"], memory_pools=tuple(run.answer["memory_pools"]))


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
    ended = {"hung": "cuda_hung", "died": "cuda_aborted"}
    word = ended.get(facts.end) or WORDS.get(code or 0, "cuda_not_started")
    return subject.failure(word, found, _repair(word, code, driver, nvml))


def _repair(word: str, code: int | None, driver: DriverFacts, nvml: NvmlState) -> str:
    nodes = judge_device_nodes(driver)
    if code not in OWN_CAUSE and nodes.repair is not None:
        return nodes.repair
    cuda, container = driver.library(CUDA), driver.container
    path = cuda.path or CUDA
    version = kernel_version(driver, nvml) or "the running driver"
    if word == "cuda_compat_not_supported":
        compat = f"{path} of the package cuda-compat" if cuda.is_compat else "a libcuda of the package cuda-compat"
        return (
            f"CUDA loads {compat}, which works on data centre GPUs only: take its folder"
            f" ({Path(path).parent if cuda.is_compat else '/usr/local/cuda/compat'}) out of LD_LIBRARY_PATH and"
            f" /etc/ld.so.conf.d, then run ldconfig; or install a newer driver than {version}, on the host."
        )
    if word == "cuda_system_not_ready":
        return _fabric_repair(nvml, version)
    if word == "cuda_unknown_error":
        recreate = "Recreate the container, which may have lost its GPUs. If that does not help, on the host: "
        return f"{recreate if container.is_container else ''}{RELOAD_UVM}; look at dmesg for NVRM and Xid."
    if word == "cuda_driver_mismatch":
        return container.repair_of_mismatch(path)
    return {
        "cuda_stub_library": f"{path} is the stub that programs are linked with: take its folder out of"
        " LD_LIBRARY_PATH.",
        "cuda_mps_failed": "Start the MPS server again (nvidia-cuda-mps-control -d), or unset CUDA_MPS_PIPE_DIRECTORY.",
        "cuda_no_device": "Look at what nvidia-smi -L prints and at dmesg for NVRM; MIG needs compute instances.",
        "cuda_hung": "Look for Xid errors in dmesg, then restart the machine.",
    }.get(word, f"Repair what driver_versions and cuda_driver name; else reinstall the driver of {path}.")


def _fabric_repair(nvml: NvmlState, version: str) -> str:
    """Return the next step where the system is not ready: CUDA waits for the Fabric Manager of NVSwitch."""
    states = {gpu.fabric for gpu in nvml.gpus}
    if states == {"completed"}:
        start = "Restart the Fabric Manager after a reset of the GPUs, with nobody on them: sudo systemctl stop"
        start += " nvidia-fabricmanager && sudo nvidia-smi -r && sudo systemctl start nvidia-fabricmanager."
    else:
        start = f"Start the Fabric Manager of exactly {version} on the host: sudo systemctl start nvidia-fabricmanager."
    return f"{start} With confidential computing: sudo nvidia-smi conf-compute -srs 1."
