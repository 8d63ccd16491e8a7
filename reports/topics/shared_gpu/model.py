"""Frames per second of several trainings on one GPU, in total and of each, beside one training alone. Pure.

A training's figure is its frames over its own mean iteration, of those that count for the run. The total is
the sum over the trainings.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from reports.analysis.machines import Machine
from reports.analysis.same_work import Work, work_of
from reports.sets.version import ResultSet, Version
from suite.schema.record import Case, CaseResult, RankRecord, RunRecord
from suite.statistics.intervals import Estimate, mean_of, ratio_of
from suite.statistics.reduce import trainings_fps
from suite.statistics.series_model import SetModel
from suite.statistics.twins import is_twin


@dataclass(frozen=True, kw_only=True)
class Shared:
    """One number of trainings. Frames are per second."""

    result: CaseResult
    total_fps: Estimate | None  # None: no run completed
    each_fps: tuple[float, float] | None  # of the slowest and of the fastest training: medians over the runs
    over_one: Estimate | None  # total over that of one training alone
    all_at_work: float | None  # share of the time in turns in which all trainings ran, median over the runs
    mps: bool | None  # whether all runs shared the GPU through MPS; None: unknown, or some did

    @property
    def trainings(self) -> int:
        return self.result.case.trainings_per_gpu

    @property
    def each_over_alone(self) -> Estimate | None:
        """How fast each training is compared with one alone, on average."""
        return self.over_one and self.over_one.mapped(lambda ratio: ratio / self.trainings)


@dataclass(frozen=True, kw_only=True)
class Group:
    """One training, and several of the same, by their number."""

    numbers: tuple[Shared, ...]

    @property
    def case(self) -> Case:
        return self.numbers[0].result.case

    @property
    def key(self) -> tuple[str, Work]:
        """Equal for two groups that do the same."""
        return _key(self.case)

    @property
    def mps(self) -> bool | None:
        """Whether all that completed shared the GPU through MPS; None: unknown, or some did."""
        answers = {each.mps for each in self.numbers if each.result.completed}
        return answers.pop() if len(answers) == 1 else None


type Range = tuple[float, float]  # the least and the most over groups


def range_of_gains(found: Sequence[Group]) -> dict[int, Range]:
    """Number of trainings, fewest first -> total frames of so many over those of one."""
    return ranges((each.trainings, each.over_one) for group in found for each in group.numbers[1:])


def range_of_speeds(found: Sequence[Group]) -> dict[int, Range]:
    """Number of trainings, fewest first -> how fast each of so many is compared with one alone."""
    return ranges((each.trainings, each.each_over_alone) for group in found for each in group.numbers[1:])


def ranges(found: Iterable[tuple[int, Estimate | None]]) -> dict[int, Range]:
    """Numbers of trainings, each with an estimate if it is known -> the range of each number, fewest first."""
    values: dict[int, list[float]] = {}
    for trainings, estimate in found:
        if estimate is not None:
            values.setdefault(trainings, []).append(estimate.value)
    return {trainings: (min(each), max(each)) for trainings, each in sorted(values.items())}


def without_mps(found: Sequence[Group]) -> Sequence[Group]:
    """Return the groups that did not share the GPU through MPS; all if there are no others."""
    return [group for group in found if not group.mps] or found


def groups(results: Sequence[CaseResult]) -> tuple[Group, ...]:
    """Return every case of one training that has several of the same beside it, in the order of ``results``."""
    alike: dict[tuple[str, Work], list[CaseResult]] = {}
    for result in results:
        if not is_twin(result.case):
            alike.setdefault(_key(result.case), []).append(result)
    found = [sorted(each, key=lambda one: one.case.trainings_per_gpu) for each in alike.values()]
    model = SetModel.of(results)
    return tuple(_group(each, model) for each in found if each[0].case.trainings_per_gpu == 1 and len(each) > 1)


def total_fps_of_runs(result: CaseResult) -> dict[int, float]:
    """Each completed run -> frames per second of all its trainings."""
    return {record.round: sum(trainings_fps(record)) for record in result.completed}


def all_at_work(record: RunRecord) -> float | None:
    """Return the share of the time in turns in which all trainings ran; None for a run without turns.

    They begin a turn together, and the fastest waits until the slowest has ended it.
    """
    numbers = record.ranks[0].samples.get("turn", ())
    turns: dict[float, list[int]] = {}
    for iteration, number in enumerate(numbers):
        if number is not None:
            turns.setdefault(number, []).append(iteration)
    spans = [[_span_s(rank, turn[0], turn[-1]) for rank in record.ranks] for turn in turns.values()]
    return sum(map(min, spans)) / sum(map(max, spans)) if spans else None


def _span_s(rank: RankRecord, first: int, last: int) -> float:
    begun_s, ended_s = ((rank.samples["start_s"][iteration] or 0.0) for iteration in (first, last))
    return ended_s + (rank.samples["iteration_time_s"][last] or 0.0) - begun_s


def _key(case: Case) -> tuple[str, Work]:
    alone = replace(case, trainings_per_gpu=1, num_envs_global=case.num_envs * case.world_size, division="closed")
    return case.series, work_of(alone)


def _group(results: Sequence[CaseResult], model: SetModel) -> Group:
    return Group(numbers=tuple(_shared(one, model.speedup(one.case, results[0].case)) for one in results))


def _shared(result: CaseResult, over_one: Estimate | None) -> Shared:
    totals = total_fps_of_runs(result)
    runs = [trainings_fps(record) for record in result.completed]
    shares = [share for record in result.completed if (share := all_at_work(record)) is not None]
    answers = {rank.settings.get("mps") for record in result.completed for rank in record.ranks}
    (answer,) = answers if len(answers) == 1 else (None,)
    return Shared(
        result=result,
        total_fps=mean_of(totals.values()) if totals else None,
        each_fps=(statistics.median(map(min, runs)), statistics.median(map(max, runs))) if runs else None,
        over_one=over_one,
        all_at_work=statistics.median(shares) if shares else None,
        mps=answer if isinstance(answer, bool) else None,
    )


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
