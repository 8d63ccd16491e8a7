"""``bench --capacity SERIES``: find how many environments fit on one GPU. Each number that is tried is a case.

The search doubles the environments until memory runs out or the throughput stops rising. Then it bisects the gap that
contains the answer. If memory is the bound, the answer is the largest number that ran. If throughput is the bound, the
answer is the smallest number that reaches the best throughput seen: more environments cost memory and learning steps,
and gain nothing. Running out of memory is a normal outcome of a trial. Any other failure ends the search, because
nothing is known beyond it.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import gcd
from pathlib import Path
from typing import Final, Literal, TypedDict

from pydantic import ConfigDict, with_config
from rich.console import Console

from suite.campaign.cases import require_raw, set_failures_aside
from suite.campaign.folder import identity, opened
from suite.campaign.planning.plan import cases_of, matrix_of, planned_cases
from suite.campaign.runs.rounds import run_planned
from suite.campaign.state import Campaign
from suite.errors import UsageError
from suite.files.json_file import read_json, replace_json
from suite.matrix.catalog import Catalog
from suite.matrix.selection import with_num_envs
from suite.matrix.tables import Matrix
from suite.options.command_line import say
from suite.options.options import Options, refuse_unused
from suite.schema.record import Case, CaseResult, Outcome, PlannedCase
from suite.statistics.reduce import completed_times_s

MIN_RISE: Final = 0.05  # relative; a doubling that gains less does not count: fresh processes differ by about 3 %
RESOLUTION: Final = 1 / 8  # of the answer; each further bisection costs a process

EAGER_GRANULARITY: Final = 16  # environments, if the library can cut a batch of any size into minibatches

type Bound = Literal["memory", "throughput", "asked", "failure"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """All rounds of one number of environments."""

    num_envs: int
    outcome: Outcome  # "completed" if any round completed
    fps: float | None  # environment steps per second, learning included; None unless completed


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The answer, what bounds it, and the nearest number beyond it that was tried."""

    num_envs: int | None  # None: not even the first number ran
    fps: float | None
    bound: Bound
    beyond: int | None  # memory: the smallest number that did not fit; throughput: the largest that is too slow
    reason: str


@with_config(ConfigDict(extra="allow"))  # unknown fields are written back unchanged
class _StoredAnswer(TypedDict):
    first_case_id: str


class _Stored(TypedDict):
    """The fields of ``capacity.json`` that are read."""

    found: list[_StoredAnswer]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer for one library and stack of the series."""

    first: Case  # at the number of environments that the search began with
    trials: tuple[Trial, ...]
    capacity: Capacity


def of_capacity(options: Options) -> Options:
    """The options of a search: one rank of one series, by default one round a point. Raises UsageError for the rest."""
    asked, selection, series = options.rounds, options.selection, options.search.capacity or ""
    refuse_unused(options, "--capacity", series)
    if options.place.render_only:  # "leave it out" would be bad advice: its user does not want jobs
        raise UsageError(
            f"--render-only cannot write the scripts of --capacity {series}: how many environments a run "
            "of the search has depends on how the run before it ended. Nothing was submitted. Write the scripts of a "
            "matrix without --capacity, or search without --render-only, which submits a job for each run."
        )
    one_rank = replace(selection, series=(series,), gpus=(1,))
    return replace(options, selection=one_rank, rounds=replace(asked, a_a=False, repeats=asked.repeats or 1))


def find_capacity(campaign: Campaign) -> Campaign:
    """Search along every feasible case of the plan, one after the other, and store trials and answers.

    Rounds that an earlier command finished are kept. Raises UsageError if no case can run.
    """
    feasible = tuple(item for item in campaign.planned if not item.infeasible)
    if not feasible:
        reasons = "; ".join(dict.fromkeys(item.infeasible or "" for item in campaign.planned))
        raise UsageError(f"No configuration of series {campaign.options.search.capacity} can run here: {reasons}.")
    campaign = replace(campaign, planned=feasible, started_s=time.monotonic())
    matrix, answers, results = matrix_of(campaign), [], []
    with opened(campaign.out, identity(campaign)) as folder:
        firsts = first_points([item.case for item in campaign.planned])
        fewest, most = max(first.num_envs for first in firsts), campaign.options.search.most_envs
        if most is not None and most < fewest:
            raise UsageError(
                f"--most-envs is {most}, allowed is {fewest} or more: the search begins with that many environments, "
                "the smallest number of the series. Give a larger limit, or change num_envs of the series."
            )
        for first in firsts:
            trials, multiple = list[Trial](), granularity(first, campaign.catalog)
            while isinstance(size := next_size(trials, start=first.num_envs, granularity=multiple, most=most), int):
                point = replace(campaign, planned=(_planned(campaign, matrix, first, size),))
                set_failures_aside(point, folder)
                require_raw(point, folder)
                (result,) = run_planned(point, folder)
                trials.append(trial_of(result))
                results.append(result)
            answers.append(Answer(first=first, trials=tuple(trials), capacity=size))
        write_answers(answers, campaign.out / "capacity.json")
    print_capacity(campaign.console, answers)
    return replace(campaign, results=tuple(results))


def first_points(cases: Sequence[Case]) -> list[Case]:
    """The case with the fewest environments among those that differ in nothing else."""
    fewest: dict[str, Case] = {}
    for case in sorted(cases, key=lambda case: case.num_envs):
        fewest.setdefault(_resized_id(case, 0), case)
    return [case for case in cases if case in fewest.values()]


def trial_of(result: CaseResult) -> Trial:
    """The trial of a case: the median over its completed rounds. One completed round proves that the case fits."""
    times_s = completed_times_s(result.rounds)
    if not times_s:
        return Trial(num_envs=result.case.num_envs, outcome=result.rounds[-1].outcome, fps=None)
    fps = result.case.frames_per_iteration / statistics.median(times_s)
    return Trial(num_envs=result.case.num_envs, outcome="completed", fps=fps)


def granularity(case: Case, catalog: Catalog) -> int:
    """The smallest step between numbers of environments at which a rank's samples fill whole minibatches."""
    if catalog.tasks[case.task].agents[case.rl_library].minibatch_size is None:
        return EAGER_GRANULARITY
    return case.minibatch_size // gcd(case.minibatch_size, case.num_steps_per_env)


def _planned(campaign: Campaign, matrix: Matrix, first: Case, num_envs: int) -> PlannedCase:
    cases = cases_of(campaign, with_num_envs(matrix, first.series, num_envs))
    case = next(case for case in cases if case.case_id == _resized_id(first, num_envs))
    (item,) = planned_cases(campaign, [case], rounds=campaign.rule.rounds)
    if item.infeasible:
        raise UsageError(
            f"The capacity search reached {num_envs} environments, but {case.case_id} {item.infeasible}. "
            "Begin it at another number: num_envs of the series."
        )
    return item


def _resized_id(case: Case, num_envs: int) -> str:
    """The id that a case of one rank has with another number of environments."""
    return case.case_id.replace(f"-n{case.num_envs_global}-{case.topology}", f"-n{num_envs}-{case.topology}")


def next_size(trials: Sequence[Trial], *, start: int, granularity: int = 1, most: int | None = None) -> int | Capacity:
    """Return the next number of environments to try, or the answer.

    The first number is ``start``, which is at most ``most``. The others are its doubles up to ``most``, and multiples
    of ``granularity`` between them.
    """
    search = _Search(
        outcomes={trial.num_envs: trial.outcome for trial in trials},
        fps={trial.num_envs: trial.fps for trial in trials if trial.fps is not None},
        granularity=granularity,
    )
    doubled = [start]
    while (size := doubled[-1]) in search.outcomes:
        before = doubled[-2] if len(doubled) > 1 else None
        if search.outcomes[size] == "oom":
            return search.memory(before, size)
        if size not in search.fps:
            return search.failure(before, size)
        if before is not None and search.fps[size] < (1 + MIN_RISE) * search.fps[before]:
            return search.throughput(doubled)
        if most is not None and 2 * size > most:
            rise = f"only {start} were tried" if before is None else f"throughput still rises at {size}"
            return search.answer(size, "asked", None, f"{rise}, and the limit is {most}")
        doubled.append(2 * size)
    return doubled[-1]


@dataclass(frozen=True, kw_only=True)
class _Search:
    """The trials so far. Each method that ends the doubling returns the next number to try, or the answer."""

    outcomes: Mapping[int, Outcome]
    fps: Mapping[int, float]  # of those that completed [frames/s]
    granularity: int

    def answer(self, num_envs: int | None, bound: Bound, beyond: int | None, reason: str) -> Capacity:
        fps = None if num_envs is None else self.fps[num_envs]
        return Capacity(num_envs=num_envs, fps=fps, bound=bound, beyond=beyond, reason=reason)

    def failure(self, good: int | None, failed: int) -> Capacity:
        reason = f"{failed} ended as {self.outcomes[failed]}, which tells nothing about memory or throughput"
        return self.answer(good, "failure", failed, reason)

    def memory(self, good: int | None, beyond: int) -> int | Capacity:
        if good is None:
            return self.answer(None, "memory", beyond, f"{beyond} do not fit in memory; begin with fewer")
        ends = self.narrowed(good, beyond, lambda size: self.outcomes[size] == "oom")
        if not isinstance(ends, tuple):
            return ends
        good, beyond = ends
        return self.answer(good, "memory", beyond, f"{good} fit in memory, {beyond} do not")

    def throughput(self, doubled: Sequence[int]) -> int | Capacity:
        target = (1 - MIN_RISE) * max(self.fps[size] for size in doubled)
        at = next(index for index, size in enumerate(doubled) if self.fps[size] >= target)
        slower, enough = doubled[at - 1] if at else None, doubled[at]
        if slower is not None:
            ends = self.narrowed(slower, enough, lambda size: size in self.fps and self.fps[size] >= target)
            if not isinstance(ends, tuple):
                return ends
            slower, enough = ends
        reason = f"{doubled[-1]} are less than {MIN_RISE:.0%} faster than {doubled[-2]}"
        return self.answer(enough, "throughput", slower, reason)

    def narrowed(self, low: int, high: int, is_high: Callable[[int], bool]) -> tuple[int, int] | int | Capacity:
        """Halve the gap: the next number to try, the answer if one failed, or the ends once they are near enough."""
        while high - low > max(self.granularity, RESOLUTION * low):
            middle = (low + high) // 2 // self.granularity * self.granularity
            if middle <= low:
                break
            if middle not in self.outcomes:
                return middle
            if is_high(middle):
                high = middle
            elif middle in self.fps:
                low = middle
            else:
                return self.failure(low, middle)
        return low, high


def write_answers(answers: Sequence[Answer], path: Path) -> None:
    """Write the answers with their trials and the rule. Answers of earlier commands for other cases are kept.

    Raises:
        StoreError: earlier answers cannot be read, or the file cannot be written.
    """
    stored = read_json(path, _Stored, next_step="Move it away and run the same command again.")
    by_first: dict[str, object] = {answer["first_case_id"]: answer for answer in stored["found"]} if stored else {}
    for answer in answers:
        by_first[answer.first.case_id] = {
            "first_case_id": answer.first.case_id,
            "capacity": asdict(answer.capacity),
            "trials": [asdict(trial) for trial in answer.trials],
        }
    replace_json({"min_rise": MIN_RISE, "resolution": RESOLUTION, "found": [*by_first.values()]}, path)


def print_capacity(console: Console, answers: Sequence[Answer]) -> None:
    """Print every number of environments that was tried, and the answer."""
    for answer in answers:
        first, capacity = answer.first, answer.capacity
        console.print(f"[bold]{first.series}[/], {first.rl_library} on {first.stack}", highlight=False)
        for trial in sorted(answer.trials, key=lambda trial: trial.num_envs):
            speed = trial.outcome if trial.fps is None else f"{trial.fps:,.0f} frames/s"
            say(console, f"  {trial.num_envs:>9,} environments: {speed}")
        number = "no answer" if capacity.num_envs is None else f"{capacity.num_envs:,} environments in one process"
        say(console, f"  capacity: {number}, bound by {capacity.bound}: {capacity.reason}")
