"""The GPUs' checks. States of GPUs are made up, as no GPU is here; deaths of the asking process are real ones."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from suite.env_check.check import Judgement
from suite.env_check.container import Container
from suite.env_check.gpu import gpus
from suite.env_check.gpu.driver import drivers_for, read_driver
from suite.env_check.gpu.gpus import (
    FABRIC,
    SETTINGS,
    judge_compute_capability,
    judge_denoiser,
    judge_gpu_links,
    judge_gpus_alike,
    judge_gpus_present,
    judge_mig,
    judge_rt_cores,
)
from suite.external.nvml.values import NvmlState
from tests.fixtures.machines.nvidia_gpus import (
    APPTAINER,
    DOCKER,
    H200,
    HEALTHY,
    HOST,
    NO_DRIVER,
    OPEN_MODULES,
    second,
)  # fmt: skip

NONE: Final = NvmlState(fault="no_library", message="NVML Shared Library Not Found")

JUDGES: dict[str, Callable[[NvmlState], Judgement]] = {
    "compute_capability": lambda state: judge_compute_capability(state, drivers_for("kitless")),
    "gpus_alike": judge_gpus_alike,
    "mig": judge_mig,
    "gpu_links": judge_gpu_links,
    **{check.name: check.judge for check in (*SETTINGS, FABRIC)},
}


@pytest.mark.parametrize("name", JUDGES)
def test_healthy_gpus_are_ok_and_none_are_not_checked(name: str) -> None:
    assert JUDGES[name](HEALTHY).verdict == "ok"
    check = JUDGES[name](NONE)
    assert (check.verdict, check.found) == ("not_checked", "no GPU")


@pytest.mark.parametrize(
    ("name", "changes", "verdict", "fault"),
    [
        ("compute_capability", {"compute_capability": "7.0"}, "failure", "compute_capability_too_old"),
        ("gpus_alike", {"name": "NVIDIA H100"}, "warning", "gpus_differ"),
        ("gpus_alike", {"power_limit_w": 500.0}, "warning", "gpus_differ"),
        ("mig", {"mig": True}, "failure", "mig_enabled"),
        ("other_processes", {"compute_processes": 2}, "warning", "gpu_in_use"),
        ("gpu_clocks", {"sm_clock_setting_mhz": 1200}, "warning", "clocks_limited"),
        ("gpu_clocks", {"slowdowns": ("clocks_setting",)}, "warning", "clocks_limited"),
        ("gpu_throttling", {"slowdowns": ("thermal_hardware",)}, "warning", "gpu_throttled"),
        ("power_limit", {"power_limit_w": 500.0}, "warning", "power_limited"),
        ("ecc", {"ecc": False, "ecc_after_restart": False}, "warning", "ecc_changed"),
        ("ecc", {"ecc_after_restart": False}, "warning", "ecc_changed"),
        ("ecc_errors", {"ecc_uncorrected_errors": 1}, "failure", "ecc_errors"),
        ("persistence", {"persistence": False}, "warning", "persistence_off"),
        ("pcie_width", {"pcie_width": 8}, "warning", "pcie_width_reduced"),
        ("gpu_links", {"links": ("host_bridge", "self")}, "warning", "nvlink_partial"),
        ("gpu_links", {"nvlinks_active": 17}, "warning", "nvlinks_differ"),
        ("fabric", {"fabric": "in_progress"}, "warning", "fabric_not_ready"),
    ],
)
def test_a_fault_of_one_gpu_has_its_word(name: str, changes: dict[str, Any], verdict: str, fault: str) -> None:
    check = JUDGES[name](second(**changes))
    assert (check.verdict, check.fault) == (verdict, fault)
    assert check.evidence["gpus"][1]["index"] == 1


FIELDS: Final = {check.name: check.fields[-1] for check in (*SETTINGS, FABRIC)}


@pytest.mark.parametrize(
    ("name", "field"), {**FIELDS, "compute_capability": "compute_capability", "mig": "mig"}.items()
)
def test_what_nvml_does_not_tell_is_never_ok(name: str, field: str) -> None:
    check = JUDGES[name](second(**{field: None}, unanswered={field: "Not Supported"}))
    assert check.verdict == "not_checked"
    assert f"{field} of GPU 1" in check.found
    assert check.evidence["gpus"][1]["unanswered"] == {field: "Not Supported"}


def test_links_and_mig_of_other_machines() -> None:
    assert judge_mig(replace(HEALTHY, gpus=(replace(H200, mig=True),))).verdict == "warning"
    check = judge_gpu_links(second(links=(None, "self")))
    assert check.verdict == "not_checked"
    single = replace(HEALTHY, gpus=(replace(H200, links=("self",)),))
    assert judge_gpu_links(single).found == "1 GPU, nothing to join"
    over_pcie = tuple(replace(state, links=("host_bridge",) * 2, nvlinks_active=None) for state in HEALTHY.gpus)
    check = judge_gpu_links(replace(HEALTHY, gpus=over_pcie))
    assert (check.verdict, check.found) == ("ok", "host_bridge; no NVLink")
    refused = tuple(replace(state, peer_access=("self", "chipset_not_supported")) for state in over_pcie)
    assert judge_gpu_links(replace(HEALTHY, gpus=refused)).found.endswith(
        "; no peer access by NVML: chipset_not_supported"
    )


@pytest.mark.parametrize(
    ("state", "num_pci_gpus", "verdict", "fault"),
    [
        (NONE, 0, "failure", "no_gpu"),
        (NONE, 2, "not_checked", None),  # driver_versions names the missing driver
        (replace(HEALTHY, gpus=()), 2, "failure", "gpus_hidden"),
        (replace(HEALTHY, gpus=(), num_gpus=0), 0, "failure", "no_gpu"),
        (NvmlState(fault="hung", driver_version="580.65.06", message="no answer"), 2, "not_checked", None),
    ],
)
def test_no_gpus(state: NvmlState, num_pci_gpus: int, verdict: str, fault: str | None) -> None:
    check = judge_gpus_present(state, replace(NO_DRIVER, num_pci_gpus=num_pci_gpus))
    assert (check.verdict, check.fault, check.evidence) == (verdict, fault, state)


@pytest.mark.parametrize(
    ("on_bus", "nodes", "listed", "changes", "verdict"),
    [
        (1, 1, 0, {}, "failure"),
        (8, 8, 7, {}, "warning"),
        (8, 7, 7, {}, "warning"),  # a GPU that the driver did not even number
        (8, 1, 1, {"container": DOCKER}, "ok"),  # a container sees the whole bus
        (8, 2, 1, {"container": DOCKER}, "warning"),
        (2, 2, 1, {"refusals": {"/dev/nvidia1": "EPERM"}}, "ok"),  # a job's GPU
        (2, 2, 1, {"refusals": {"/dev/nvidia1": "EIO"}}, "warning"),
        (0, 1, 1, {}, "ok"),  # a sandbox that hides the bus
    ],
)
def test_gpus_on_the_bus_are_compared_with_those_that_nvml_lists(
    on_bus: int, nodes: int, listed: int, changes: dict[str, Any], verdict: str
) -> None:
    """RmInitAdapter failed: the driver is loaded, its nodes are there, and nvidia-smi finds no device."""
    names = tuple(f"/dev/nvidia{number}" for number in range(nodes))
    driver = replace(NO_DRIVER, kernel_version="580.65.06", nodes=names, num_pci_gpus=on_bus, **changes)
    gpus = tuple(replace(H200, index=index) for index in range(listed))
    check = judge_gpus_present(NvmlState(driver_version="580.65.06", num_gpus=listed, gpus=gpus), driver)
    assert (check.verdict, check.fault) == (verdict, None if verdict == "ok" else "gpus_not_initialised")
    if check.repair:
        for word in ("dmesg | grep NVRM", "Blackwell and newer GPUs need the open", "Above 4G Decoding"):
            assert word in check.repair
        with_open = judge_gpus_present(NvmlState(num_gpus=listed, gpus=gpus), replace(driver, kernel_line=OPEN_MODULES))
        assert "Blackwell" not in (with_open.repair or "Blackwell")  # it has the open modules already


@pytest.mark.parametrize(
    ("name", "capability", "verdict"),
    [
        ("NVIDIA H200", "9.0", "failure"),
        ("NVIDIA GeForce GTX 1650", "7.5", "failure"),
        ("Quadro T2000 with Max-Q Design", "7.5", "failure"),
        ("NVIDIA GeForce GTX 1660 Ti", "7.5", "failure"),
        ("Tesla T4", "7.5", "ok"),
        ("NVIDIA GeForce RTX 5090", "12.0", "ok"),
        ("NVIDIA Thor", "11.0", "not_checked"),
        ("NVIDIA something", None, "not_checked"),
    ],
)
def test_rt_cores(name: str, capability: str | None, verdict: str) -> None:
    state = replace(HEALTHY, gpus=(replace(H200, name=name, compute_capability=capability),))
    check = judge_rt_cores(state)
    assert check.verdict == verdict
    assert name in check.found
    if verdict == "failure":
        assert check.fault == "no_rt_cores"
        assert "kitless" in (check.repair or "")
    assert (check.evidence["gpus"][0].source is None) == (verdict == "not_checked")


def test_one_gpu_without_rt_cores_is_enough_for_a_failure() -> None:
    state = second(name="NVIDIA L40S", compute_capability="8.9")
    assert judge_rt_cores(state).found.startswith("NVIDIA H200: none")
    assert judge_rt_cores(NONE).verdict == "not_checked"


FAKE_PYNVML = """
import os, time
class NVMLError(Exception): pass
def __getattr__(name): return 0
def nvmlInit():
    {body}
"""


@pytest.mark.parametrize(
    ("body", "fault", "message"),
    [
        ("os.abort()", "crashed", "SIGABRT"),
        ("time.sleep(60)", "hung", "no answer in"),
        ("raise MemoryError('out of everything')", "failed", "MemoryError: out of everything"),
    ],
)
def test_a_broken_driver_does_not_break_the_check(body: str, fault: str, message: str, tmp_path: Path) -> None:
    """A fake pynvml, in the child, dies as a broken driver library does."""
    (tmp_path / "pynvml.py").write_text(FAKE_PYNVML.format(body=body))
    state = gpus.read_nvml({**os.environ, "PYTHONPATH": str(tmp_path)}, timeout_s=1.0 if fault == "hung" else 60.0)
    assert state.fault == fault
    assert message in (state.message or "")


@pytest.mark.parametrize(
    ("container", "name", "has_file", "verdict", "word"),
    [
        (DOCKER, "NVIDIA L40S", False, "warning", "docker run --volume /usr/share/nvidia/nvoptix.bin:"),
        (replace(DOCKER, driver_capabilities="compute,utility"), "NVIDIA L40S", False, "warning", "graphics"),
        (APPTAINER, "NVIDIA L40S", False, "warning", "--bind /usr/share"),
        (DOCKER, "NVIDIA L40S", True, "ok", ""),
        (DOCKER, "NVIDIA H200", False, "not_checked", ""),
        (HOST, "NVIDIA L40S", False, "ok", ""),
    ],
)
def test_the_weights_of_the_denoiser(
    container: Container, name: str, has_file: bool, verdict: str, word: str, tmp_path: Path
) -> None:
    if has_file:
        (tmp_path / "usr/share/nvidia").mkdir(parents=True)
        (tmp_path / "usr/share/nvidia/nvoptix.bin").touch()
    with_graphics = replace(container, driver_capabilities=container.driver_capabilities or "all")
    driver = replace(read_driver(os.environ, tmp_path), container=with_graphics)
    capability = "9.0" if name == "NVIDIA H200" else "8.9"
    check = judge_denoiser(driver, second(name=name, compute_capability=capability))
    assert (check.verdict, check.fault) == (verdict, "no_denoiser_weights" if verdict == "warning" else None)
    assert word in (check.repair or "")
