"""What tests of EGL's and of Vulkan's checks ask of one that found a fault, and the driver that they all have."""

from typing import Final

from suite.env_check.check import Judgement
from suite.env_check.gpu.driver import DriverFacts
from suite.env_check.host.container import Container
from suite.env_check.libraries.driver_libraries import LibrariesSeen

CAPABILITIES: Final = "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics"  # the only thing that this container lacks
IN_DOCKER: Final = Container(is_container=True, signs=("/.dockerenv",), driver_capabilities=None, visible_devices="all")
DRIVER_FACTS: Final = DriverFacts(
    kernel_version="580.159.04",
    kernel_line=None,
    libraries=(),
    nodes=("/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidiactl"),
    closed_nodes=(),
    num_pci_gpus=1,
    container=IN_DOCKER,
)
NO_LIBRARIES: Final = LibrariesSeen(driver_version=None, container=IN_DOCKER, libraries=())


def assert_failure(check: Judgement, fault: str, found: str, repair: str) -> None:
    """``found`` and ``repair``: parts of what the check says."""
    assert (check.verdict, check.fault) == ("failure", fault), check
    assert found in check.found, check
    assert repair in (check.repair or ""), check
