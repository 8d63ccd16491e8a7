"""The samplers' files: what is written is read again, and what is kept of it about once a second."""

from dataclasses import replace
from pathlib import Path

import pytest

from suite.external.nvml.values import GpuReading
from suite.records.rank_file import Clock, RankFile
from suite.records.telemetry import Span, Window, counted_energy_j, integrated_energy_j, summarise, window_of
from suite.records.telemetry_file import (
    HostReading,
    Note,
    RankReading,
    Sample,
    TelemetryContent,
    TelemetryStart,
    kept_readings,
    line_of,
    read_telemetry,
)
from suite.records.validation import fault_of
from suite.schema.observations import NodeReadings
from suite.schema.record import RankRecord, RunRecord
from tests.conftest import CaseMaker
from tests.fixtures.results.generated_results import make_record

SAMPLE = Sample(
    time_unix_s=1000.25,
    monotonic_s=7.5,
    reading_time_s=0.001,
    sampler_cpu_s=0.2,
    gpus=(GpuReading(index=0, power_w=512.5, slowdowns=("power_cap",)), GpuReading(index=1)),
    ranks=(RankReading(rank=0, cpu_percent=99.5, memory_gb=2.0, threads=40, core=7), RankReading(rank=1)),
    host=HostReading(cpu_percent=50.0, memory_used_gb=3.0, load=1.5),
)
LINES = (
    line_of(TelemetryStart(rate_hz=5.0, persistence=(True, None))),
    line_of(Note(text="GPU 1 power_w: Not Supported")),
    line_of(SAMPLE),
)


def test_what_is_written_is_read_again_without_a_torn_last_line(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    for torn in (b"", LINES[2][:40]):
        path.write_bytes(b"".join(LINES) + torn)
        assert read_telemetry(path) == TelemetryContent(
            rate_hz=5.0, persistence=(True, None), notes=["GPU 1 power_w: Not Supported"], samples=[SAMPLE]
        )


@pytest.mark.parametrize("line", [LINES[2][:40], b'{"event":"unheard"}', LINES[2].replace(b"512.5", b"NaN").strip()])
def test_a_damaged_line_is_named_and_the_rest_kept(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_bytes(LINES[0] + line + b"\n" + LINES[2])
    content = read_telemetry(path)
    assert content is not None
    assert content.samples == [SAMPLE]
    assert (content.corrupt or "").startswith("telemetry.jsonl line 2 is not an event: ")


# ---- what is kept ----


ZERO_S = 1000.0  # of rank 0's clock
RANK_0 = RankFile(rank=0, clock=Clock(event="clock", zero_monotonic_s=ZERO_S))
COUNTED_J = 9e9  # since the driver was loaded


def sample(number: int, *, gpus: int = 1, ranks: int = 1, counter: bool = True) -> Sample:
    """Return a sample at 5 Hz. Power rises by 10 W a second from 300 W, and a rank changes its core every second."""
    time_s = number / 5
    counted_j = COUNTED_J + 300 * time_s + 5 * time_s**2 if counter and number % 5 == 0 else None
    gpu = GpuReading(
        index=0, sm_utilisation_percent=90 + number // 5 % 5, memory_utilisation_percent=31, memory_used_gb=12.345678,
        power_w=300.0 + 10 * time_s, energy_j=counted_j, sm_clock_mhz=1980, memory_clock_mhz=3201, temperature_c=41,
        slowdowns=("idle", "power_cap") if number < 5 else (),
    )  # fmt: skip
    rank = RankReading(rank=0, cpu_percent=99.54321, memory_gb=7.654321, threads=40, core=3 + number // 5 % 2)
    return Sample(
        time_unix_s=1.7e9 + time_s,
        monotonic_s=ZERO_S - 10.0 + time_s,
        reading_time_s=0.001,
        sampler_cpu_s=0.01,
        gpus=tuple(replace(gpu, index=index) for index in range(gpus)),
        ranks=tuple(replace(rank, rank=index) for index in range(ranks)),
        host=HostReading(cpu_percent=12.34, memory_used_gb=55.5, load=1.23456),
    )


def content(*, gpus: int = 1, ranks: int = 1, counter: bool = True) -> TelemetryContent:
    samples = [sample(number, gpus=gpus, ranks=ranks, counter=counter) for number in range(400)]
    return TelemetryContent(rate_hz=5.0, samples=samples)


@pytest.fixture
def record(make_case: CaseMaker) -> RunRecord:
    """Iterations of 1 s from 2.3 s on."""
    made = make_record(make_case(device="cuda", nnodes=1, nproc_per_node=1, num_envs_global=32, iterations=30))
    columns = {"start_s": tuple(2.3 + row for row in range(30)), "iteration_time_s": (1.0,) * 30}
    return replace(made, ranks=(RankRecord(rank=0, local_rank=0, phases_s={}, settings={}, samples=columns),))


def kept(content: TelemetryContent, record: RunRecord) -> NodeReadings:
    found = kept_readings(content, record, RANK_0)
    assert found is not None
    return found


def test_one_reading_a_second_from_before_the_first_iteration_to_after_the_last(record: RunRecord) -> None:
    columns = kept(content(), record).columns
    assert columns["time_s"] == tuple(range(2, 34))  # iterations run from 2.3 to 32.3 s
    assert columns["rank0.core"] == (3, 4) * 16
    assert columns["gpu0.power_w"][:2] == (420, 430)
    assert columns["gpu0.energy_j"][:2] == (0, 425.0)  # from the first reading on
    assert columns["gpu0.memory_used_gb"][0] == 12.3457
    assert columns["gpu0.slowdowns"] == ("",) * 32
    assert columns["host.load"][0] == 1.23
    assert "host.stolen_percent" not in columns  # nothing was read
    assert {len(column) for column in columns.values()} == {32}


def test_energy_utilisation_and_memory_can_be_computed_again(record: RunRecord) -> None:
    window, _ = window_of(record, RANK_0)
    summary = summarise(content(), window, frames=None, num_gpus=1)
    (gpu,) = summary.gpus
    columns = kept(content(), record).columns
    (span,) = window.spans
    own = Span(start_s=span.start_s - ZERO_S, end_s=span.end_s - ZERO_S)

    def points(name: str) -> list[tuple[float, float]]:
        pairs = zip(columns["time_s"], columns[name], strict=True)
        return [(float(time_s), float(value)) for time_s, value in pairs if time_s is not None and value is not None]

    assert counted_energy_j(points("gpu0.energy_j"), Window(spans=(own,))) == pytest.approx(
        gpu.energy_counter_j, rel=1e-6
    )
    assert integrated_energy_j(points("gpu0.power_w"), Window(spans=(own,))) == pytest.approx(
        gpu.energy_integrated_j, rel=1e-6
    )
    assert gpu.sm_utilisation_percent is not None
    assert gpu.memory_used_gb is not None
    inside = [value for time_s, value in points("gpu0.sm_utilisation_percent") if own.start_s <= time_s <= own.end_s]
    assert sum(inside) / len(inside) == pytest.approx(gpu.sm_utilisation_percent.mean, rel=0.01)
    assert max(value for _, value in points("gpu0.memory_used_gb")) == pytest.approx(gpu.memory_used_gb.max, rel=1e-5)


def test_readings_lie_on_the_clock_of_rank_0s_node(record: RunRecord) -> None:
    ahead = [replace(one, monotonic_s=one.monotonic_s + 70_000.0) for one in content().samples]
    found = kept_readings(replace(content(), samples=ahead), record, RANK_0, node=1, offset_s=70_000.0)
    assert found == replace(kept(content(), record), node=1)


def test_columns_of_unequal_length_are_a_fault(record: RunRecord) -> None:
    whole = replace(record, readings=(kept(content(), record),))
    assert fault_of(whole) is None
    torn = NodeReadings(node=2, columns={"time_s": (1.0, 2.0), "rank0.core": (3,)})
    assert fault_of(replace(record, readings=(torn,))) == ("node 2 has 2 readings of time_s and 1 of rank0.core")
