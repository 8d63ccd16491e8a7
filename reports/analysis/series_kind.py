"""What a series varies, and so what its section shows. Pure."""

from collections.abc import Iterable
from typing import Literal

from suite.schema.record import Case

type Change = Literal["tuned", "deterministic", "shared_gpu", "versions"]
type SeriesKind = Literal["scaling", "sweep", "start_up"] | Change


def change_of(case: Case) -> Change:
    """What a case of the open division differs in from that as shipped; ``tuned``: settings of the libraries."""
    if case.deterministic:
        return "deterministic"
    if case.trainings_per_gpu > 1:
        return "shared_gpu"
    return "versions" if case.with_packages else "tuned"


def series_kind(cases: Iterable[Case]) -> SeriesKind:
    """Of the cases of one series.

    ``start_up``: some begin with an empty kernel cache. A change of ``change_of``: some are of the open division, and
    all of them have this change; ``tuned`` where they have several. ``sweep``: only the number of environments is
    varied, and not that of ranks. ``scaling``: everything else.
    """
    cases = list(cases)
    if any(case.kernel_cache == "empty" for case in cases):
        return "start_up"
    changes = {change_of(case) for case in cases if case.division == "open"}
    if changes:
        return changes.pop() if len(changes) == 1 else "tuned"
    one_size = len({case.world_size for case in cases}) == 1
    return "sweep" if one_size and len({case.num_envs for case in cases}) > 1 else "scaling"
