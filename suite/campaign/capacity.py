"""``bench --capacity SERIES``: find how many environments fit on one GPU. Each number that is tried is a case.

The search doubles the environments until memory runs out or the throughput stops rising. Then it bisects the gap that
contains the answer. If memory is the bound, the answer is the largest number that ran. If throughput is the bound, the
answer is the smallest number that reaches the best throughput seen: more environments cost memory and learning steps,
and gain nothing. Running out of memory is a normal outcome of a trial. Any other failure ends the search, because
nothing is known beyond it.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import gcd
from pathlib import Path
from typing import Final, Literal, TypedDict

from pydantic import ConfigDict, with_config
from rich.console import Console

from suite.campaign import cases
from suite.campaign.display.progress import Reporter
from suite.campaign.folder import Folder
from suite.campaign.identity import identity, opened
from suite.campaign.runs.rounds import disk_errors, run_planned
from suite.campaign.schedule import known_rounds
from suite.campaign.state import Campaign
from suite.errors import UsageError
from suite.files.json_file import read_json, replace_json
from suite.matrix.cases import expand, with_num_envs, with_packages
from suite.matrix.catalog import Catalog
from suite.matrix.file import load_matrix
from suite.matrix.plan import plan
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
    """The options of a capacity search: one rank of one series, and one round a point by default.

    Raises:
        UsageError: an option is given that the search does not use.
    """
    asked, selection, series = options.rounds, options.selection, options.search.capacity or ""
    refuse_unused(options, "--capacity", series)
    if options.place.render_only:  # "leave it out" would be bad advice: its user does not want jobs
        raise UsageError(
            f"--render-only cannot write the scripts of --capacity {series}: how many environments a round "
            "of the search has depends on how the round before it ended. Nothing was submitted. Write the scripts of a "
            "matrix without --capacity, or search without --render-only, which submits a job for each round."
        )
    one_rank = replace(selection, series=(series,), gpus=(1,))
    return replace(options, selection=one_rank, rounds=replace(asked, a_a=False, repeats=asked.repeats or 1))


def find_capacity(campaign: Campaign) -> Campaign:
    """Search along every feasible case of the plan, one after the other, and store trials and answers.

    Rounds that an earlier command finished are kept.

    Raises:
        UsageError: no case or a point of the search cannot run here, or ``--most-envs`` is below the first point.
    """
    feasible = tuple(item for item in campaign.planned if not item.infeasible)
    if not feasible:
        reasons = "; ".join(dict.fromkeys(item.infeasible or "" for item in campaign.planned))
        raise UsageError(f"No case of series {campaign.options.search.capacity} can run here: {reasons}.")
    campaign = replace(campaign, planned=feasible, started_s=time.monotonic())
    matrix = load_matrix(campaign.options.selection.matrix, campaign.catalog)
    matrix = with_packages(matrix, campaign.options.setup.with_packages)
    answers, results = [], []
    with opened(campaign.out, identity(campaign)) as folder:
        firsts = first_points([item.case for item in campaign.planned])
        fewest, most = max(first.num_envs for first in firsts), campaign.options.search.most_envs
        if most is not None and most < fewest:
            raise UsageError(
                f"--most-envs is {most}, allowed is {fewest} or more: the search begins with that many environments, "
                "the smallest number of the series. Give a larger limit, or change num_envs of the series."
            )
        for first in firsts:
            measured: list[CaseResult] = []
            while isinstance(step := _next_point(campaign, measured, first), int):
                measured.append(_measure(campaign, folder, _planned(campaign, matrix, first, step)))
            answers.append(Answer(first=first, trials=tuple(map(trial_of, measured)), capacity=step))
            results += measured
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


def _next_point(campaign: Campaign, measured: Sequence[CaseResult], first: Case) -> int | Capacity:
    return next_size(
        [trial_of(result) for result in measured],
        start=first.num_envs,
        granularity=granularity(first, campaign.catalog),
        most=campaign.options.search.most_envs,
    )


def _planned(campaign: Campaign, matrix: Matrix, first: Case, num_envs: int) -> PlannedCase:
    cases = expand(
        with_num_envs(matrix, first.series, num_envs),
        campaign.catalog,
        device=first.device,
        stack=campaign.options.setup.stack,
        assets=first.assets,
        seed=first.seed,
    )
    case = next(case for case in cases if case.case_id == _resized_id(first, num_envs))
    (item,) = plan(
        [case],
        resources=campaign.resources,
        device=campaign.device,
        available_stacks=[case.stack],  # the plan found it available for the first point
        rounds=campaign.rule.rounds,
        catalog=campaign.catalog,
    )
    if item.infeasible:
        raise UsageError(
            f"The capacity search reached {num_envs} environments, but {case.case_id} {item.infeasible}. "
            "Begin it at another number: num_envs of the series."
        )
    return item


def _resized_id(case: Case, num_envs: int) -> str:
    """The id that a case of one rank has with another number of environments."""
    return case.case_id.replace(f"-n{case.num_envs_global}-{case.topology}", f"-n{num_envs}-{case.topology}")


def _measure(campaign: Campaign, folder: Folder, item: PlannedCase) -> CaseResult:
    """Run the rounds of one point until one does not complete, and store the case."""
    campaign = replace(campaign, planned=(item,))
    if campaign.options.rounds.retry_failed:
        cases.set_failures_aside(campaign, folder)
    cases.require_raw(campaign, folder)
    waiting = [item.case for _ in known_rounds(campaign, folder)]
    run_planned(campaign, folder, Reporter(campaign.console, [item], waiting))
    with disk_errors(folder.root):
        result = cases.store_if_complete(campaign, folder, item)
    if result is None:
        raise AssertionError(f"{item.case.case_id} has no round")
    return result


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
        if search.outcomes[size] == "oom":
            return search.memory(doubled)
        if size not in search.fps:
            return search.failure(doubled)
        if len(doubled) > 1 and search.fps[size] < (1 + MIN_RISE) * search.fps[doubled[-2]]:
            return search.throughput(doubled)
        if most is not None and 2 * size > most:
            seen = f"throughput still rises at {size}" if len(doubled) > 1 else f"only {start} were tried"
            reason = f"{seen}, and the limit is {most}"
            return Capacity(num_envs=size, fps=search.fps[size], bound="asked", beyond=None, reason=reason)
        doubled.append(2 * size)
    return doubled[-1]


@dataclass(frozen=True, kw_only=True)
class _Search:
    """The trials so far. Each method that ends the doubling returns the next number to try, or the answer."""

    outcomes: Mapping[int, Outcome]
    fps: Mapping[int, float]  # of those that completed [frames/s]
    granularity: int

    def failure(self, tried: Sequence[int]) -> Capacity:
        """The answer where the last number failed: the one before it."""
        *earlier, failed = tried
        good = earlier[-1] if earlier else None
        reason = f"{failed} ended as {self.outcomes[failed]}, which tells nothing about memory or throughput"
        return Capacity(
            num_envs=good, fps=None if good is None else self.fps[good], bound="failure", beyond=failed, reason=reason
        )

    def memory(self, doubled: Sequence[int]) -> int | Capacity:
        beyond = doubled[-1]
        if len(doubled) == 1:
            reason = f"{beyond} do not fit in memory; begin with fewer"
            return Capacity(num_envs=None, fps=None, bound="memory", beyond=beyond, reason=reason)
        good = doubled[-2]
        while (between := self.between(good, beyond)) is not None:
            if between not in self.outcomes:
                return between
            if self.outcomes[between] == "oom":
                beyond = between
            elif between not in self.fps:
                return self.failure([good, between])
            else:
                good = between
        reason = f"{good} fit in memory, {beyond} do not"
        return Capacity(num_envs=good, fps=self.fps[good], bound="memory", beyond=beyond, reason=reason)

    def throughput(self, doubled: Sequence[int]) -> int | Capacity:
        target = (1 - MIN_RISE) * max(self.fps[size] for size in doubled)
        at = next(index for index, size in enumerate(doubled) if self.fps[size] >= target)
        enough, slower = doubled[at], doubled[at - 1] if at else None
        while slower is not None and (between := self.between(slower, enough)) is not None:
            if between not in self.outcomes:
                return between
            if between not in self.fps:
                return self.failure([slower, between])
            if self.fps[between] >= target:
                enough = between
            else:
                slower = between
        reason = f"{doubled[-1]} are less than {MIN_RISE:.0%} faster than {doubled[-2]}"
        return Capacity(num_envs=enough, fps=self.fps[enough], bound="throughput", beyond=slower, reason=reason)

    def between(self, low: int, high: int) -> int | None:
        """The middle as a multiple of the granularity; None if the gap is small enough or contains no multiple."""
        if high - low <= max(self.granularity, RESOLUTION * low):
            return None
        middle = (low + high) // 2 // self.granularity * self.granularity
        return middle if middle > low else None


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
        number = "no answer" if capacity.num_envs is None else f"{capacity.num_envs:,} environments on one rank"
        say(console, f"  capacity: {number}, bound by {capacity.bound}: {capacity.reason}")
