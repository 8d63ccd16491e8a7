"""NUMA nodes as the kernel shows them: in folders like its own, and on this machine."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tasks.rank import machine

GPU = SimpleNamespace(pci_domain_id=0, pci_bus_id=0x1B, pci_device_id=0)


@pytest.fixture
def two_nodes(tmp_path: Path) -> Path:
    for node, cores in ((0, (0, 1, 4, 5)), (1, (2, 3, 10))):
        for core in cores:
            (tmp_path / f"devices/system/node/node{node}/cpu{core}").mkdir(parents=True)
        (tmp_path / f"devices/system/node/node{node}/cpulist").touch()
    address = tmp_path / "bus/pci/devices/0000:1b:00.0"
    address.mkdir(parents=True)
    (address / "numa_node").write_text("1\n")
    return tmp_path


def test_the_node_of_a_gpu(two_nodes: Path) -> None:
    assert machine.node_of_gpu(GPU, two_nodes) == 1
    (two_nodes / "bus/pci/devices/0000:1b:00.0/numa_node").write_text("-1\n")  # as in most virtual machines
    assert machine.node_of_gpu(GPU, two_nodes) is None
    assert machine.node_of_gpu(SimpleNamespace(**{**vars(GPU), "pci_bus_id": 2}), two_nodes) is None
    assert machine.node_of_gpu(SimpleNamespace(), two_nodes) is None  # a torch that does not say where it is


def test_this_machine_says_the_same_as_lscpu() -> None:
    done = subprocess.run(["lscpu", "--parse=CPU,NODE"], capture_output=True, text=True, check=True)
    rows = [line.split(",") for line in done.stdout.splitlines() if not line.startswith("#")]
    cores = os.sched_getaffinity(0)
    nodes = {node for core, node in rows if int(core) in cores and node}
    assert machine.nodes_of_cores(cores) == (",".join(sorted(nodes, key=int)) or None)
