"""Checks that the driver and the GPUs support CUDA graphs.

Without a graph the CPU launches every kernel of a physics step separately, which is slower.

Isaac Lab captures Newton's physics steps in a graph. MuJoCo Warp warns of "CUDA version < 12.4 detected", or
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

TIMEOUT_S: Final = 60.0  # the first call on an idle machine initialises every GPU, which takes seconds for each
OLDEST: Final = "12.4"  # CUDA version that the driver must support: MuJoCo Warp's solver uses conditional nodes
WANTED: Final = f"a driver of CUDA {OLDEST} or newer, and memory pools on every GPU"
WITHOUT: Final = "the override env.sim.physics.use_cuda_graph=False trains without a graph, but more slowly"


@dataclass(frozen=True, kw_only=True)
class CudaFacts:
    driver_version: str | None = None  # the CUDA version that the driver supports: "13.0"
    memory_pools: tuple[bool, ...] = ()  # one for each GPU that CUDA_VISIBLE_DEVICES shows
    message: str | None = None  # why the driver gave no answer


def read(environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> CudaFacts:
    """Ask the CUDA driver in a child process, because a broken driver may hang or abort."""
    run = run_probe("probes.cuda", environ=environ, timeout_s=timeout_s)
    if run.end != "answered":
        return CudaFacts(message=f"the CUDA driver {how_it_ended(run)} when asked")
    if message := run.answer.get("message"):
        return CudaFacts(message=message)
    return CudaFacts(driver_version=run.answer["driver_version"], memory_pools=tuple(run.answer["memory_pools"]))


def judge_cuda_graphs(facts: CudaFacts) -> Judgement:
    """Fail a driver that is too old; warn of GPUs without memory pools, because some graphs need none."""
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
            f" load the driver's nvidia-uvm. If neither helps, {WITHOUT}.",
        )
    return subject.ok(found)
