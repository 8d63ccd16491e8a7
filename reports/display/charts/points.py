"""Which of many values charts and tables show, and what they call them. Pure."""

import math
from collections.abc import Iterable, Sequence

from reports.analysis.rows import CaseRow
from reports.analysis.time_split import Values

MAX_CURVE_POINTS = 60  # of a learning curve; as many as a phone shows
MAX_RANKS = 8  # of a case, each as a dot; a thousand are a smear, and a page of a megabyte
QUARTILES = 4


def stride_of(iterations: int) -> int:
    """Every so many iterations of a curve are drawn."""
    return max(1, math.ceil(iterations / MAX_CURVE_POINTS))


def some_ranks(ratios: Sequence[Values]) -> list[tuple[int, Values]]:
    """Rank and ratio: all of a few ranks; of many the fastest, the slowest, and those at the quartiles between."""
    ordered = sorted(enumerate(ratios), key=lambda item: item[1].median)
    if len(ordered) <= MAX_RANKS:
        return list(enumerate(ratios))
    return [ordered[round(step * (len(ordered) - 1) / QUARTILES)] for step in range(QUARTILES + 1)]


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
