"""NVML, read once: which GPUs are visible, what is said of them, and what is not there."""

import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from suite.errors import WorkerEnvironmentError
from suite.external.nvml.gpus import read_gpus, read_state
from suite.external.nvml.values import NvmlState
from suite.launch.containers import requested_gpus
from suite.schema.record import Gpu
from tests.fixtures.stand_ins.fake_nvml import answer, refusal

pytestmark = pytest.mark.usefixtures("two_gpus")


def test_gpus_are_read() -> None:
    gpus, driver_version, cuda_driver_version = read_gpus()
    assert gpus == (
        Gpu(index=0, name="NVIDIA H200", memory_gb=150.8, compute_capability="9.0"),
        Gpu(index=1, name="NVIDIA GB10", memory_gb=None, compute_capability="12.1"),
    )
    assert (driver_version, cuda_driver_version) == ("580.65.06", "13.2")


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("1", ["NVIDIA GB10"]),
        ("1, 0", ["NVIDIA GB10", "NVIDIA H200"]),
        ("GPU-5b", ["NVIDIA GB10"]),
        ("GPU-5a7,GPU-5b", ["NVIDIA H200", "NVIDIA GB10"]),  # as CUDA abbreviates
        ("GPU-5", []),  # which is both
        ("0,7,1", ["NVIDIA H200"]),
        ("4294967296", []),  # NVML would take it for 0
        ("GPU-z,GPU-5a7f", []),
        ("", []),
        ("-1", []),
    ],
)
def test_only_visible_gpus_count(visible: str, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpus, _, _ = read_gpus()
    assert [gpu.name for gpu in gpus] == names
    assert [gpu.index for gpu in gpus] == list(range(len(names)))
    state = read_state()
    assert [gpu.name for gpu in state.gpus] == names
    assert state.num_gpus == 2


@pytest.mark.parametrize(
    ("visible", "gpus"),
    [
        ("GPU-5a7,1,GPU-5b", ("GPU-5a7f", "1", "GPU-5b")),
        ("GPU-5,GPU-z", ("GPU-5", "GPU-z")),  # which the engine refuses
        ("MIG-5a7", ("MIG-5a7",)),
    ],
)
def test_a_container_engine_is_asked_for_whole_uuids(visible: str, gpus: tuple[str, ...]) -> None:
    assert requested_gpus("cuda", {"CUDA_VISIBLE_DEVICES": visible}) == gpus


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED])
def test_no_driver_means_no_gpus(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(pynvml, "nvmlInit", refusal(code))
    assert read_gpus() == ((), None, None)
    assert requested_gpus("cuda", {"CUDA_VISIBLE_DEVICES": "GPU-5a7"}) == ("GPU-5a7",)


def test_broken_driver_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(pynvml, "nvmlInit", refusal(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH))
    with pytest.raises(WorkerEnvironmentError, match="nvidia-smi"):
        read_gpus()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # the way out that the message names
    assert read_gpus() == ((), None, None)


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "no_library"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "no_driver"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "no_permission"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "version_mismatch"),
        (pynvml.NVML_ERROR_UNKNOWN, "failed"),
    ],
)
def test_every_end_of_nvml_has_its_word(code: int, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlInit", refusal(code))
    state = read_state()
    assert state.fault == fault
    assert state.message
    assert (state.driver_version, state.num_gpus, state.gpus) == (None, None, ())


@pytest.mark.parametrize("function", ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName"])
def test_a_lost_gpu_ends_with_what_to_do(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, function, refusal(pynvml.NVML_ERROR_GPU_IS_LOST))
    with pytest.raises(WorkerEnvironmentError, match="nvidia-smi"):
        read_gpus()


def test_a_lost_gpu_is_a_fault_and_not_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", refusal(pynvml.NVML_ERROR_GPU_IS_LOST))
    assert read_state() == NvmlState(fault="failed", message="GPU is lost")


def test_what_nvml_refuses_is_none_with_its_reason() -> None:
    state = read_state()
    assert (state.driver_version, state.nvml_version, state.cuda_driver_version) == ("580.65.06", "580.65.06", "13.2")
    h200, gb10 = state.gpus
    assert (h200.memory_gb, h200.memory_used_gb, h200.compute_capability) == (150.755, 1.0, "9.0")
    assert (gb10.memory_gb, gb10.power_limit_w, gb10.mig, gb10.slowdowns) == (None, None, None, None)
    assert gb10.unanswered["memory_gb"] == "Not Supported"
    assert "memory_gb" not in h200.unanswered
    refused = {
        field.name for field in dataclasses.fields(gb10) if getattr(gb10, field.name) is None
    }  # every None has its reason
    assert refused <= set(gb10.unanswered)
    assert json.loads(json.dumps(dataclasses.asdict(state)))["gpus"][1]["unanswered"]["mig"] == "Not Supported"


def test_settings_are_read_in_our_units(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(
        monkeypatch,
        nvmlDeviceGetUUID="GPU-a",
        nvmlDeviceGetClockInfo=345,
        nvmlDeviceGetMaxClockInfo=1980,
        nvmlDeviceGetApplicationsClock=1500,
        nvmlDeviceGetDefaultApplicationsClock=1980,
        nvmlDeviceGetPowerManagementLimit=700_000,
        nvmlDeviceGetPowerManagementDefaultLimit=700_000,
        nvmlDeviceGetTemperatureV=31,
        nvmlDeviceGetEccMode=[1, 0],
        nvmlDeviceGetDefaultEccMode=[1],
        nvmlDeviceGetTotalEccErrors=2,
        nvmlDeviceGetPersistenceMode=1,
        nvmlDeviceGetMigMode=[0, 1],
        nvmlDeviceGetCurrPcieLinkWidth=8,
        nvmlDeviceGetMaxPcieLinkWidth=16,
        nvmlDeviceGetComputeRunningProcesses_v3=[SimpleNamespace(usedGpuMemory=500_000_000)] * 2,
    )
    gpu = read_state().gpus[0]
    assert (gpu.uuid, gpu.sm_clock_mhz, gpu.sm_clock_max_mhz) == ("GPU-a", 345, 1980)
    assert (gpu.sm_clock_setting_mhz, gpu.sm_clock_setting_default_mhz) == (1500, 1980)
    assert (gpu.power_limit_w, gpu.power_limit_default_w, gpu.temperature_c) == (700.0, 700.0, 31)
    assert (gpu.ecc, gpu.ecc_after_restart, gpu.ecc_default, gpu.ecc_uncorrected_errors) == (True, False, True, 2)
    assert (gpu.persistence, gpu.mig, gpu.pcie_width, gpu.pcie_width_max) == (True, False, 8, 16)
    assert (gpu.compute_processes, gpu.compute_processes_memory_gb) == (2, 1.0)


def test_a_mig_instance_is_one_where_nvml_tells_only_of_whole_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, nvmlDeviceGetUUID="MIG-5a7f")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMigMode", refusal(pynvml.NVML_ERROR_INVALID_ARGUMENT))
    assert [gpu.mig for gpu in read_state().gpus] == [True, True]


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0, ()),
        (0x1, ("idle",)),
        (0x2 | 0x4, ("clocks_setting", "power_cap")),
        (0x20 | 0x40 | 0x80, ("thermal_software", "thermal_hardware", "power_brake")),
        (0x8 | 0x4000, ("hardware_slowdown", "0x4000")),
    ],
)
def test_slowdowns_are_words(bits: int, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, nvmlDeviceGetCurrentClocksEventReasons=bits)
    assert read_state().gpus[0].slowdowns == words


def test_links_between_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, nvmlDeviceGetTopologyCommonAncestor=pynvml.NVML_TOPOLOGY_SYSTEM)
    assert [gpu.links for gpu in read_state().gpus] == [("self", "across_numa_nodes"), ("across_numa_nodes", "self")]
    answer(monkeypatch, nvmlDeviceGetP2PStatus=pynvml.NVML_P2P_STATUS_OK)
    assert [gpu.links for gpu in read_state().gpus] == [("self", "nvlink"), ("nvlink", "self")]
    assert [gpu.peer_access for gpu in read_state().gpus] == [("self", "ok"), ("ok", "self")]
    answer(monkeypatch, nvmlDeviceGetP2PStatus=pynvml.NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED)
    assert read_state().gpus[0].peer_access == ("self", "chipset_not_supported")
    answer(monkeypatch, nvmlDeviceGetP2PStatus=99)
    assert read_state().gpus[0].peer_access == ("self", "unknown")


def test_peer_access_that_nvml_does_not_tell_is_none_with_its_reason() -> None:
    (gpu, _) = read_state().gpus
    assert gpu.peer_access == ("self", None)
    assert gpu.unanswered["peer_access[1]"] == "Not Supported"


def test_active_nvlinks_are_counted_as_far_as_the_gpu_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def state(_: int, link: int) -> int:
        if link >= 18:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return int(link != 3)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetNvLinkState", state)
    assert read_state().gpus[0].nvlinks_active == 17


def test_fabric_state_is_read_out_of_nvmls_struct(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(_: int, pointer: Any) -> None:
        pointer._obj.state = pynvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS

    monkeypatch.setattr(pynvml, "nvmlDeviceGetGpuFabricInfoV", fill)
    assert read_state().gpus[0].fabric == "in_progress"
