"""What the charts show, as plain values: points, labels and words. Pure, and without Altair."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from reports.analysis import CaseRow, CurvePoint

_ENVIRONMENTS: Final = re.compile(r"\d+ environments( a rank)?")  # as analysis.curve_label writes it
MAX_CURVE_POINTS = 200  # of a learning curve; more than a screen shows


def case_points(rows: Iterable[CaseRow]) -> list[dict[str, Any]]:
    """Only what a chart reads: a row's mappings and tuples would bloat every spec."""
    return [
        {
            "case_id": row.case_id,
            "curve": row.curve,
            "world_size": row.world_size,
            "num_envs": row.num_envs,
            "rounds_completed": row.rounds_completed,
            "iteration_time_s": row.iteration_time_s,
            "total_fps": row.total_fps,
            "slowest_fps": _rescaled_fps(row, row.iteration_time_max_s),
            "fastest_fps": _rescaled_fps(row, row.iteration_time_min_s),
            "baseline_world_size": row.baseline_world_size,
            "speedup": row.speedup,
            "ideal_speedup": row.ideal_speedup,
            "scaling_efficiency": row.scaling_efficiency,
        }
        for row in rows
    ]


def _rescaled_fps(row: CaseRow, iteration_time_s: float | None) -> float | None:
    """Throughput if an iteration had taken ``iteration_time_s``."""
    if row.total_fps is None or row.iteration_time_s is None or not iteration_time_s:
        return None
    return row.total_fps * row.iteration_time_s / iteration_time_s


def parts_of(row: CaseRow) -> dict[str, float]:
    """Part -> share of the iteration time. A part is divided only where its division was measured."""
    if row.collection_share is None or row.learning_share is None:
        return {}
    parts: dict[str, float] = {}
    if row.environment_step_share is None:
        parts["collection"] = row.collection_share
    else:
        parts["environment steps"] = row.environment_step_share
        parts["rest of collection"] = row.collection_share - row.environment_step_share
    if row.all_reduce_share is not None:
        parts["all-reduce"] = row.all_reduce_share
        parts["rest of learning"] = row.learning_share - row.all_reduce_share
    elif row.world_size == 1:  # nobody to reduce with
        parts["rest of learning"] = row.learning_share
    else:
        parts["learning"] = row.learning_share
    parts["other"] = 1 - row.collection_share - row.learning_share
    return {part: share for part, share in parts.items() if share > 0}


def powers_of_two(rows: Sequence[CaseRow]) -> list[float]:
    values = [value for row in rows for value in (row.speedup, row.ideal_speedup) if value]
    return [2.0**power for power in range(math.floor(math.log2(min(values))), math.ceil(math.log2(max(values))) + 1)]


def thinned(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    stride = max(1, math.ceil((1 + max(point.iteration for point in points)) / MAX_CURVE_POINTS))
    return [point for point in points if point.iteration % stride == 0]


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


def sweep_rows(rows: Sequence[CaseRow]) -> list[CaseRow]:
    """Rows on the fewest ranks whose curves differ in their environments too, named by what else differs.

    Only curves that then have more than one point.
    """
    fewest = min((row.world_size for row in rows), default=0)
    measured = [row for row in rows if row.world_size == fewest and row.total_fps is not None]
    named = [
        replace(row, curve=", ".join(part for part in row.curve.split(", ") if not _ENVIRONMENTS.fullmatch(part)))
        for row in sorted(measured, key=lambda row: row.num_envs)
    ]
    points = Counter(row.curve for row in named)
    return [row for row in named if points[row.curve] > 1]


def case_label(row: CaseRow, rows: Sequence[CaseRow]) -> str:
    return f"{row.curve}, {row.topology}" if len(curves_of(rows)) > 1 else row.topology


def world_size_of(topology: str) -> int:
    nnodes, nproc_per_node = topology.split("x")
    return int(nnodes) * int(nproc_per_node)


def slug(rows: Sequence[CaseRow]) -> str:
    return rows[0].series.replace("_", "-")
