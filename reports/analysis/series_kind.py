"""What a series varies, and so what its section shows. Pure."""

from collections.abc import Iterable
from typing import Literal

from suite.schema.record import Case

type SeriesKind = Literal["scaling", "sweep", "tuned", "deterministic", "shared_gpu", "start_up"]


def series_kind(cases: Iterable[Case]) -> SeriesKind:
    """Of the cases of one series.

    ``start_up``: some begin with an empty kernel cache. ``deterministic``, ``shared_gpu``: all of the open division
    are that, or several trainings on one GPU. ``tuned``: some are of the open division. ``sweep``: only the number of
    environments is varied, and not that of ranks. ``scaling``: everything else.
    """
    cases = list(cases)
    if any(case.kernel_cache == "empty" for case in cases):
        return "start_up"
    if opened := [case for case in cases if case.division == "open"]:
        if all(case.deterministic for case in opened):
            return "deterministic"
        return "shared_gpu" if all(case.trainings_per_gpu > 1 for case in opened) else "tuned"
    one_size = len({case.world_size for case in cases}) == 1
    return "sweep" if one_size and len({case.num_envs for case in cases}) > 1 else "scaling"
