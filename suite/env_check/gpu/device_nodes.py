"""Checks that the device nodes which CUDA needs exist and open. A closed node has one of several causes."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

from suite.env_check.check import Fault, Judgement, Subject
from suite.env_check.gpu.driver import LOST, NOT_OPEN, PERMISSION, DriverFacts

CONTROL_NODE: Final = "/dev/nvidiactl"
UVM_NODE: Final = "/dev/nvidia-uvm"
RELOAD_UVM: Final = "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"


@dataclass(frozen=True, kw_only=True)
class DeviceNodes:
    """Evidence of ``device_nodes``."""

    nodes: tuple[str, ...]
    closed_nodes: tuple[str, ...]


def judge_device_nodes(facts: DriverFacts) -> Judgement:
    """Check that the device nodes CUDA needs exist, and that this user may open them."""
    subject = Subject(
        f"/dev/nvidia<number>, {CONTROL_NODE} and {UVM_NODE}, to read and write",
        DeviceNodes(nodes=facts.nodes, closed_nodes=facts.closed_nodes),
    )
    if facts.is_wsl:
        return subject.ok("WSL 2, which has /dev/dxg in place of them")
    if facts.kernel_version is None and not facts.nodes:
        return subject.not_checked("no driver")
    if fault := _missing(facts) or _closed(facts):
        return subject.faulty(fault)
    opened = len(set(facts.gpu_nodes) - set(facts.closed_nodes))
    of_all = f" of {len(facts.gpu_nodes)}" if opened < len(facts.gpu_nodes) else ""
    return subject.ok(f"{opened}{of_all} GPU(s), {CONTROL_NODE}, {UVM_NODE}")


def _missing(facts: DriverFacts) -> Fault | None:
    container = facts.container
    if not facts.gpu_nodes or CONTROL_NODE not in facts.nodes:
        on_host = "Run sudo nvidia-modprobe -c 0 (or nvidia-smi once as root), which creates them."
        repair = container.repair_without_gpus if container.is_container else on_host
        return Fault(word="no_device_nodes", found=", ".join(facts.nodes) or "none", repair=repair)
    if UVM_NODE in facts.nodes:
        return None
    then = ", on the host; then recreate the container" if container.is_container else ""
    return Fault(
        word="no_uvm_node",
        found=f"{len(facts.gpu_nodes)} GPU(s), but no {UVM_NODE}: CUDA does not start",
        repair=f"Run sudo nvidia-modprobe -u -c 0{then}.",
    )


def _closed(facts: DriverFacts) -> Fault | None:
    """Return the fault of nodes that do not open. A scheduler may open only the nodes of a job's own GPUs."""
    why = {node: facts.refusals.get(node, "EACCES") for node in facts.closed_nodes}
    none_open = set(facts.gpu_nodes) <= set(why)
    needed = [node for node in why if node in (CONTROL_NODE, UVM_NODE) or (none_open and node in facts.gpu_nodes)]
    broken = [node for node in why if why[node] not in PERMISSION and node in (*facts.gpu_nodes, UVM_NODE)]
    is_docker = facts.container.is_container and not facts.container.is_apptainer
    lost = [node for node in why if why[node] == "EPERM" and is_docker and node in facts.gpu_nodes]
    found = ", ".join(f"{node} ({why[node]})" for node in needed or broken or lost)
    severity: Literal["failure", "warning"] = "failure" if needed else "warning"
    if broken:
        repair = f"Run {RELOAD_UVM} on the host." if UVM_NODE in broken else facts.repair_of_dead_gpu
        return Fault(word="device_node_broken", found=f"does not open: {found}", repair=repair, verdict=severity)
    if not needed and not lost:
        return None
    words = {why[node] for node in needed or lost}
    if "EPERM" in words and facts.container.is_container:
        return Fault(word="gpus_lost", found=f"the container may not open {found}", repair=LOST, verdict=severity)
    found = f"this user may not open {found}"
    return Fault(word="device_nodes_closed", found=found, repair=_closed_repair(words, facts))


def _closed_repair(words: Collection[str], facts: DriverFacts) -> str:
    if "EPERM" in words:
        return "A cgroup denies them, as a scheduler does to a job without GPUs: ask for GPUs (Slurm: --gpus)."
    if facts.container.is_container:
        return NOT_OPEN
    return "Add this user to the group that owns them (ls -l /dev/nvidia*)."
