"""NVML, read once and again and again: which GPUs are visible, their values, and what is not there.

A fake of pynvml's functions, which need a GPU, has answers as NVML documents them.
"""

import dataclasses
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from suite.errors import WorkerEnvironmentError
from suite.external.nvml import gpus as nvml
from suite.external.nvml.gpus import LiveGpus, read_gpus, read_state
from suite.external.nvml.values import GpuReading
from suite.launch.containers import requested_gpus
from suite.schema.record import Gpu

pytestmark = pytest.mark.usefixtures("two_gpus")
UUIDS = ("GPU-5a7f", "GPU-5b")


def refusal(code: int) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise pynvml.NVMLError(code)

    return refuse


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake NVML of a host with an H200 and a GPU that shares the host's memory; every other question is refused."""

    def by_index(index: int) -> int:
        if index > 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return index

    def by_uuid(uuid: str) -> int:
        if uuid not in UUIDS:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return UUIDS.index(uuid)

    def memory(handle: int) -> SimpleNamespace:
        if handle == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(total=150_754_820_096, used=1_000_000_000)

    answers = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.65.06",
        "nvmlSystemGetNVMLVersion": lambda: "13.580.65.06",
        "nvmlSystemGetCudaDriverVersion_v2": lambda: 13020,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": by_index,
        "nvmlDeviceGetHandleByUUID": by_uuid,
        "nvmlDeviceGetUUID": lambda handle: UUIDS[handle],
        "nvmlDeviceGetName": lambda handle: ("NVIDIA H200", "NVIDIA GB10")[handle],
        "nvmlDeviceGetMemoryInfo": memory,
        "nvmlDeviceGetCudaComputeCapability": lambda handle: ((9, 0), (12, 1))[handle],
    }
    for name in vars(pynvml):
        if name.startswith("nvmlDeviceGet"):
            monkeypatch.setattr(pynvml, name, refusal(pynvml.NVML_ERROR_NOT_SUPPORTED))
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def answer(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
    """Let the fake answer more questions, the same for every GPU."""
    for name, value in answers.items():
        monkeypatch.setattr(pynvml, name, lambda *_, value=value: value)


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
    if fault.startswith("no_"):
        assert read_gpus() == ((), None, None)
        assert requested_gpus("cuda", {"CUDA_VISIBLE_DEVICES": "GPU-5a7"}) == ("GPU-5a7",)


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_NO_PERMISSION])
@pytest.mark.parametrize("function", ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName"])
def test_a_lost_gpu_ends_with_what_to_do(function: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, function, refusal(code))
    with pytest.raises(WorkerEnvironmentError, match="nvidia-smi"):
        read_gpus()
    if function == "nvmlDeviceGetHandleByIndex":
        assert read_state().fault == ("failed" if code == pynvml.NVML_ERROR_GPU_IS_LOST else "no_permission")


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
    assert (h200.peer_access, h200.unanswered["peer_access[1]"]) == (("self", None), "Not Supported")
    assert json.loads(json.dumps(dataclasses.asdict(state)))["gpus"][1]["unanswered"]["mig"] == "Not Supported"


def test_settings_are_read_in_our_units(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(
        monkeypatch,
        nvmlDeviceGetUUID="GPU-a",
        nvmlDeviceGetClockInfo=345,
        nvmlDeviceGetMaxClockInfo=1980,
        nvmlDeviceGetApplicationsClock=1500,
        nvmlDeviceGetDefaultApplicationsClock=1600,
        nvmlDeviceGetPowerManagementLimit=700_000,
        nvmlDeviceGetPowerManagementDefaultLimit=600_000,
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
    expected = {
        "uuid": "GPU-a", "sm_clock_mhz": 345, "sm_clock_max_mhz": 1980, "sm_clock_setting_mhz": 1500,
        "sm_clock_setting_default_mhz": 1600, "power_limit_w": 700.0, "power_limit_default_w": 600.0,
        "temperature_c": 31, "ecc": True, "ecc_after_restart": False, "ecc_default": True,
        "ecc_uncorrected_errors": 2, "persistence": True, "mig": False, "pcie_width": 8, "pcie_width_max": 16,
        "compute_processes": 2, "compute_processes_memory_gb": 1.0,
    }  # fmt: skip
    assert dataclasses.asdict(read_state().gpus[0]).items() >= expected.items()


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


# ---- read again and again beside a run ----


def test_live_values_are_in_our_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetClockInfo", lambda _, kind: {1: 1980, 2: 3201}[kind])
    power_cap_and_idle = pynvml.nvmlClocksEventReasonSwPowerCap | pynvml.nvmlClocksEventReasonGpuIdle
    answer(
        monkeypatch,
        nvmlDeviceGetUtilizationRates=SimpleNamespace(gpu=97, memory=41),
        nvmlDeviceGetPowerUsage=512_345,
        nvmlDeviceGetTotalEnergyConsumption=9_000_500,
        nvmlDeviceGetTemperatureV=64,
        nvmlDeviceGetCurrentClocksEventReasons=power_cap_and_idle,
        nvmlDeviceGetPersistenceMode=1,
    )
    gpus = LiveGpus(1)
    expected = GpuReading(
        index=0, sm_utilisation_percent=97, memory_utilisation_percent=41, memory_used_gb=None, power_w=512.345,
        energy_j=9000.5, sm_clock_mhz=1980, memory_clock_mhz=3201, temperature_c=64, slowdowns=("idle", "power_cap"),
    )  # fmt: skip
    assert gpus.read() == (expected,)  # of the first visible GPU only, whose memory is the host's
    assert gpus.persistence == (True,)
    assert gpus.notes == {"GPU 0 memory_used_gb": "Not Supported"}
    gpus.close()
    assert gpus.read() == ()


def test_live_values_that_nvml_refuses_are_none_and_noted_once_each() -> None:
    gpus = LiveGpus(2)
    assert gpus.read() == (GpuReading(index=0, memory_used_gb=1.0), GpuReading(index=1))
    notes = dict(gpus.notes)
    assert gpus.persistence == (None, None)
    assert len([what for what in notes if what.startswith("GPU 0 ")]) == 8
    assert notes["GPU 1 power_w"] == "Not Supported"
    gpus.read()
    assert gpus.notes == notes


def test_the_energy_counter_is_read_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, nvmlDeviceGetTotalEnergyConsumption=9_000_500, nvmlDeviceGetPowerUsage=500_000)
    now_s = iter([0.2 * number for number in range(11)])
    monkeypatch.setattr(nvml, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
    gpus = LiveGpus(2)
    readings = [gpus.read() for _ in range(11)]
    assert [first.energy_j for first, _ in readings] == [9000.5 if number % 5 == 0 else None for number in range(11)]
    assert {second.power_w for _, second in readings} == {500.0}
    assert {first.energy_j == second.energy_j for first, second in readings} == {True}


def test_fewer_gpus_than_asked_for_are_noted() -> None:
    gpus = LiveGpus(3)
    assert len(gpus.read()) == 2
    assert gpus.notes["GPUs"] == "only 2 of 3 are visible"


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("nvmlInit", pynvml.NVML_ERROR_LIBRARY_NOT_FOUND),
        ("nvmlInit", pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH),
        ("nvmlDeviceGetHandleByIndex", pynvml.NVML_ERROR_GPU_IS_LOST),
    ],
)
def test_a_broken_nvml_leaves_live_values_empty(function: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, function, refusal(code))
    gpus = LiveGpus(1)
    assert gpus.read() == ()
    assert gpus.notes == {"GPUs": str(pynvml.NVMLError(code))}
    gpus.close()


def test_a_gpu_lost_while_it_works_is_none_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, nvmlDeviceGetPowerUsage=500_000)
    gpus = LiveGpus(1)
    assert gpus.read()[0].power_w == 500.0
    monkeypatch.setattr(pynvml, "nvmlDeviceGetPowerUsage", refusal(pynvml.NVML_ERROR_GPU_IS_LOST))
    assert gpus.read()[0].power_w is None
    assert gpus.notes["GPU 0 power_w"] == "GPU is lost"


def test_without_gpus_nvml_is_not_even_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlInit", refusal(pynvml.NVML_ERROR_UNKNOWN))
    gpus = LiveGpus(0)
    assert (gpus.read(), gpus.notes) == ((), {})
