"""Trainings on one GPU through CUDA MPS, compared with the same on the same machine without it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from reports.analysis.machines import Machine
from reports.sets.version import ResultSet, Version
from reports.topics.shared_gpu.model import Range, Shared, groups, ranges, total_fps_of_runs
from suite.statistics.intervals import Estimate, ratio_of


@dataclass(frozen=True, kw_only=True)
class BothWays:
    """One number of trainings, in one set without MPS and in another through it."""

    machine: Machine
    without: Shared
    through: Shared

    @property
    def trainings(self) -> int:
        return self.through.trainings

    @property
    def over_without(self) -> Estimate | None:
        """Total frames per second through MPS over those without it; None if one way has no completed run."""
        through, without = (total_fps_of_runs(each.result) for each in (self.through, self.without))
        return ratio_of(through.values(), without.values()) if through and without else None


def both_ways(version: Version) -> tuple[BothWays, ...]:
    """Return every number of trainings of every case that one machine ran in two sets, once through MPS."""
    found = [
        (one, machine, group) for one, machine in _on_one_machine(version) for group in groups(one.campaign.results)
    ]
    return tuple(
        BothWays(machine=machine, without=without, through=through)
        for (_, machine, theirs), (one, where, ours) in product(found, found)
        if theirs.mps is True and ours.mps is False and machine == where and theirs.key == ours.key
        for through, without in product(theirs.numbers, ours.numbers)
        if through.trainings == without.trainings
    )


def ranges_over_without(found: Iterable[BothWays]) -> dict[int, Range]:
    """Number of trainings, fewest first -> their total frames through MPS over those without it."""
    return ranges((each.trainings, each.over_without) for each in found)


def _on_one_machine(version: Version) -> list[tuple[ResultSet, Machine]]:
    """Return the sets whose runs were all on one machine, each with it."""
    found = []
    for one in version.scaling:
        places = [version.machine_of(one, place) for place in one.campaign.places]
        if all(machine == places[0] for machine in places):
            found.append((one, places[0]))
    return found
