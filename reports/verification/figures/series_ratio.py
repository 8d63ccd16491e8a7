"""A ratio of two cases by one linear model of all runs of their series, by other steps than those of the pages. Pure.

The model has an effect of every case and of every block, so its columns depend on each other. A difference of two cases
does not depend on how the rest is divided between them.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any, Final

import numpy as np

from reports.verification import formulas
from reports.verification.finding import Json
from reports.verification.samples.stored import TWIN_SUFFIX, StoredCase

SLOPE: Final = 0.5  # of the core probe, to which the slope is pulled
PULL: Final = 0.05  # as much as runs do whose probes have this sum of squares
LEAST_FREEDOM: Final = 3


@dataclass(frozen=True, kw_only=True)
class _Run:
    name: str  # of the case, or of the one that it repeats
    block: Hashable  # None for a run alone
    y: float
    x: float | None


def over_series(
    base: StoredCase, other: StoredCase, cases: Sequence[StoredCase]
) -> tuple[float, formulas.Interval | None]:
    """Return the throughput of ``other`` over that of ``base``, and its interval; both have completed runs.

    ``cases``: all of the set, with the repeats of baselines.
    """
    runs = [
        _run(stored.case_id.removesuffix(TWIN_SUFFIX), record, stored.times_s[record["round"]])
        for stored in cases
        if _series(stored) == _series(base)
        for record in stored.completed
    ]
    names, blocks = sorted({run.name for run in runs}), list({run.block for run in runs})
    design = np.array([[*map(run.name.__eq__, names), *(run.block == each for each in blocks)] for run in runs], float)
    freedom = float(len(runs) - np.linalg.matrix_rank(design))
    y, x = np.array([run.y for run in runs]), [run.x for run in runs]
    contrast = np.array([(name == base.case_id) - (name == other.case_id) for name in names] + [0] * len(blocks), float)
    weights = contrast @ np.linalg.pinv(design)  # of the runs in the difference of the two cases
    is_joined = np.allclose(weights @ design, contrast)  # by blocks that they share, or others with them
    if not is_joined:
        ones = [np.array([run.name == stored.case_id for run in runs], float) for stored in (base, other)]
        weights = ones[0] / ones[0].sum() - ones[1] / ones[1].sum()
    spread = float(weights @ weights)
    if None in blocks and None not in x:
        probes = np.array(x, float)
        left, left_y = (values - design @ np.linalg.lstsq(design, values, rcond=None)[0] for values in (probes, y))
        squares = float(left @ left)
        y = y - (float(left @ left_y) + PULL * SLOPE) / (squares + PULL) * probes
        freedom -= squares / (squares + PULL)
        spread += float(weights @ probes) ** 2 / (squares + PULL)
    residuals = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    own, own_freedom = _own_variance(runs, y, base.case_id, other.case_id)
    middle = math.log(other.frames / base.frames) + float(weights @ y)
    lent = min(1.0, max(0.0, freedom - own_freedom)) if is_joined else 0.0  # by the other cases, if they have any
    total = own_freedom + lent
    if total < LEAST_FREEDOM:
        return math.exp(middle), None
    spread *= float(residuals @ residuals) / max(freedom, 1.0)
    half = formulas.student_t(total) * math.sqrt((own_freedom * own + lent * spread) / total)
    return math.exp(middle), (math.exp(middle - half), math.exp(middle + half))


def _series(stored: StoredCase) -> tuple[Any, ...]:
    return tuple(stored.case[key] for key in ("series", "rl_library", "workload"))


def _run(name: str, record: Json, time_s: float) -> _Run:
    columns = [rank["samples"].get("core_probe_time_s", []) for rank in record["ranks"]]
    probes = [[each for each in column[formulas.window(record).start :] if each] for column in columns]
    return _Run(
        name=name,
        block=record["turns"] and (record["round"], min(record["case"]["case_id"], *record["turns"]["beside"])),
        y=math.log(time_s),
        x=fmean(fmean(map(math.log, each)) for each in probes) if all(probes) else None,
    )


def _own_variance(runs: Sequence[_Run], y: Any, one: str, other: str) -> tuple[float, float]:
    """Return the variance of the difference of two cases by their own runs, and its degrees of freedom."""
    values: dict[str, dict[Hashable, list[float]]] = {one: defaultdict(list), other: defaultdict(list)}
    for run, value in zip(runs, y, strict=True):
        if run.name in values:
            values[run.name][run.block].append(float(value))
    if len(both := values[one].keys() & values[other].keys()) > 1:
        apart = [fmean(values[one][block]) - fmean(values[other][block]) for block in both]
        return variance(apart) / len(apart), len(apart) - 1
    samples = [[value for block in of.values() for value in block] for of in values.values()]
    if min(map(len, samples)) == 1:
        return 0.0, 0.0
    parts = [(variance(sample) / len(sample), len(sample) - 1) for sample in samples]
    total = math.fsum(part for part, _ in parts)
    if total == 0:
        return 0.0, math.fsum(freedom for _, freedom in parts)
    return total, total**2 / math.fsum(part**2 / freedom for part, freedom in parts)
