"""Telemetry of several nodes against closed forms: clocks that are far apart, nodes that are missing."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from suite.external.nvml.values import GpuReading
from suite.records.rank_file import Clock, RankFile, Start
from suite.records.telemetry import summarise_nodes
from suite.records.telemetry_file import HostReading, RankReading, Sample, TelemetryContent
from suite.schema.observations import Spread, TelemetrySummary, Transport
from suite.schema.record import NodeClock, RankRecord, RunRecord
from tests.conftest import CaseMaker
from tests.fixtures.results.generated_results import make_record

AHEAD_S = 70_000.0  # of node 1's monotonic clock
COUNT = 60


def readings(node: int, *, step_w: float = 0.0, base_w: float = 300.0, ahead_s: float = 0.0) -> TelemetryContent:
    """A GPU that takes ``base_w + step_w * t``, at 5 Hz; ``t`` is the time of rank 0's node."""
    samples = []
    for number in range(COUNT):
        time_s = number / 5 + 0.07 * node
        gpu = GpuReading(index=0, power_w=base_w + step_w * time_s)
        samples.append(
            Sample(
                time_unix_s=1.7e9 + time_s,
                monotonic_s=time_s + ahead_s,
                reading_time_s=0.001 * (node + 1),
                sampler_cpu_s=0.004 * number,
                gpus=(gpu,),
                ranks=(RankReading(rank=node, memory_gb=1.0 + node),),
                host=HostReading(cpu_percent=20.0 + 40.0 * node, others_percent=1.0 + node),
            )
        )
    return TelemetryContent(rate_hz=5.0, samples=samples)


@pytest.fixture
def record(make_case: CaseMaker) -> RunRecord:
    """Two nodes; rank 0 runs iterations of 0.5 s from 1 s on, the last eight count."""
    case = make_case(device="cuda", nnodes=2, nproc_per_node=1, iterations=10)
    made = make_record(case)
    columns = {"start_s": tuple(1.0 + 0.5 * row for row in range(10)), "iteration_time_s": (0.5,) * 10}
    ranks = tuple(RankRecord(rank=r, local_rank=0, phases_s={}, settings={}, samples=columns, node=r) for r in (0, 1))
    clock = NodeClock(node=1, offset_s=AHEAD_S, bound_s=0.0004, drift_s=0.0, wall_offset_s=0.0)
    return replace(made, ranks=ranks, clocks=(clock,))


RANK_0 = RankFile(
    rank=0,
    start=Start(event="start", rank=0, local_rank=0, node=0),
    clock=Clock(event="clock", zero_monotonic_s=0.0),
)


def of(record: RunRecord, *contents: TelemetryContent | str) -> TelemetrySummary:
    by_node: Mapping[int, TelemetryContent | str] = dict(enumerate(contents))
    return summarise_nodes(record, RANK_0, by_node)


@pytest.mark.parametrize(("emulated", "expected"), [(False, 2.0), (True, None), (None, None)])
def test_what_others_had_is_that_of_the_worst_node_unless_nodes_share_a_machine(
    record: RunRecord, emulated: bool | None, expected: float | None
) -> None:
    there = replace(record, transport=Transport(library="nccl", emulated=emulated))
    assert of(there, readings(0), readings(1, ahead_s=AHEAD_S)).host_others_percent == expected
    assert of(record, readings(0), readings(1, ahead_s=AHEAD_S)).host_others_percent is None


def test_power_and_energy_of_all_nodes_add_up(record: RunRecord) -> None:
    seen = of(record, readings(0), readings(1, base_w=200.0, ahead_s=AHEAD_S))
    assert seen.window_s == 4.0
    assert (seen.energy_j, seen.missing_nodes, seen.notes) == (4.0 * 500.0, (), ())
    assert seen.power_w == Spread(min=500.0, mean=500.0, max=500.0)
    assert [(gpu.node, gpu.index) for gpu in seen.gpus] == [(0, 0), (1, 0)]
    assert [(rank.rank, rank.memory_gb and rank.memory_gb.mean) for rank in seen.ranks] == [(0, 1.0), (1, 2.0)]
    assert seen.host_cpu_percent == Spread(min=20.0, mean=40.0, max=60.0)
    assert [(node.node, node.energy_j) for node in seen.nodes] == [(0, 1200.0), (1, 800.0)]
    assert (seen.sample_time_max_s, seen.num_samples) == (0.002, min(node.num_samples for node in seen.nodes))
    assert seen.frames_per_joule == pytest.approx(8 * record.case.frames_per_iteration / 2000.0, rel=1e-5)
    alone = replace(record, case=replace(record.case, workload="all_reduce"))
    assert of(alone, readings(0), readings(1, ahead_s=AHEAD_S)).frames_per_joule is None


def test_readings_of_nodes_are_added_at_the_same_time(record: RunRecord) -> None:
    """One ramp up, one down: constant together, if and only if the clocks are brought to one."""
    up, down = readings(0, step_w=50.0), readings(1, base_w=900.0, step_w=-50.0, ahead_s=AHEAD_S)
    assert of(record, up, down).power_w == Spread(min=1200.0, mean=1200.0, max=1200.0)
    (clock,) = record.clocks or ()
    wrong = replace(record, clocks=(replace(clock, offset_s=AHEAD_S + 1.0),))
    assert of(wrong, up, down).power_w == Spread(min=1150.0, mean=1150.0, max=1150.0)


@pytest.mark.parametrize(
    ("bound_s", "second", "why"),
    [
        (0.0004, "its sampler wrote no telemetry-node-1.jsonl", "node 1: its sampler wrote no telemetry-node-1.jsonl"),
        (0.2, None, "node 1: the clock of node 1 is known to 0.2 s only, and 0.1 s are needed"),
        (None, None, "node 1: the clock of node 1 was not compared with that of rank 0's node"),
    ],
)
def test_a_missing_node_is_named_and_nothing_is_said_of_all(
    record: RunRecord, bound_s: float | None, second: str | None, why: str
) -> None:
    (clock,) = record.clocks or ()
    clocks = () if bound_s is None else (replace(clock, bound_s=bound_s),)
    seen = of(replace(record, clocks=clocks), readings(0), second or readings(1, ahead_s=AHEAD_S))
    assert (seen.missing_nodes, seen.notes) == ((1,), (why,))
    assert (seen.power_w, seen.energy_j, seen.energy_agrees, seen.frames_per_joule) == (None, None, None, None)
    assert [node.energy_j for node in seen.nodes] == [1200.0]


def test_a_rank_that_two_samplers_of_one_machine_saw_is_there_once(record: RunRecord) -> None:
    """Older results of emulated nodes list ranks of other nodes, which the sampler did not separate."""

    def both(node: int, ahead_s: float = 0.0) -> TelemetryContent:
        content = readings(node, ahead_s=ahead_s)
        ranks = tuple(RankReading(rank=rank, memory_gb=1.0 + node) for rank in (0, 1))
        return replace(content, samples=[replace(sample, ranks=ranks) for sample in content.samples])

    seen = of(record, both(0), both(1, AHEAD_S))
    assert [(rank.rank, rank.memory_gb and rank.memory_gb.mean) for rank in seen.ranks] == [(0, 1.0), (1, 2.0)]


def test_power_of_a_node_that_does_not_see_its_gpus_is_not_taken_for_0(record: RunRecord) -> None:
    """NVML may not open on one node; its host is seen all the same."""
    blind = readings(1, ahead_s=AHEAD_S)
    blind = replace(blind, samples=[replace(sample, gpus=()) for sample in blind.samples], notes=["GPUs: no driver"])
    seen = of(record, readings(0), blind)
    assert (seen.missing_nodes, seen.notes) == ((), ("node 1: GPUs: no driver",))
    assert (seen.power_w, seen.energy_j, seen.energy_agrees, seen.frames_per_joule) == (None, None, None, None)
    assert [node.power_w and node.power_w.mean for node in seen.nodes] == [300.0, None]
