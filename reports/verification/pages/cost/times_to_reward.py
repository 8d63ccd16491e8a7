"""How long each run of a curve took to the highest reward that all runs of the curve reached. Pure."""

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reports.verification import formulas
from reports.verification.figures import rewards
from reports.verification.figures.published import curve_of, is_emulated
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size


class Reached(NamedTuple):
    """What the runs of a case took to the reward; None for one that ended before."""

    reward: float
    iterations: list[int | None]
    times_s: list[float | None]


def times_to_reward(cases: Sequence[StoredCase]) -> Mapping[str, Reached]:
    """Return case id -> what its runs took, of the curves of a series in which all runs reached more than at first."""
    found: dict[str, Reached] = {}
    for curve in curves_of(cases):
        reward = rewards.reward_of_all([rewards.curve_of(record) for stored in curve for record in stored.completed])
        if reward is not None:
            found |= {stored.case_id: Reached(reward, *_taken(stored, reward)) for stored in curve}
    return found


def compares_nodes_alone(cases: Sequence[StoredCase]) -> bool:
    """Whether no curve has several numbers of ranks, and one has several numbers of nodes."""
    sizes = {_size(stored) for stored in cases}
    places = {(_size(stored), stored.case["nnodes"]) for stored in cases}
    return len(sizes) == len({curve_of(stored.case) for stored in cases}) and len(places) > len(sizes)


def curves_of(cases: Sequence[StoredCase]) -> Iterator[list[StoredCase]]:
    """Yield those that completed. The same ranks on more nodes are a curve of their own; so are emulated nodes."""
    curves: dict[Hashable, list[StoredCase]] = {}
    for stored in cases:
        if stored.completed:
            nodes = [other.case["nnodes"] for other in cases if _size(other) == _size(stored)]
            more = stored.case["nnodes"] if stored.case["nnodes"] > min(nodes) else None
            curves.setdefault((curve_of(stored.case), more, is_emulated(stored)), []).append(stored)
    yield from curves.values()


def _size(stored: StoredCase) -> Hashable:
    return curve_of(stored.case), world_size(stored.case)


def _taken(stored: StoredCase, reward: float) -> tuple[list[int | None], list[float | None]]:
    needed = [rewards.iterations_to(rewards.curve_of(record), reward) for record in stored.completed]
    columns_s = map(formulas.slowest_s, stored.completed)
    times_s = [
        None if end is None else math.fsum(column_s[:end]) for column_s, end in zip(columns_s, needed, strict=True)
    ]
    return needed, times_s
