"""The NUMA nodes of a rank's cores and of its GPU, by the kernel's numbers. Imports no torch.

A core of another node than the GPU's reaches the GPU through the link between the processors. A virtual machine often
hides the GPU's node.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

SYSFS: Final = Path("/sys")


def nodes_of_cores(cores: Iterable[int], sysfs: Path = SYSFS) -> str | None:
    """Return the nodes as text, such as ``0`` or ``0,1``; None if the kernel does not show them."""
    wanted = {str(core) for core in cores}
    nodes = (sysfs / "devices/system/node").glob("node[0-9]*")
    found = sorted(
        int(node.name.removeprefix("node"))
        for node in nodes
        if wanted & {path.name.removeprefix("cpu") for path in node.glob("cpu[0-9]*")}
    )
    return ",".join(map(str, found)) or None


def node_of_gpu(properties: Any, sysfs: Path = SYSFS) -> int | None:
    """Return the node of the GPU with these properties, which are torch's; None if the kernel does not know it."""
    try:
        address = f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"
        node = int((sysfs / "bus/pci/devices" / address / "numa_node").read_text(encoding="ascii"))
    except (AttributeError, OSError, ValueError):  # an older torch; a container without this part of /sys
        return None
    return None if node < 0 else node
