"""``bench --capacity SERIES``: run the points that ``capacity.rule`` asks for; each is an ordinary case."""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import gcd
from pathlib import Path
from typing import Final, TypedDict

from pydantic import ConfigDict, with_config
from rich.console import Console

from suite.campaign import cases
from suite.campaign.capacity.rule import MIN_RISE, RESOLUTION, Capacity, Trial, next_step
from suite.campaign.display.progress import Reporter
from suite.campaign.folder import Folder
from suite.campaign.runs.rounds import disk_errors, run_planned
from suite.campaign.schedule import known_rounds
from suite.campaign.state import Campaign
from suite.errors import UsageError
from suite.files.json_file import read_json, replace_json
from suite.matrix.cases import with_num_envs, with_packages
from suite.matrix.catalog import Catalog
from suite.matrix.file import load_matrix
from suite.matrix.plan import plan
from suite.matrix.tables import Matrix
from suite.options.command_line import say
from suite.options.options import Options, refuse_unused
from suite.schema.record import Case, CaseResult, PlannedCase
from suite.statistics.reduce import completed_times_s

EAGER_GRANULARITY: Final = 16  # environments, if the library can cut a batch of any size into minibatches


@with_config(ConfigDict(extra="allow"))  # unknown fields are written back unchanged
class _Answer(TypedDict):
    first_case_id: str


class _Stored(TypedDict):
    """The fields of ``capacity.json`` that are read."""

    found: list[_Answer]


@dataclass(frozen=True, kw_only=True)
class Found:
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


def search(campaign: Campaign, folder: Folder) -> tuple[list[Found], list[CaseResult]]:
    """Search along each case of the plan, one after the other. Rounds that an earlier command finished are kept.

    Raises:
        UsageError: a point of the search cannot run here, or ``--most-envs`` is below the first point.
    """
    catalog = campaign.catalog
    matrix = load_matrix(campaign.options.selection.matrix, catalog)
    matrix = with_packages(matrix, campaign.options.setup.with_packages)
    found, results = [], []
    firsts = first_points([item.case for item in campaign.planned])
    _refuse_limit(firsts, campaign.options.search.most_envs)
    for first in firsts:
        measured: list[CaseResult] = []
        while isinstance(step := _next(measured, first, catalog, campaign.options.search.most_envs), int):
            measured.append(_measure(campaign, folder, _planned(campaign, matrix, catalog, first, step)))
        found.append(Found(first=first, trials=tuple(map(trial_of, measured)), capacity=step))
        results += measured
    return found, results


def _refuse_limit(firsts: Sequence[Case], most: int | None) -> None:
    fewest = max(first.num_envs for first in firsts)
    if most is not None and most < fewest:
        raise UsageError(
            f"--most-envs is {most}, allowed is {fewest} or more: the search begins with that many environments, the "
            "smallest number of the series. Give a larger limit, or change num_envs of the series."
        )


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


def write_found(found: Sequence[Found], path: Path) -> None:
    """Write the answers with their trials and the rule. Answers of earlier commands for other cases are kept.

    Raises:
        StoreError: earlier answers cannot be read, or the file cannot be written.
    """
    answers = _earlier(path) | {
        item.first.case_id: {
            "first_case_id": item.first.case_id,
            "capacity": asdict(item.capacity),
            "trials": [asdict(trial) for trial in item.trials],
        }
        for item in found
    }
    replace_json({"min_rise": MIN_RISE, "resolution": RESOLUTION, "found": [*answers.values()]}, path)


def _earlier(path: Path) -> dict[str, object]:
    """The stored answers, by the id of the case that each search began with."""
    stored = read_json(path, _Stored, next_step="Move it away and run the same command again.")
    return {} if stored is None else {answer["first_case_id"]: answer for answer in stored["found"]}


def print_found(console: Console, found: Sequence[Found]) -> None:
    """Print every number of environments that was tried, and the answer."""
    for item in found:
        console.print(f"[bold]{item.first.series}[/], {item.first.rl_library} on {item.first.stack}", highlight=False)
        for trial in sorted(item.trials, key=lambda trial: trial.num_envs):
            said = trial.outcome if trial.fps is None else f"{trial.fps:,.0f} frames/s"
            say(console, f"  {trial.num_envs:>9,} environments: {said}")
        answer = item.capacity
        number = "no answer" if answer.num_envs is None else f"{answer.num_envs:,} environments on one rank"
        say(console, f"  capacity: {number}, bound by {answer.bound}: {answer.reason}")


def _next(measured: Sequence[CaseResult], first: Case, catalog: Catalog, most: int | None) -> int | Capacity:
    trials = [trial_of(result) for result in measured]
    return next_step(trials, start=first.num_envs, granularity=granularity(first, catalog), most=most)


def _planned(campaign: Campaign, matrix: Matrix, catalog: Catalog, first: Case, num_envs: int) -> PlannedCase:
    cases = with_num_envs(
        matrix, catalog, num_envs, series=first.series, device=first.device, stack=campaign.options.setup.stack,
        assets=first.assets, seed=first.seed,
    )  # fmt: skip
    case = next(case for case in cases if case.case_id == _resized_id(first, num_envs))
    (item,) = plan(
        [case],
        gpus_available=len(campaign.machine.gpus),
        cpus_available=campaign.machine.num_cpus or 1,
        device=campaign.device,
        available_stacks=[case.stack],  # the plan found it available for the first point
        rounds=campaign.rule.rounds,
        catalog=catalog,
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
