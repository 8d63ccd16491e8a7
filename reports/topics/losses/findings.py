"""What the results of a version say together, across its series and sets. Pure.

Each function answers one question that no series answers alone: what an iteration goes to, how busy the GPU is, how far
places of one kind differ, and what more GPUs do to learning.
"""

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import as_shipped, curves
from reports.analysis.learned import Learned, learned
from reports.analysis.seeds import Seeds
from reports.analysis.time_split import Kind, Values
from reports.sets.version import Version
from suite.schema.record import Case, CaseResult
from suite.statistics.reduce import round_time_s

LEARNING: Final = "learning"  # parts of ``reports.analysis.time_split.PARTS``
BETWEEN_RANKS: Final = ("all-reduce", "waiting")
HALF: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class Split:
    """Where an iteration of one case goes, as shares of it that add up to 1."""

    case_id: str
    rollout: float
    learning: float
    between_ranks: float | None  # None for one rank
    busy_percent: float | None  # of the time any kernel ran on a GPU, however small
    power_w: float | None  # of a GPU


def splits(campaign: Campaign) -> tuple[Split, ...]:
    """Of the GPU cases that train on one node as upstream ships them, by series at the fewest and at the most GPUs."""
    found = []
    for series in (campaign.series(name) for name in campaign.series_names):
        for result in _ends(as_shipped(series.results) if series.kind == "scaling" else []):
            seen = series.inside[result.case.case_id]
            several = result.case.world_size > 1
            if not {LEARNING, *(BETWEEN_RANKS if several else ())} <= seen.shares.keys():
                continue
            learning = seen.shares[LEARNING]
            between = sum(seen.shares[part] for part in BETWEEN_RANKS) if several else None
            found.append(
                Split(
                    case_id=result.case.case_id,
                    rollout=1 - learning - (between or 0.0),
                    learning=learning,
                    between_ranks=between,
                    busy_percent=_median(seen.gpu_utilisation_percent),
                    power_w=None if (power_w := _median(seen.power_w)) is None else power_w / result.case.world_size,
                )
            )
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Filling:
    """What one number of environments makes of a GPU."""

    case_id: str
    who: str  # library and stack
    num_envs: int
    fps: dict[Kind, float]
    of_most: dict[Kind, float]  # over the most of any number of environments, of the same library and stack
    busy_percent: float | None
    power_w: float | None


def fillings(sweep: Campaign) -> tuple[tuple[Filling, ...], ...]:
    """Of a series that varies environments alone: by library and stack, fewest environments first."""
    groups: dict[tuple[str, str], list[CaseResult]] = {}
    for result in sorted(sweep.results, key=lambda result: result.case.num_envs):
        if result.completed and result.case.device == "cuda":
            groups.setdefault((result.case.rl_library, result.case.stack), []).append(result)
    return tuple(tuple(_filling(result, group, sweep) for result in group) for group in groups.values())


def sweeps(campaign: Campaign) -> list[Campaign]:
    """Return each series that trains and varies environments alone."""
    every = (campaign.series(name) for name in campaign.series_names)
    return [series for series in every if series.is_sweep and series.is_training]


def with_half_of_most(found: Sequence[Filling]) -> Filling | None:
    """Return the size with the fewest environments that makes half of the most steps; None if none is known to."""
    return next((one for one in found if one.of_most.get("step", 0.0) >= HALF), None)


def _filling(result: CaseResult, group: Sequence[CaseResult], sweep: Campaign) -> Filling:
    seen = sweep.inside[result.case.case_id]
    fps = {kind: values.median for kind, values in seen.fps.items()}
    every = [sweep.inside[other.case.case_id].fps for other in group]
    most = {kind: max(values[kind].median for values in every if kind in values) for kind in fps}
    return Filling(
        case_id=result.case.case_id,
        who=f"{result.case.rl_library}, {result.case.stack}",
        num_envs=result.case.num_envs,
        fps=fps,
        of_most={kind: value / most[kind] for kind, value in fps.items()},
        busy_percent=_median(seen.gpu_utilisation_percent),
        power_w=_median(seen.power_w),
    )


@dataclass(frozen=True, kw_only=True)
class Places:
    """The same training in several places, as whoever measured labelled them."""

    case_id: str  # of one of the cases: series that share a training name it each in its own way
    fps: dict[str, float]  # by label, of all rounds there
    perhaps_shared: frozenset[str] = frozenset()  # labels of machines that others may have used too

    @property
    def quickest(self) -> str:
        return max(self.fps, key=self.fps.__getitem__)

    @property
    def is_least(self) -> bool:
        """Whether the ratio may be larger: others may have slowed the quickest."""
        return self.quickest in self.perhaps_shared

    @property
    def slowest(self) -> str:
        return min(self.fps, key=self.fps.__getitem__)

    @property
    def ratio(self) -> float:
        return self.fps[self.quickest] / self.fps[self.slowest]


def places_of_cases(results: Iterable[CaseResult], perhaps_shared: Collection[str] = ()) -> tuple[Places, ...]:
    """Trainings that completed in several places with one kind of GPU, the furthest apart first.

    Machines of ``perhaps_shared``, by label, may look slower than they are: none of them counts as a slow one.
    """
    found: dict[tuple[Case, str], dict[str, list[CaseResult]]] = {}
    for result in as_shipped(results):
        records = result.completed
        gpus = ", ".join(sorted({gpu.name for record in records for gpu in record.environment.gpus}))
        label = records[0].environment.host_label
        if gpus and label:
            found.setdefault((_training(result.case), gpus), {}).setdefault(label, []).append(result)
    places = (_places(by_label, perhaps_shared) for by_label in found.values())
    return tuple(sorted((one for one in places if len(one.fps) > 1), key=lambda one: -one.ratio))


def places_of_version(version: Version) -> tuple[Places, ...]:
    """As ``places_of_cases``, of all sets that nobody else measured, and that did not share their machines."""
    own = [one for one in version.sets if not one.contributor and one.shared_machine != "yes"]
    unknown = [record for one in own if one.shared_machine == "unknown" for record in one.campaign.completed]
    labels = {record.environment.host_label or "" for record in unknown}
    return places_of_cases((result for one in own for result in one.campaign.results), labels)


def _training(case: Case) -> Case:
    """Return what a case trains, without its names and without how long, from which seed and on how many threads."""
    return replace(
        case,
        case_id="",
        series="",
        scaling="weak",  # with its environments and minibatch a case trains the same under either name
        minibatch_rule="fixed_minibatch",
        iterations=0,
        seed=0,
        seed_per_round=False,
        cpu_threads=None,
        timeout_s=0.0,
        hang_timeout_s=0.0,
    )


def _places(by_label: Mapping[str, Sequence[CaseResult]], perhaps_shared: Collection[str]) -> Places:
    case_id = next(result.case.case_id for those in by_label.values() for result in those)

    def order(one: CaseResult) -> tuple[int, bool]:
        return -len(one.completed), one.case.case_id != case_id

    # Of a place that measured it in several cases that of most runs counts: its figure is that of the case's own page.
    chosen = {label: min(those, key=order) for label, those in by_label.items()}
    fps = {label: _fps(one) for label, one in chosen.items()}
    slowest = min((value for label, value in fps.items() if label not in perhaps_shared), default=math.inf)
    kept = {label: value for label, value in fps.items() if label not in perhaps_shared or value > slowest}
    return Places(case_id=case_id, fps=kept, perhaps_shared=frozenset(perhaps_shared) & kept.keys())


def learned_in_strong_scaling(campaign: Campaign, of_seeds: Sequence[Seeds] = ()) -> tuple[tuple[Learned, ...], ...]:
    """One entry for each strong series with a fixed minibatch whose cases all report rewards, fewest GPUs first.

    The same number of iterations has the same number of frames there, and fewer optimiser steps on more GPUs.
    ``of_seeds``: what other seeds learned, of any number of ranks, since all rounds of a campaign mostly have one seed.
    """
    found = []
    for curve in curves(as_shipped(campaign.results)):
        if (curve[0].case.scaling, curve[0].case.minibatch_rule) != ("strong", "fixed_minibatch"):
            continue
        known = tuple(one for one in (learned(result, of_seeds) for result in curve) if one is not None)
        if len(known) == len(curve) and len({one.world_size for one in known}) > 1:
            found.append(known)
    return tuple(found)


def _ends(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Of each curve the cases with the fewest and with the most GPUs."""
    return [end for curve in curves(results) for end in (curve[:1] + curve[1:][-1:])]


def _fps(result: CaseResult) -> float:
    return result.case.frames_per_iteration / statistics.median(map(round_time_s, result.completed))


def _median(values: Values | None) -> float | None:
    return None if values is None else values.median
