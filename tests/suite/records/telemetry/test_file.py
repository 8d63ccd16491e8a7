"""The format of telemetry.jsonl: what is written is read again, and damage is told from a torn end."""

from pathlib import Path

import pytest

from suite.external.nvml.values import GpuReading
from suite.records.telemetry_file import HostReading, Note, RankReading, Sample, TelemetryStart, line_of, read_telemetry

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


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_bytes(b"".join(LINES))
    content = read_telemetry(path)
    assert content is not None
    assert (content.rate_hz, content.persistence) == (5.0, (True, None))
    assert content.notes == ["GPU 1 power_w: Not Supported"]
    assert content.samples == [SAMPLE]
    assert content.samples[0].gpus[1].power_w is None
    assert content.corrupt is None


@pytest.mark.parametrize("length", [1, 40, len(LINES[2]) - 2])
def test_a_torn_last_line_is_ignored(length: int, tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_bytes(b"".join(LINES) + LINES[2][:length])
    content = read_telemetry(path)
    assert content is not None
    assert (len(content.samples), content.corrupt) == (1, None)


@pytest.mark.parametrize(
    "line",
    [
        LINES[2][:40],
        b"\x00" * 10,
        b'{"event":"unheard"}',
        LINES[2].replace(b"512.5", b"NaN").strip(),
    ],
)
def test_a_damaged_line_is_named_and_the_rest_kept(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    path.write_bytes(LINES[0] + line + b"\n" + LINES[2])
    content = read_telemetry(path)
    assert content is not None
    assert content.samples == [SAMPLE]
    assert content.corrupt is not None
    assert content.corrupt.startswith("telemetry.jsonl line 2 is not an event: ")
