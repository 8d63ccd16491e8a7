"""What CUDA graphs need of driver and GPUs. Without them every kernel of a physics step is launched by itself.

Isaac Lab captures the steps of Newton's physics in a graph. MuJoCo Warp warns of "CUDA version < 12.4 detected", or
fails with "Conditional graph nodes require CUDA driver 12.4+"; Warp warns "Support for CUDA memory pools was not
detected".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from suite.env_check.check import Judgement, Subject
from suite.env_check.gpu.driver_table import parts
from suite.env_check.gpu.each_gpu import by_value
from suite.env_check.probes.run import how_it_ended, run_probe

TIMEOUT_S: Final = 60.0  # the first call on an idle machine initialises every GPU, seconds each
OLDEST: Final = "12.4"  # CUDA version of the driver, for the conditional nodes of MuJoCo Warp's solver
WANTED: Final = f"a driver of CUDA {OLDEST} or newer, and memory pools on every GPU"
WITHOUT: Final = "env.sim.physics.use_cuda_graph=False as an override trains without a graph, slower"


@dataclass(frozen=True, kw_only=True)
class CudaFacts:
    driver_version: str | None = None  # the CUDA version that the driver supports: "13.0"
    memory_pools: tuple[bool, ...] = ()  # for each GPU that CUDA_VISIBLE_DEVICES leaves
    message: str | None = None  # why nothing is known


def read(environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> CudaFacts:
    """Ask the CUDA driver in a child process: a broken one may hang or abort."""
    run = run_probe("probes.cuda", environ=environ, timeout_s=timeout_s)
    if run.end != "answered":
        return CudaFacts(message=f"the CUDA driver {how_it_ended(run)} when asked")
    if message := run.answer.get("message"):
        return CudaFacts(message=message)
    return CudaFacts(driver_version=run.answer["driver_version"], memory_pools=tuple(run.answer["memory_pools"]))


def judge_cuda_graphs(facts: CudaFacts) -> Judgement:
    """A driver that is too old is a failure. GPUs without memory pools are a warning: a graph may do without."""
    subject = Subject(WANTED, facts)
    version = facts.driver_version
    if version is None or not facts.memory_pools:
        return subject.not_checked(facts.message or "no GPU")
    pools = by_value(
        {index: f"{'' if has_pools else 'no '}memory pools" for index, has_pools in enumerate(facts.memory_pools)}
    )
    found = f"a driver of CUDA {version}, {pools}"
    if parts(version) < parts(OLDEST):
        return subject.failure(
            "driver_too_old_for_graphs",
            found,
            f"Install a driver of CUDA {OLDEST} or newer (550 and later). Until then {WITHOUT}.",
        )
    if not all(facts.memory_pools):
        return subject.warning(
            "no_memory_pools",
            found,
            "In a virtual machine ask its host for unified memory (enable_uvm of NVIDIA vGPU); elsewhere"
            f" load the driver's nvidia-uvm. Where neither helps, {WITHOUT}.",
        )
    return subject.ok(found)
