"""Checks that the driver and the GPUs support CUDA graphs.

Without a graph the CPU launches every kernel of a physics step separately, which is slower.

Isaac Lab captures Newton's physics steps in a graph. MuJoCo Warp warns of "CUDA version < 12.4 detected", or
fails with "Conditional graph nodes require CUDA driver 12.4+"; Warp warns "Support for CUDA memory pools was not
detected".
"""

from typing import Final

from suite.env_check.check import Judgement, Subject
from suite.env_check.gpu.cuda_start import CudaFacts
from suite.env_check.gpu.driver_table import parts
from suite.env_check.gpu.each_gpu import by_value

OLDEST: Final = "12.4"  # CUDA version that the driver must support: MuJoCo Warp's solver uses conditional nodes
WANTED: Final = f"a driver of CUDA {OLDEST} or newer, and memory pools on every GPU"
WITHOUT: Final = "the override env.sim.physics.use_cuda_graph=False trains without a graph, but more slowly"


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
            f"In a virtual machine ask its host for unified memory (enable_uvm of NVIDIA vGPU). Else {WITHOUT}.",
        )
    return subject.ok(found)
