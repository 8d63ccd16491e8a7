"""Telemetry against closed forms: what a sampler writes is read, reduced over the window, and kept once a second."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.external.nvml.values import GpuReading
from suite.records.rank_file import Clock, RankFile, Start
from suite.records.telemetry import Window, clipped, counted_energy_j, integrated_energy_j, summarise, summarise_nodes
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
from suite.schema.observations import Spread, TelemetrySummary, Transport
from suite.schema.record import NodeClock, RankRecord, RunRecord
from tests.conftest import CaseMaker
from tests.fixtures.results.generated_results import make_record

WINDOW = Window(spans=((1.03, 11.03),))  # between samples

type GpuAt = Callable[[float], tuple[GpuReading, ...]]


def sample(time_s: float, gpus: tuple[GpuReading, ...] = (), **changes: Any) -> Sample:
    host = HostReading(
        cpu_percent=50.0,
        stolen_percent=1.0 if time_s > 6 else 0.0,
        others_percent=8.0 if time_s > 6 else -2.0,
        memory_used_gb=time_s,
    )
    made = Sample(
        time_unix_s=1.7e9 + time_s,
        monotonic_s=time_s,
        reading_time_s=0.001,
        sampler_cpu_s=0.2 + 0.004 * time_s,
        gpus=gpus,
        host=host,
    )
    return replace(made, **changes)


def content(gpus_at: GpuAt = lambda _: (), *, until_s: float = 13.0) -> TelemetryContent:
    """Samples at 5 Hz from 0 s on."""
    times_s = [number / 5 for number in range(round(until_s * 5) + 1)]
    return TelemetryContent(rate_hz=5.0, samples=[sample(time_s, gpus_at(time_s)) for time_s in times_s])


def constant(*, power_w: float = 300.0, counter_w: float | None = 300.0, index: int = 0) -> GpuAt:
    """One GPU that takes ``power_w``, while its counter grows by ``counter_w``."""
    return lambda time_s: (
        GpuReading(index=index, power_w=power_w, energy_j=None if counter_w is None else 5e6 + counter_w * time_s),
    )


def summary_of(gpus_at: GpuAt, *, num_gpus: int = 1) -> TelemetrySummary:
    return summarise(content(gpus_at), WINDOW, frames=6000, num_gpus=num_gpus)


# ---- the file ----


SAMPLE = sample(
    7.5,
    (GpuReading(index=0, power_w=512.5, slowdowns=("power_cap",)), GpuReading(index=1)),
    ranks=(RankReading(rank=0, cpu_percent=99.5, memory_gb=2.0, threads=40, core=7), RankReading(rank=1)),
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
    damaged = read_telemetry(path)
    assert damaged is not None
    assert damaged.samples == [SAMPLE]
    assert (damaged.corrupt or "").startswith("telemetry.jsonl line 2 is not an event: ")


# ---- energy and power ----


def loaded_anew(time_s: float) -> tuple[GpuReading, ...]:
    return (GpuReading(index=0, power_w=300.0, energy_j=300 * (time_s if time_s < 6 else time_s - 6)),)


def unread(time_s: float) -> tuple[GpuReading, ...]:
    """The mean of these readings would take the half in which some are missing for less than it was."""
    return (GpuReading(index=0, power_w=None if 6.1 <= time_s <= 7.5 else 100.0 if time_s < 6 else 300.0),)


@pytest.mark.parametrize(
    ("gpus_at", "counter_j", "integrated_j", "mean_w", "agrees"),
    [
        (constant(), 3000.0, 3000.0, 300.0, True),
        (constant(counter_w=286.0), 2860.0, 3000.0, 300.0, True),
        (constant(counter_w=316.0), 3160.0, 3000.0, 300.0, False),
        (loaded_anew, None, 3000.0, 300.0, None),
        (unread, None, 2026.0, 202.6, None),
    ],
)
def test_energy_is_that_of_the_counter_else_of_power_over_time_and_each_checks_the_other(
    gpus_at: GpuAt, counter_j: float | None, integrated_j: float, mean_w: float, agrees: bool | None
) -> None:
    summary = summary_of(gpus_at)
    (gpu,) = summary.gpus
    assert (gpu.energy_counter_j, gpu.energy_integrated_j) == (counter_j, integrated_j)
    energy_j = counter_j or integrated_j  # the counter is taken, flagged or not
    assert (summary.energy_j, summary.energy_agrees, len(summary.notes)) == (energy_j, agrees, agrees is False)
    assert summary.frames_per_joule == pytest.approx(6000 / energy_j, rel=1e-5)
    assert gpu.power_w == summary.power_w == Spread(min=100.0 if gpus_at is unread else 300.0, mean=mean_w, max=300.0)
    off = None if counter_j is None else (integrated_j - counter_j) / max(integrated_j, counter_j)
    assert gpu.energy_disagreement == (off if off is None else pytest.approx(off, rel=1e-5))


@pytest.mark.parametrize(
    ("until_s", "first_s", "last_s", "energy_j"),
    [
        (10.0, 99.0, 99.0, None),  # the sampler ended too early
        (13.0, 0.0, 1.05, None),  # it began too late
        (13.0, 5.0, 7.3, None),  # more than 2 s without a value
        (13.0, 5.0, 6.0, 3000.0),  # a short gap is bridged
    ],
)
def test_energy_is_unknown_when_the_window_is_not_covered(
    until_s: float, first_s: float, last_s: float, energy_j: float | None
) -> None:
    """No sample from ``first_s`` to ``last_s``; 300 W."""
    times_s = [number / 5 for number in range(round(until_s * 5) + 1)]
    kept_s = [time_s for time_s in times_s if not first_s <= time_s <= last_s]
    assert integrated_energy_j(clipped([(time_s, 300.0) for time_s in kept_s], WINDOW)) == energy_j
    assert counted_energy_j([(time_s, 300.0 * time_s) for time_s in kept_s], WINDOW) == energy_j


def test_energy_of_turns_is_that_of_each_and_no_counter_tells_it() -> None:
    """The counter is read once a second, so it would give a turn what others took."""
    turns = Window(spans=((1.03, 3.03), (5.5, 6.5)))
    (gpu,) = summarise(content(constant()), turns, frames=6000, num_gpus=1).gpus
    assert (gpu.energy_counter_j, gpu.energy_integrated_j) == (None, 900.0)


def test_energy_of_all_gpus_is_by_one_method() -> None:
    counting, blind = constant(counter_w=310.0), constant(counter_w=None, index=1)
    summary = summary_of(lambda time_s: counting(time_s) + blind(time_s), num_gpus=2)
    assert (summary.energy_j, summary.frames_per_joule, summary.energy_agrees) == (6000.0, 1.0, None)
    assert summary.power_w is not None
    assert summary.power_w.mean == 600.0
    lacking = summary_of(constant(), num_gpus=2)
    assert lacking.gpus[0].energy_counter_j == 3000.0
    assert (lacking.energy_j, lacking.power_w, lacking.frames_per_joule, lacking.energy_agrees) == (None,) * 4


# ---- other figures ----


def test_a_case_without_gpus_has_host_and_ranks_but_no_energy() -> None:
    samples = content()
    for number, at in enumerate(samples.samples):
        ranks = (RankReading(rank=0, cpu_percent=100 * (at.monotonic_s > 6), threads=8), RankReading(rank=1))
        samples.samples[number] = replace(at, ranks=ranks)
    summary = summarise(samples, WINDOW, frames=6000, num_gpus=0)
    assert (summary.gpus, summary.energy_j, summary.power_w, summary.frames_per_joule) == ((), None, None, None)
    assert summary.num_samples == 50  # 1.2 to 11.0 s
    assert summary.host_cpu_percent == Spread(min=50.0, mean=50.0, max=50.0)
    assert summary.host_memory_used_gb == Spread(min=1.2, mean=6.1, max=11.0)
    assert summary.host_load is None
    assert summary.host_stolen_percent == Spread(min=0.0, mean=0.5, max=1.0)
    assert (summary.stolen_share, summary.host_others_percent) == (0.01, 3.0)
    assert summary.ranks[0].cpu_percent == Spread(min=0.0, mean=50.0, max=100.0)
    assert summary.ranks[0].threads == Spread(min=8.0, mean=8.0, max=8.0)
    assert summary.ranks[0].memory_gb is None
    assert (summary.ranks[1].cpu_percent, summary.ranks[1].threads) == (None, None)
    hidden = samples.samples[20]  # a container hides ranks, whose time would count as others'
    samples.samples[20] = replace(hidden, host=replace(hidden.host, others_percent=None))
    assert summarise(samples, WINDOW, frames=6000, num_gpus=0).host_others_percent is None


def test_shares_of_slowdowns() -> None:
    words = [  # until when, with 10, 10, 5, 10 and 15 samples of the window
        (3.1, ("idle",)), (5.1, ("power_cap", "thermal_software")), (6.1, ("power_cap",)), (8.1, None),
        (99.0, ("clocks_setting",)),  # no throttling
    ]  # fmt: skip
    (gpu,) = summary_of(
        lambda time_s: (GpuReading(index=0, slowdowns=next(found for until_s, found in words if time_s < until_s)),)
    ).gpus
    assert gpu.throttled_share == 15 / 40
    shares = {"idle": 10 / 40, "power_cap": 15 / 40, "thermal_software": 10 / 40, "clocks_setting": 15 / 40}
    assert gpu.slowdown_shares == shares


WHOLE = content()
HELD_UP = [at for at in WHOLE.samples if not 4.1 < at.monotonic_s < 9.9]


@pytest.mark.parametrize(
    ("samples", "window", "why"),
    [
        (WHOLE, Window(spans=((100.0, 105.0),)), "none of 66 samples lies in the window of 5 s"),
        (content(until_s=3.0), WINDOW, "10 samples cover 1.97 of the 10 s of the window"),
        (replace(WHOLE, samples=HELD_UP), WINDOW, "cover 4 of the 10 s of the window"),
        (replace(WHOLE, corrupt="line 3 is not an event"), WINDOW, "line 3"),
        (replace(WHOLE, samples=2 * WHOLE.samples), WINDOW, "order of time"),
    ],
)
def test_unusable_content_is_refused(samples: TelemetryContent, window: Window, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        summarise(samples, window, frames=1, num_gpus=0)


# ---- several nodes ----


AHEAD_S = 70_000.0  # of node 1's monotonic clock
RANK_0 = RankFile(
    rank=0,
    start=Start(event="start", rank=0, local_rank=0, node=0),
    clock=Clock(event="clock", zero_monotonic_s=0.0),
)


def readings(node: int, *, step_w: float = 0.0, base_w: float = 300.0, ranks: tuple[int, ...] = ()) -> TelemetryContent:
    """A GPU that takes ``base_w + step_w * t``, at 5 Hz; ``t`` is the time of rank 0's node."""
    samples = []
    for number in range(60):
        time_s = number / 5 + 0.07 * node
        made = sample(
            time_s,
            (GpuReading(index=0, power_w=base_w + step_w * time_s),),
            monotonic_s=time_s + AHEAD_S * node,
            reading_time_s=0.001 * (node + 1),
            ranks=tuple(RankReading(rank=rank, memory_gb=1.0 + node) for rank in ranks or (node,)),
            host=HostReading(cpu_percent=20.0 + 40.0 * node, others_percent=1.0 + node),
        )
        samples.append(made)
    return TelemetryContent(rate_hz=5.0, samples=samples)


def columns_of(count: int, start_s: float, time_s: float) -> dict[str, tuple[float, ...]]:
    return {"start_s": tuple(start_s + time_s * row for row in range(count)), "iteration_time_s": (time_s,) * count}


@pytest.fixture
def two_nodes(make_case: CaseMaker) -> RunRecord:
    """Two nodes; rank 0 runs iterations of 0.5 s from 1 s on, the last eight count."""
    columns = columns_of(10, 1.0, 0.5)
    ranks = tuple(RankRecord(rank=r, local_rank=0, phases_s={}, settings={}, samples=columns, node=r) for r in (0, 1))
    clock = NodeClock(node=1, offset_s=AHEAD_S, bound_s=0.0004, drift_s=0.0, wall_offset_s=0.0)
    made = make_record(make_case(device="cuda", nnodes=2, nproc_per_node=1, iterations=10))
    return replace(made, ranks=ranks, clocks=(clock,))


def of_nodes(record: RunRecord, *contents: TelemetryContent | str) -> TelemetrySummary:
    summary, _ = summarise_nodes(record, RANK_0, dict(enumerate(contents)))
    return summary


@pytest.mark.parametrize(("emulated", "expected"), [(False, 2.0), (True, None), (None, None)])
def test_what_others_had_is_that_of_the_worst_node_unless_nodes_share_a_machine(
    two_nodes: RunRecord, emulated: bool | None, expected: float | None
) -> None:
    there = replace(two_nodes, transport=Transport(library="nccl", emulated=emulated))
    assert of_nodes(there, readings(0), readings(1)).host_others_percent == expected
    assert of_nodes(two_nodes, readings(0), readings(1)).host_others_percent is None


def test_power_and_energy_of_all_nodes_add_up(two_nodes: RunRecord) -> None:
    summary = of_nodes(two_nodes, readings(0), readings(1, base_w=200.0))
    assert (summary.window_s, summary.window_start_unix_s) == (4.0, 1.7e9 + 2.0)
    assert (summary.energy_j, summary.missing_nodes, summary.notes) == (4.0 * 500.0, (), ())
    assert summary.power_w == Spread(min=500.0, mean=500.0, max=500.0)
    assert [(gpu.node, gpu.index) for gpu in summary.gpus] == [(0, 0), (1, 0)]
    assert summary.host_cpu_percent == Spread(min=20.0, mean=40.0, max=60.0)
    assert [(node.node, node.energy_j) for node in summary.nodes] == [(0, 1200.0), (1, 800.0)]
    assert (summary.sample_time_max_s, summary.num_samples) == (0.002, min(node.num_samples for node in summary.nodes))
    assert summary.frames_per_joule == pytest.approx(8 * two_nodes.case.frames_per_iteration / 2000.0, rel=1e-5)
    alone = replace(two_nodes, case=replace(two_nodes.case, workload="all_reduce"))
    assert of_nodes(alone, readings(0), readings(1)).frames_per_joule is None


def test_readings_of_nodes_are_added_at_the_same_time(two_nodes: RunRecord) -> None:
    """One ramp up, one down: constant together, if and only if the clocks are brought to one."""
    up, down = readings(0, step_w=50.0), readings(1, base_w=900.0, step_w=-50.0)
    assert of_nodes(two_nodes, up, down).power_w == Spread(min=1200.0, mean=1200.0, max=1200.0)
    (clock,) = two_nodes.clocks or ()
    wrong = replace(two_nodes, clocks=(replace(clock, offset_s=AHEAD_S + 1.0),))
    assert of_nodes(wrong, up, down).power_w == Spread(min=1150.0, mean=1150.0, max=1150.0)


@pytest.mark.parametrize(
    ("bound_s", "second", "why"),
    [
        (0.0004, "its sampler wrote nothing", "node 1: its sampler wrote nothing"),
        (0.2, None, "node 1: the clock of node 1 is known to 0.2 s only, and 0.1 s are needed"),
        (None, None, "node 1: the clock of node 1 was not compared with that of rank 0's node"),
    ],
)
def test_a_missing_node_is_named_and_nothing_is_said_of_all(
    two_nodes: RunRecord, bound_s: float | None, second: str | None, why: str
) -> None:
    (clock,) = two_nodes.clocks or ()
    clocks = () if bound_s is None else (replace(clock, bound_s=bound_s),)
    summary = of_nodes(replace(two_nodes, clocks=clocks), readings(0), second or readings(1))
    assert (summary.missing_nodes, summary.notes) == ((1,), (why,))
    assert (summary.power_w, summary.energy_j, summary.energy_agrees, summary.frames_per_joule) == (None,) * 4
    assert [node.energy_j for node in summary.nodes] == [1200.0]


def test_a_rank_that_two_samplers_of_one_machine_saw_is_there_once(two_nodes: RunRecord) -> None:
    summary = of_nodes(two_nodes, *(readings(node, ranks=(0, 1)) for node in (0, 1)))
    assert [(rank.rank, rank.memory_gb and rank.memory_gb.mean) for rank in summary.ranks] == [(0, 1.0), (1, 2.0)]


def test_power_of_a_node_that_does_not_see_its_gpus_is_not_taken_for_0(two_nodes: RunRecord) -> None:
    """NVML may not open on one node; its host is seen all the same."""
    blind = readings(1)
    blind = replace(blind, samples=[replace(at, gpus=()) for at in blind.samples], notes=["GPUs: no driver"])
    summary = of_nodes(two_nodes, readings(0), blind)
    assert (summary.missing_nodes, summary.notes) == ((), ("node 1: GPUs: no driver",))
    assert (summary.power_w, summary.energy_j, summary.energy_agrees, summary.frames_per_joule) == (None,) * 4
    assert [node.power_w and node.power_w.mean for node in summary.nodes] == [300.0, None]


# ---- what is kept ----


ZERO_S = 1000.0  # of rank 0's clock
COUNTED_J = 9e9  # since the driver was loaded


@pytest.fixture
def one_node(make_case: CaseMaker) -> RunRecord:
    """Iterations of 1 s from 2.3 s on."""
    made = make_record(make_case(device="cuda", nnodes=1, nproc_per_node=1, num_envs_global=32, iterations=30))
    rank = RankRecord(rank=0, local_rank=0, phases_s={}, settings={}, samples=columns_of(30, 2.3, 1.0))
    return replace(made, ranks=(rank,))


def at_5_hz(number: int) -> Sample:
    """Power rises by 10 W a second from 300 W, and the rank changes its core every second."""
    time_s = number / 5
    counted_j = COUNTED_J + 300 * time_s + 5 * time_s**2 if number % 5 == 0 else None
    gpu = GpuReading(
        index=0, sm_utilisation_percent=90 + number // 5 % 5, memory_used_gb=12.345678, power_w=300.0 + 10 * time_s,
        energy_j=counted_j, sm_clock_mhz=1980, slowdowns=("idle", "power_cap") if number < 75 else (),
    )  # fmt: skip
    rank = RankReading(rank=0, cpu_percent=99.54321, memory_gb=7.654321, core=3 + number // 5 % 2)
    host = HostReading(cpu_percent=12.34, load=1.23456)
    return sample(time_s, (gpu,), monotonic_s=ZERO_S - 10.0 + time_s, ranks=(rank,), host=host)


def test_one_reading_a_second_from_before_the_first_iteration_to_after_the_last(one_node: RunRecord) -> None:
    samples = [at_5_hz(number) for number in range(400)]
    kept = kept_readings(TelemetryContent(samples=samples), one_node, ZERO_S)
    columns = kept.columns
    assert columns["time_s"] == tuple(range(2, 34))  # iterations run from 2.3 to 32.3 s
    assert columns["rank0.core"] == (3, 4) * 16
    assert columns["gpu0.power_w"][:2] == (420, 430)
    assert columns["gpu0.energy_j"][:2] == (0, 425.0)  # from the first reading on
    assert columns["gpu0.memory_used_gb"][0] == 12.3457
    assert columns["gpu0.slowdowns"] == ("idle+power_cap",) * 3 + ("",) * 29
    assert columns["host.load"][0] == 1.23
    assert "host.stolen_percent" not in columns  # nothing was read
    assert {len(column) for column in columns.values()} == {32}
    uncounted = [replace(at, gpus=()) for at in samples]
    assert kept_readings(TelemetryContent(samples=uncounted), one_node, ZERO_S).columns["time_s"] == columns["time_s"]


def test_readings_lie_on_the_clock_of_rank_0s_node(two_nodes: RunRecord) -> None:
    _, nodes = summarise_nodes(two_nodes, RANK_0, {0: readings(0), 1: readings(1)})
    assert [node.node for node in nodes] == [0, 1]
    assert [node.columns["time_s"][:2] for node in nodes] == [(0.0, 1.0), (0.07, 1.07)]


def test_the_window_is_that_of_rank_0s_iterations(one_node: RunRecord) -> None:
    rank_0 = replace(RANK_0, clock=Clock(event="clock", zero_monotonic_s=ZERO_S))
    samples = TelemetryContent(samples=[at_5_hz(number) for number in range(400)])
    summary, (kept,) = summarise_nodes(one_node, rank_0, {0: samples})
    assert (summary.window_s, summary.window_start_unix_s) == (24.0, 1.7e9 + 10.0 + 8.3)
    assert summary.frames_per_joule == pytest.approx(
        24 * one_node.case.frames_per_iteration / (summary.energy_j or 0.0), rel=1e-5
    )
    assert kept == kept_readings(samples, one_node, ZERO_S)
    with pytest.raises(ValueError, match="clock"):
        summarise_nodes(one_node, RankFile(rank=0), {0: samples})
