"""What the charts show, as plain values: points, labels and words. Pure, and without Altair."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from reports.analysis.analysed_set import Campaign
from reports.analysis.learning_curves import CurvePoint
from reports.analysis.rows import CaseRow
from reports.analysis.time_split import Values

MAX_CURVE_POINTS = 60  # of a learning curve; as many as a phone shows
MAX_RANKS = 8  # of a case, each as a dot; a thousand are a smear, and a page of a megabyte
QUARTILES = 4


def case_points(rows: Iterable[CaseRow]) -> list[dict[str, Any]]:
    """Only what a chart reads, without what is not there: a row's mappings and tuples would bloat every spec."""
    points = (
        {
            "case_id": row.case_id,
            "curve": row.curve,
            "world_size": row.world_size,
            "rounds_completed": row.rounds_completed,
            "baseline_world_size": row.baseline_world_size,
            "speedup": row.speedup,
            "speedup_low": row.speedup_interval and row.speedup_interval[0],
            "speedup_high": row.speedup_interval and row.speedup_interval[1],
            "ideal_speedup": row.ideal_speedup,
            "scaling_efficiency": row.scaling_efficiency,
            "efficiency_low": row.scaling_efficiency_interval and row.scaling_efficiency_interval[0],
            "efficiency_high": row.scaling_efficiency_interval and row.scaling_efficiency_interval[1],
        }
        for row in rows
    )
    return [{name: value for name, value in point.items() if value is not None} for point in points]


def throughput_points(series: Campaign) -> list[dict[str, Any]]:
    """One point per case and kind of throughput; ``ideal`` is that of the curve's first case, times the ranks."""
    first: dict[tuple[str, str], float] = {}
    points = []
    for row in sorted(series.rows, key=lambda row: row.world_size):
        for kind, values in series.inside[row.case_id].fps.items():
            per_rank = first.setdefault((row.curve, kind), values.median / row.world_size)
            points.append(
                {
                    "case_id": row.case_id,
                    "curve": row.curve,
                    "world_size": row.world_size,
                    "rounds_completed": row.rounds_completed,
                    "kind": kind,
                    "fps": values.median,
                    "low": values.low,
                    "high": values.high,
                    "ideal": per_rank * row.world_size,
                }
            )
    return points


def powers_of_two(rows: Sequence[CaseRow], others: Iterable[float] = ()) -> list[float]:
    """From below the least speed-up to above the largest; ``others`` are held too."""
    values = [value for row in rows for value in (row.speedup, row.ideal_speedup) if value]
    values += [value for value in others if value]
    return [2.0**power for power in range(math.floor(math.log2(min(values))), math.ceil(math.log2(max(values))) + 1)]


def stride_of(iterations: int) -> int:
    """Every so many iterations of a curve are drawn."""
    return max(1, math.ceil(iterations / MAX_CURVE_POINTS))


def thinned(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    stride = stride_of(1 + max(point.iteration for point in points))
    return [point for point in points if point.iteration % stride == 0]


def some_ranks(ratios: Sequence[Values]) -> list[tuple[int, Values]]:
    """Rank and ratio: all of a few ranks; of many the fastest, the slowest, and those at the quartiles between."""
    ordered = sorted(enumerate(ratios), key=lambda item: item[1].median)
    if len(ordered) <= MAX_RANKS:
        return list(enumerate(ratios))
    return [ordered[round(step * (len(ordered) - 1) / QUARTILES)] for step in range(QUARTILES + 1)]


def has_single_point(points: Sequence[CurvePoint]) -> bool:
    """Whether a curve is one point, which a line alone would not show."""
    return 1 in Counter(point.case_id for point in points).values()


def spoken(rows: Sequence[CaseRow], name: str, in_words: Callable[[float | None], str]) -> str:
    """``rsl_rl: 1.00 at 1x1, 1.90 at 1x2``, for who cannot see the chart."""
    return "; ".join(
        f"{curve}: "
        + ", ".join(f"{in_words(getattr(row, name))} at {row.topology}" for row in rows if row.curve == curve)
        for curve in curves_of(rows)
    )


def curves_of(rows: Iterable[CaseRow]) -> list[str]:
    return list(dict.fromkeys(row.curve for row in rows))


def of_scaling(rows: Sequence[CaseRow]) -> list[CaseRow]:
    """Without curves of one number of ranks, which say nothing of scaling; all of them where there is no other."""
    several = [row for row in rows if len({other.world_size for other in rows if other.curve == row.curve}) > 1]
    return several or list(rows)


def case_label(row: CaseRow, rows: Sequence[CaseRow]) -> str:
    """What tells a bar from the others, what matters first: a phone has no room for all of it."""
    curve = row.curve.replace(" environments a rank", " envs").replace(" environments", " envs")
    if len({row.topology for row in rows}) == 1:
        return curve
    return f"{row.topology} {curve}" if len(curves_of(rows)) > 1 else row.topology


def world_size_of(topology: str) -> int:
    nnodes, nproc_per_node = topology.split("x")
    return int(nnodes) * int(nproc_per_node)
