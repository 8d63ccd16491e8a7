"""Loads each EGL or Vulkan driver alone, in a child process, to find the one that fails."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from suite.env_check.check import Fault
from suite.env_check.gpu.device_nodes import judge_device_nodes
from suite.env_check.gpu.driver import GRAPHICS, DriverFacts
from suite.env_check.graphics.icd_checks import usable
from suite.env_check.graphics.icd_manifests import Manifest, ManifestsSeen
from suite.env_check.libraries.library import is_nvidia
from suite.env_check.probes.run import End, how_it_ended

TIMEOUT_S: Final = 60.0  # the first call on an idle machine initialises every GPU, which takes seconds each


@dataclass(frozen=True, kw_only=True)
class DriverAlone:
    manifest: str
    library: str
    end: End
    signal: str | None
    exit_code: int | None
    stage: str | None  # the call in progress when it died or hung

    @property
    def is_nvidia(self) -> bool:
        return is_nvidia(self.library)

    def no_gpu(self, next_step: str) -> Fault:
        return Fault(word="zero_devices", found=f"{self.library} finds no GPU", repair=next_step)

    def crash(self, go_without: str, next_step: str) -> Fault:
        """Return the fault of a driver that died or hung.

        ``go_without`` is the setting that excludes this driver; empty if no other driver works.
        """
        look = "look for a hung GPU in dmesg (Xid); " if self.end == "hung" else ""
        without = f", or exclude it with {go_without}" if go_without else ""
        return Fault(
            word="driver_hung" if self.end == "hung" else "driver_aborted",
            found=f"{self.library}: the process {how_it_ended(self)} in {self.stage}",
            repair=f"{look}reinstall that driver{without}; NVIDIA: {next_step}",
        )


def next_step(driver: DriverFacts) -> str:
    """Return the next step where a graphics driver shows no GPU; never what is there already."""
    container = driver.container
    if repair := judge_device_nodes(driver).repair:
        return repair
    if driver.is_wsl or not container.gives("graphics"):
        return container.repair_of("graphics", GRAPHICS[0])
    if not driver.nodes and container.is_container:
        return container.repair_without_gpus
    if not driver.nodes:
        return "install the GPU's driver; Mesa: this user must be able to open /dev/dri/renderD128"
    return "look for NVRM and Xid lines in dmesg; then reinstall the driver's GL packages, on the host"


def ask_each[Driver: DriverAlone](manifests: ManifestsSeen, ask: Callable[[Manifest], Driver]) -> tuple[Driver, ...]:
    with ThreadPoolExecutor() as pool:
        return tuple(pool.map(ask, usable(manifests)))
