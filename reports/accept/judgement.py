"""A machine judged: each of its cases and parts among those of published machines with the same GPU model. Pure.

The cases decide; if no run of a case completed, nothing is accepted. Series with cold starts have too few iterations to
say how fast a machine is, so they are left out. Times of an iteration are compared at the speed of this machine's
cores: every run is adjusted by how far the work's time goes with the core probe between machines. How fast the cores
are is a part of its own. A case whose interval may hide a machine that is a fifth slower is open.

A part says where a slow machine loses its time: it is slow if it is slow in at least half of the cases of which that
can be said.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from reports.accept.parts import PARTS, Part, Placed, Word, placed
from reports.accept.published import Machine, other_versions
from reports.analysis.curves import measured_for_speed
from reports.analysis.same_work import work_of
from suite.files.wording import counted
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL
from suite.statistics.machine_model import MachineModel, MachineRuns
from suite.statistics.reduce import window
from suite.statistics.series_model import PRIOR_SLOPE, RunTime, run_time

MOST: Final = 0.5
type Answer = Literal["accepted", "slow", "cannot say"]
EXIT_CODES: Final[Mapping[Answer, int]] = {"accepted": 0, "slow": 1, "cannot say": 2}


@dataclass(frozen=True, kw_only=True)
class JudgedCase:
    """A case with its time of an iteration in s. ``reason``: why it is open; empty if it is not."""

    result: CaseResult
    time: Placed
    parts: Mapping[str, Placed]  # by name of the part; without parts that no run of this machine has
    reason: str = ""

    @property
    def word(self) -> Word:
        """That of its time, but open if its interval may hide a slow machine."""
        return "open" if self.reason else self.time.word


@dataclass(frozen=True, kw_only=True)
class JudgedPart:
    """A part in all cases that have it."""

    part: Part
    cases: Mapping[str, Placed]  # by case id

    @property
    def decided(self) -> Mapping[str, Placed]:
        return {case_id: one for case_id, one in self.cases.items() if one.word != "open"}

    @property
    def word(self) -> Word:
        words = Counter(one.word for one in self.decided.values())
        if not words:
            return "open"
        likely: Word
        for likely in ("slow", "fast"):
            if words[likely] >= MOST * words.total():
                return likely
        return "within"

    @property
    def is_mostly_above(self) -> bool:
        """Whether its value is above the slowest machine's in at least half of the cases, sure or not."""
        above = [
            one.value.value > one.slowest for one in self.decided.values() if one.value and one.slowest is not None
        ]
        return sum(above) >= MOST * len(above) if above else False

    @property
    def worst(self) -> tuple[str, Placed] | None:
        """The case in which it is furthest above the slowest machine; of those that can be judged, if any can.

        Of equal ones it is the first by its id.
        """
        cases = self.decided or {case_id: one for case_id, one in self.cases.items() if one.others}
        return max(sorted(cases.items()), key=lambda item: item[1].over_slowest or 0.0, default=None)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """``drivers``: of this machine; ``published_drivers``: how many published machines have which."""

    model: str
    machines: tuple[str, ...]  # of that model
    cases: tuple[JudgedCase, ...]
    failed: tuple[str, ...]  # ids of cases that began and of which no run completed
    parts: tuple[JudgedPart, ...]
    drivers: tuple[str, ...]
    published_drivers: Mapping[str, int]

    def with_word(self, *words: Word) -> tuple[JudgedCase, ...]:
        return tuple(one for one in self.cases if one.word in words)

    @property
    def answer(self) -> Answer:
        if self.with_word("slow"):
            return "slow"
        return "accepted" if self.with_word("within", "fast") and not self.failed else "cannot say"

    @property
    def exit_code(self) -> int:
        """0: no case is slow; 1: one is; 2: none can be compared, or one failed."""
        return EXIT_CODES[self.answer]

    @property
    def most_others(self) -> int | None:
        """How many machines a slow case is compared with, at most; None if none is slow."""
        return max((len(one.time.others) for one in self.with_word("slow")), default=None)

    @property
    def once_in(self) -> int | None:
        """By chance, a machine as good as so many others is slower than all of them once in so many times."""
        return None if self.most_others is None else self.most_others + 1

    @property
    def has_new_driver(self) -> bool:
        """Whether no published machine has this machine's driver."""
        return bool(self.published_drivers) and not self.published_drivers.keys() & set(self.drivers)

    @property
    def grown(self) -> tuple[JudgedPart, float] | None:
        """The part in which slow cases lose most, and its mean share of what they lose; None if no part grew."""
        slow = {one.result.case.case_id: one for one in self.with_word("slow")}
        shares = [
            (part, statistics.fmean(found))
            for part in self.parts
            if part.part.kind == "time"
            and (found := [share for name in part.cases if (share := _share(part, slow.get(name))) is not None])
        ]
        most = max(shares, key=lambda pair: pair[1], default=None)
        return most if most and most[1] > 0 else None


def _share(part: JudgedPart, one: JudgedCase | None) -> float | None:
    """The part of a slow case's added time that was added in this part of its iteration."""
    if one is None or not one.time.added:
        return None
    added = part.cases[one.result.case.case_id].added
    return None if added is None else added / one.time.added


def judge(results: Sequence[CaseResult], model: str, machines: Sequence[Machine]) -> Judgement:
    """Judge the completed cases on GPUs among ``machines``, which are other machines with GPUs of ``model``."""
    on_gpus = [result for result in measured_for_speed(results) if result.case.device == "cuda"]
    completed = [result for result in on_gpus if result.completed]
    cases = tuple(_judged(result, machines) for result in completed)
    drivers = {record.environment.driver_version for result in completed for record in result.completed}
    return Judgement(
        model=model,
        machines=tuple(machine.name for machine in machines),
        cases=cases,
        failed=tuple(result.case.case_id for result in on_gpus if result.begun and not result.completed),
        parts=tuple(
            JudgedPart(
                part=part,
                cases={one.result.case.case_id: one.parts[part.name] for one in cases if part.name in one.parts},
            )
            for part in PARTS
        ),
        drivers=tuple(sorted(driver for driver in drivers if driver)),
        published_drivers=Counter(driver for machine in machines for driver in sorted(machine.drivers)),
    )


def _judged(result: CaseResult, machines: Sequence[Machine]) -> JudgedCase:
    own = result.completed
    others = {machine.name: found for machine in machines if (found := machine.comparable(own[0]))}
    time = _at_own_core_speed(own, others)
    parts = {part.name: _placed_part(part, own, others) for part in PARTS}
    return JudgedCase(
        result=result,
        time=time,
        parts={name: one for name, one in parts.items() if one.value is not None},
        reason=_why_open(own, others, machines) if time.word == "open" else _may_hide(time),
    )


def _at_own_core_speed(own: Sequence[RunRecord], others: Mapping[str, Sequence[RunRecord]]) -> Placed:
    """The times of an iteration, over the iterations that all runs have, at the mean speed of this machine's cores."""
    every = [*own, *(record for records in others.values() for record in records)]
    common = min((window(record) for record in every), key=len)
    mine = [run_time(record, common) for record in own]
    theirs = {name: [run_time(record, common) for record in records] for name, records in others.items()}
    my_probes, slope = _log_probes(mine), _slope(theirs.values())

    def adjusted(runs: Sequence[RunTime]) -> list[float]:
        probes = _log_probes(runs)
        if my_probes is None or probes is None:
            return [math.exp(run.log_time) for run in runs]
        core = statistics.fmean(my_probes)
        return [math.exp(run.log_time + slope * (core - probe)) for run, probe in zip(runs, probes, strict=True)]

    return placed(adjusted(mine), {name: adjusted(runs) for name, runs in theirs.items()})


def _log_probes(runs: Sequence[RunTime]) -> list[float] | None:
    """The logarithm of the core probe of each run; None if a run has none."""
    probes = [run.log_probe for run in runs if run.log_probe is not None]
    return probes if probes and len(probes) == len(runs) else None


def _slope(machines: Iterable[Sequence[RunTime]]) -> float:
    """How far log times of machines go with their log probes, from 0 to 1."""
    probed = [
        MachineRuns(label="", gpu="", runs=tuple(zip((run.log_time for run in runs), probes, strict=True)))
        for runs in machines
        if (probes := _log_probes(runs)) is not None
    ]
    return min(1.0, max(0.0, MachineModel(probed).likely_slope)) if probed else PRIOR_SLOPE


def _may_hide(time: Placed) -> str:
    if not time.may_hide or time.word != "within" or not (time.value and time.value.interval and time.middle):
        return ""
    most = time.value.interval[1] / time.middle - 1
    return f"it may be up to {most:.0%} slower than the median machine; run it again with more --repeats"


def _placed_part(part: Part, own: Sequence[RunRecord], others: Mapping[str, Sequence[RunRecord]]) -> Placed:
    def values(records: Sequence[RunRecord]) -> list[float]:
        alike = (record for record in records if part.is_like(own[0], record))
        return [value for record in alike if (value := part.value(record)) is not None]

    return placed(values(own), {name: values(records) for name, records in others.items()})


def _why_open(own: Sequence[RunRecord], others: Mapping[str, Sequence[RunRecord]], machines: Sequence[Machine]) -> str:
    if others:
        return f"{counted(len(own), 'run')} completed, and {MIN_ROUNDS_FOR_INTERVAL} are needed"
    same = [machine.by_work[work_of(own[0].case)] for machine in machines if work_of(own[0].case) in machine.by_work]
    if not same:
        return "no other published machine ran it"
    return (
        f"{counted(len(same), 'machine')} ran it with other versions: {', '.join(other_versions(own[0], same[0][0]))}"
    )
