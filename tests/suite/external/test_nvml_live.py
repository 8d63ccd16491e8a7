"""NVML, read again and again beside a run, whatever it refuses meanwhile."""

from types import SimpleNamespace

import pynvml
import pytest

import suite.external.nvml.gpus
from suite.external.nvml.gpus import LiveGpus
from suite.external.nvml.values import GpuReading
from tests.fixtures.stand_ins.fake_nvml import answer, refusal

pytestmark = pytest.mark.usefixtures("two_gpus")


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
    monkeypatch.setattr(suite.external.nvml.gpus, "time", SimpleNamespace(monotonic=lambda: next(now_s)))
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
