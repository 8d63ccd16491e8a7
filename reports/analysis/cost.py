"""What a published point costs in GPU-minutes, against a plain loop over Isaac Lab's own command line. Pure.

Two prices, because two people pay. *In use*: every round costs its wall time on the GPUs that it runs on, without the
turns of others. *Host*: while any round runs, every GPU of its host is paid for, so cases side by side cost once. What
labscale spent includes everything: failed rounds, A/A twins, controls. A point is a
case that was trained and has a completed round. The loop runs the same cases one after another on the same host, each
as often as labscale completed it, and nothing else. One process of it takes what a process of upstream took beside ours
(``bench --upstream``); where none did, it is assumed to take as long as ours.

A host is a label, a processor and a kind of GPU; it has as many GPUs as the record with the most saw, since a round
that shares a host may see its own only.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reports.analysis.rows import own_wall_s
from suite.schema.record import CaseResult, Environment, RunRecord

type Host = tuple[str | None, str | None, tuple[str, ...]]
type Span = tuple[float, float]  # s, from and to


@dataclass(frozen=True, kw_only=True)
class Price:
    """GPU-minutes of everything."""

    in_use: float
    host: float

    def over(self, points: int) -> "Price":
        return Price(in_use=self.in_use / points, host=self.host / points)


@dataclass(frozen=True, kw_only=True)
class Cost:
    points: int
    spent: Price
    loop: Price
    measured_points: int  # whose process of upstream was timed; of the others it is assumed

    @property
    def spent_of_a_point(self) -> Price:
        return self.spent.over(self.points)

    @property
    def loop_of_a_point(self) -> Price:
        return self.loop.over(self.points)

    @property
    def in_use_ratio(self) -> float:
        """Spent over the loop's: below 1 labscale is cheaper."""
        return self.spent.in_use / self.loop.in_use

    @property
    def host_ratio(self) -> float:
        return self.spent.host / self.loop.host


def cost(
    results: Sequence[CaseResult],
    *,
    twins: Sequence[CaseResult] = (),
    upstream_wall_s: Mapping[str, float] | None = None,
) -> Cost | None:
    """``twins``: the repeats of baselines; ``upstream_wall_s``: case id -> seconds of one process.

    None without a point on GPUs. Raises ValueError for a record with a wall time and no start.
    """
    published = [
        result
        for result in results
        if result.case.device == "cuda" and result.case.workload == "train" and _timed(result.completed)
    ]
    if not published:
        return None
    known = upstream_wall_s or {}
    ran = [record for result in (*results, *twins) if result.case.device == "cuda" for record in _timed(result.rounds)]
    hosts = _hosts(ran)
    walls = [(result, known.get(result.case.case_id) or _median_wall_s(result)) for result in published]
    return Cost(
        points=len(published),
        spent=Price(
            in_use=sum(_own_wall_s(record) * record.case.world_size for record in ran) / 60,
            host=sum(union_s(map(_span, on_it)) * _gpus(on_it) for on_it in hosts.values()) / 60,
        ),
        loop=Price(
            in_use=sum(len(result.completed) * wall_s * result.case.world_size for result, wall_s in walls) / 60,
            host=sum(
                len(result.completed) * wall_s * _gpus(hosts[_host(result.completed[0].environment)])
                for result, wall_s in walls
            )
            / 60,
        ),
        measured_points=sum(result.case.case_id in known for result in published),
    )


def timed_points(costs: Iterable[Cost]) -> tuple[int, int]:
    """Return of how many points of all sets a process of the loop was timed, and how many there are."""
    every = [*costs]
    return sum(each.measured_points for each in every), sum(each.points for each in every)


def union_s(spans: Iterable[Span]) -> float:
    """Seconds in which at least one of the spans is."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _timed(records: Iterable[RunRecord]) -> list[RunRecord]:
    return [record for record in records if record.wall_time_s is not None]


def _wall_s(record: RunRecord) -> float:
    return record.wall_time_s or 0.0


def _own_wall_s(record: RunRecord) -> float:
    return own_wall_s(record) or 0.0


def _median_wall_s(result: CaseResult) -> float:
    return statistics.median(_own_wall_s(record) for record in _timed(result.completed))


def _hosts(records: Sequence[RunRecord]) -> dict[Host, list[RunRecord]]:
    hosts: dict[Host, list[RunRecord]] = {}
    for record in records:
        hosts.setdefault(_host(record.environment), []).append(record)
    return hosts


def _host(environment: Environment) -> Host:
    return environment.host_label, environment.cpu_model, tuple(sorted({gpu.name for gpu in environment.gpus}))


def _gpus(records: Iterable[RunRecord]) -> int:
    """GPUs of a host, or of all its nodes together; emulated nodes share one."""
    return max(_gpus_of_round(record) for record in records)


def _gpus_of_round(record: RunRecord) -> int:
    seen = len(record.environment.gpus)
    if record.transport is not None and record.transport.emulated:
        return max(seen, record.case.world_size)
    return max(seen, record.case.nproc_per_node) * record.case.nnodes


def _span(record: RunRecord) -> Span:
    if record.started_utc is None:
        raise ValueError(f"{record.case.case_id} round {record.round} has a wall time and no start")
    start_s = datetime.fromisoformat(record.started_utc).timestamp()
    return start_s, start_s + _wall_s(record)
