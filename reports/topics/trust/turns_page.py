"""Rounds in turns beside rounds that run alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from reports.analysis.environments import gpu_name
from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    answer_of_page,
    estimated,
    html_table,
    paragraph,
    percent,
    percent_interval,
    seconds,
    together,
)
from reports.display.per_set import under_titles
from reports.sets.version import ResultSet, Version
from suite.files.wording import are, counted
from suite.schema.record import RunRecord
from suite.statistics.intervals import Estimate, estimate, mean_of, ratio_of
from suite.statistics.reduce import completed_times_s, iteration_times_s
from suite.statistics.turns_check import BothWays, measured_both_ways

SECONDS_OF_MINUTE = 60


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One case, measured both ways."""

    case_id: str
    in_turns_s: Estimate  # seconds per iteration
    alone_s: Estimate
    in_turns_rounds: int
    alone_rounds: int
    ratio: Estimate  # in turns over alone; above 1: turns are slower

    @property
    def is_within_noise(self) -> bool | None:
        """Whether the interval contains 1; None without an interval."""
        return _contains_one(self.ratio)


@dataclass(frozen=True, kw_only=True)
class TurnsCheck:
    """All cases of a campaign that were measured both ways."""

    cases: tuple[Difference, ...]
    over_all: Estimate  # geometric mean of the ratios
    in_turns_minutes: float | None  # GPU-minutes (of the machine without GPUs) of a process; None: see turns_check
    alone_minutes: float | None
    least_cost: float | None  # that of turns whose starts and ends cost nothing; None: times are missing

    @property
    def cost(self) -> float | None:
        """Cost of a process in turns over that of one alone."""
        if self.in_turns_minutes is None or not self.alone_minutes:
            return None
        return self.in_turns_minutes / self.alone_minutes


@dataclass(frozen=True, kw_only=True)
class Pooled:
    """One case on one GPU model, over all sets that measured it both ways."""

    case_id: str
    gpu: str | None  # model; None: it ran on CPUs
    sets: int
    in_turns_rounds: int
    alone_rounds: int
    ratio: Estimate  # geometric mean of the ratios of the sets; in turns over alone

    @property
    def is_within_noise(self) -> bool | None:
        return _contains_one(self.ratio)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """How many cases have an interval, and in how many of them it does not contain 1."""

    cases: int
    outside: int


def judged(cases: Sequence[Difference]) -> Judged:
    known = [case.is_within_noise for case in cases if case.is_within_noise is not None]
    return Judged(cases=len(known), outside=known.count(False))


def pairs_of(one: ResultSet) -> tuple[BothWays, ...]:
    """Every case of a set that was measured both ways."""
    return measured_both_ways((*one.campaign.results, *one.copies))


def pooled(pairs: Sequence[BothWays]) -> tuple[Pooled, ...]:
    """Compare what several sets measured. A round is compared with rounds of its own set only."""
    found: dict[tuple[str, str | None], list[BothWays]] = {}
    for pair in pairs:
        environment = pair.in_turns.rounds[0].environment
        found.setdefault((pair.in_turns.case.case_id, gpu_name(environment)), []).append(pair)
    return tuple(
        Pooled(
            case_id=case_id,
            gpu=gpu,
            sets=len(both),
            in_turns_rounds=sum(len(pair.in_turns.rounds) for pair in both),
            alone_rounds=sum(len(pair.alone.completed) for pair in both),
            ratio=mean_ratio(both),
        )
        for (case_id, gpu), both in sorted(found.items(), key=lambda each: (each[0][0], each[0][1] or ""))
        if len(both) > 1
    )


def mean_ratio(pairs: Sequence[BothWays]) -> Estimate:
    """Geometric mean, over all pairs, of the time in turns over that alone; at least one pair."""
    return estimate([times_s for pair in pairs for times_s in _times_s(pair)], _mean_of_ratios)


def turns_check(pairs: Sequence[BothWays]) -> TurnsCheck | None:
    """Compare; None without a case that has rounds of both kinds.

    The cost in turns is None where it is unknown, and where cases that did not run alone too were measured in the same
    turns: both ways would pay for different work.
    """
    if not pairs:
        return None
    cases = tuple(
        Difference(
            case_id=pair.in_turns.case.case_id,
            in_turns_s=mean_of(turning_s),
            alone_s=mean_of(alone_s),
            in_turns_rounds=len(turning_s),
            alone_rounds=len(alone_s),
            ratio=ratio_of(turning_s, alone_s),
        )
        for pair in pairs
        for turning_s, alone_s in [_times_s(pair)]
    )
    in_turns = [record for pair in pairs for record in pair.in_turns.rounds]
    alone = [record for pair in pairs for record in pair.alone.completed]
    asked = {case.case_id for case in cases}
    is_same_work = all(asked.issuperset(record.turns.beside) for record in in_turns if record.turns)
    return TurnsCheck(
        cases=cases,
        over_all=mean_ratio(pairs),
        in_turns_minutes=_minutes_of_a_process(in_turns) if is_same_work else None,
        alone_minutes=_minutes_of_a_process(alone),
        least_cost=_share_of_iterations(alone),
    )


def _times_s(pair: BothWays) -> tuple[list[float], list[float]]:
    """Seconds per iteration of the rounds in turns, and of those alone."""
    return completed_times_s(pair.in_turns.rounds), completed_times_s(pair.alone.completed)


def _mean_of_ratios(means: tuple[float, ...]) -> float:
    """Geometric mean of the ratios of means that alternate: one in turns, one alone."""
    logs = [math.log(turning / alone) for turning, alone in zip(means[::2], means[1::2], strict=True)]
    return math.exp(math.fsum(logs) / len(logs))


def _share_of_iterations(alone: Sequence[RunRecord]) -> float | None:
    """Return the share of the time of rounds that were iterations; those never run at the same time on one GPU."""
    walls_s = [record.wall_time_s for record in alone if record.wall_time_s is not None]
    if not walls_s or len(walls_s) < len(alone):
        return None
    return math.fsum(time_s for record in alone for time_s in iteration_times_s(record)) / math.fsum(walls_s)


def _minutes_of_a_process(records: Sequence[RunRecord]) -> float | None:
    """GPU-minutes of all blocks over the number of processes; a round alone is a block of its own."""
    blocks: dict[tuple[int, frozenset[str]], list[RunRecord]] = {}
    for record in records:
        beside = record.turns.beside if record.turns else ()
        blocks.setdefault((record.round, frozenset((record.case.case_id, *beside))), []).append(record)
    minutes = [_minutes(block) for block in blocks.values()]
    known = [each for each in minutes if each is not None]
    processes = sum(len(cases) for _, cases in blocks)  # one that did not complete was paid for too
    return math.fsum(known) / processes if known and len(known) == len(minutes) else None


def _minutes(block: Sequence[RunRecord]) -> float | None:
    """From the first start to the last end, on as many GPUs as the largest case has; a CPU counts as one."""
    spans = [
        (started_s, started_s + record.wall_time_s)
        for record in block
        if record.wall_time_s is not None and (started_s := _started_s(record)) is not None
    ]
    if len(spans) < len(block):
        return None
    gpus = max(record.case.world_size if record.case.device == "cuda" else 1 for record in block)
    return gpus * (max(end_s for _, end_s in spans) - min(start_s for start_s, _ in spans)) / SECONDS_OF_MINUTE


def _started_s(record: RunRecord) -> float | None:
    return None if record.started_utc is None else datetime.fromisoformat(record.started_utc).timestamp()


def _contains_one(ratio: Estimate) -> bool | None:
    return None if ratio.interval is None else ratio.interval[0] <= 1 <= ratio.interval[1]


WITHIN: Final[dict[bool | None, str]] = {True: "yes", False: "no", None: MISSING}


def has_check(version: Version) -> bool:
    return any(_of(one) for one in version.sets)


def check(version: Version) -> Html:
    """Show for every set that measured cases both ways the answer, the differences and the cost."""
    asked = [one for one in version.sets if _of(one)]
    return together([*_over_sets(asked), under_titles(asked, _shown, are_named=version.must_name_all_sets)])


def answer(version: Version) -> Html:
    """Say how far turns and rounds alone are apart over all sets, and how many cases are outside their noise."""
    found = [checked for one in version.sets if (checked := _of(one))]
    counts = judged([case for one in found for case in one.cases])
    if not counts.cases:
        return answer_of_page("No case was measured three times each way, so nothing is known of the difference.")
    over_all = mean_ratio([pair for one in version.sets for pair in pairs_of(one)])
    where = "" if len(found) == 1 else f" of {len(found)} sets"
    return answer_of_page(
        f"Over all cases{where} an iteration takes {_apart(over_all)}."
        f" {counts.outside or 'None'} of {counted(counts.cases, 'case')} {are(counts.outside or 1)} outside the noise."
    )


def _of(one: ResultSet) -> TurnsCheck | None:
    return turns_check(pairs_of(one))


def _over_sets(sets: Sequence[ResultSet]) -> list[Displayed]:
    """Return a table of the cases that several sets have; nothing without any."""
    found = pooled([pair for one in sets for pair in pairs_of(one)])
    if not found:
        return []
    said = (
        "These cases were measured in several sets. A difference over sets is the mean of their differences: rounds of"
        " two machines are not compared with each other."
    )
    table = html_table(
        ["Case", "GPU", "Sets", "Processes", "Difference", "Within the noise"],
        [
            [
                case.case_id,
                case.gpu or MISSING,
                str(case.sets),
                f"{case.in_turns_rounds} and {case.alone_rounds}",
                estimated(_change(case.ratio), percent),
                WITHIN[case.is_within_noise],
            ]
            for case in found
        ],
        label="Rounds in turns and alone over sets",
    )
    return [paragraph(said), table]


def _shown(one: ResultSet) -> Html:
    found = _of(one)
    if found is None:
        raise AssertionError("only sets with a check are shown")
    table = html_table(
        ["Case", "In turns, s/iteration", "Alone, s/iteration", "Processes", "Difference", "Within the noise"],
        [_row(case) for case in found.cases],
        label=f"Rounds in turns and alone{f', {one.title}' if one.title else ''}",
    )
    return together([paragraph(_answer(found)), table, paragraph(f"{one.campaign.where}. {_cost(found)}")])


def _row(case: Difference) -> list[str]:
    return [
        case.case_id,
        estimated(case.in_turns_s, seconds),
        estimated(case.alone_s, seconds),
        f"{case.in_turns_rounds} and {case.alone_rounds}",
        estimated(_change(case.ratio), percent),
        WITHIN[case.is_within_noise],
    ]


def _change(ratio: Estimate) -> Estimate:
    return ratio.mapped(lambda value: value - 1)


def _answer(found: TurnsCheck) -> str:
    counts = judged(found.cases)
    over_all = f"Over all cases an iteration takes {_apart(found.over_all)}."
    if not counts.cases:
        return f"{over_all} No case has the three processes each way that an interval needs."
    if not counts.outside:
        return f"{over_all} The difference of no case exceeds its noise ({counted(counts.cases, 'case')})."
    return (
        f"{over_all} {counts.outside} of {counted(counts.cases, 'case')} {are(counts.outside)} outside the noise. If"
        " the core probes do not explain it, measure such a case with --no-turns."
    )


def _apart(ratio: Estimate) -> str:
    """Such as ``1.9 % less time in turns than alone (-8.6 to 4.0 %)``."""
    change = _change(ratio)
    amount, word = percent(abs(change.value)), "more" if change.value > 0 else "less"
    within = "" if change.interval is None else f" ({percent_interval(change.interval)})"
    return f"{amount} {word} time in turns than alone{within}"


def _cost(found: TurnsCheck) -> str:
    if found.cost is None:
        return (
            "What both ways cost is not compared: times are missing, or cases that did not run alone were measured in "
            "the same turns."
        )
    cost = (
        f"A process in turns cost {found.in_turns_minutes:.2f} GPU-minutes and one alone {found.alone_minutes:.2f}: "
        f"{found.cost:.2f} times as much."
    )
    if found.least_cost is None:
        return cost
    return (
        f"{cost} It cannot be less than {found.least_cost:.2f} times: so much of the time alone is iterations, which "
        "never overlap."
    )
