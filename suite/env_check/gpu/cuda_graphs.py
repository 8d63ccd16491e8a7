"""Checks what CUDA graphs need of driver and GPUs: without them every kernel of a physics step is launched by itself.

Isaac Lab captures the steps of Newton's physics in a graph. MuJoCo Warp warns of "CUDA version < 12.4 detected", or
fails with "Conditional graph nodes require CUDA driver 12.4+"; Warp warns "Support for CUDA memory pools was not
detected".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from suite.env_check.check import Check
from suite.env_check.finding import Finding
from suite.env_check.gpu.driver_table import parts
from suite.env_check.gpu.values import by_value
from suite.env_check.probes.run import how_it_ended, run_probe

TIMEOUT_S: Final = 60.0  # the first call on an idle machine initialises every GPU, seconds each
OLDEST: Final = "12.4"  # CUDA version of the driver, for the conditional nodes of MuJoCo Warp's solver
WANTED: Final = f"a driver of CUDA {OLDEST} or newer, and memory pools on every GPU"
WITHOUT: Final = "env.sim.physics.use_cuda_graph=False as an override trains without a graph, slower"


@dataclass(frozen=True, kw_only=True)
class CudaFacts:
    driver_version: str | None = None  # of CUDA: "13.0"
    memory_pools: tuple[bool, ...] = ()  # of each GPU that CUDA_VISIBLE_DEVICES leaves
    message: str | None = None  # why nothing is known


def read(environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> CudaFacts:
    """Ask the CUDA driver in a child process: a broken one may hang or abort."""
    run = run_probe("probes.cuda", environ=environ, timeout_s=timeout_s)
    if run.end != "answered":
        return CudaFacts(message=f"the CUDA driver {how_it_ended(run.end, run.signal, run.exit_code)} when asked")
    if message := run.answer.get("message"):
        return CudaFacts(message=message)
    return CudaFacts(driver_version=run.answer["driver_version"], memory_pools=tuple(run.answer["memory_pools"]))


def check_cuda_graphs(facts: CudaFacts) -> Check[CudaFacts]:
    """A driver that is too old is a failure; GPUs without memory pools warn, since a graph may do without."""
    version = facts.driver_version
    if version is None or not facts.memory_pools:
        found = facts.message or "no GPU"
        return Check(
            name="cuda_graphs", feature="cuda-graphs", verdict="not_checked", found=found, wanted=WANTED, evidence=facts
        )
    pools = by_value(
        {index: f"{'' if has_pools else 'no '}memory pools" for index, has_pools in enumerate(facts.memory_pools)}
    )
    found = f"a driver of CUDA {version}, {pools}"
    if parts(version) < parts(OLDEST):
        return Finding(
            word="driver_too_old_for_graphs",
            found=found,
            repair=f"Install a driver of CUDA {OLDEST} or newer (550 and later). Until then {WITHOUT}.",
        ).check(name="cuda_graphs", feature="cuda-graphs", wanted=WANTED, evidence=facts)
    if not all(facts.memory_pools):
        return Finding(
            word="no_memory_pools",
            found=found,
            repair="In a virtual machine ask its host for unified memory (enable_uvm of NVIDIA vGPU); elsewhere"
            f" load the driver's nvidia-uvm. Where neither helps, {WITHOUT}.",
        ).check(name="cuda_graphs", feature="cuda-graphs", wanted=WANTED, evidence=facts, verdict="warning")
    return Check(name="cuda_graphs", feature="cuda-graphs", verdict="ok", found=found, wanted=WANTED, evidence=facts)
