"""The answer where nothing ran on one GPU and on several: what was made, where that lies, and what would raise it."""

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from reports.accept.judgement import JudgedCase, judge
from reports.accept.parts import Word
from reports.accept.published import Measured, measured, versions_below
from reports.accept.published import published as published_runs
from reports.analysis.curves import as_shipped, task_name
from reports.analysis.environments import gpu_name, places, where_it_ran
from reports.analysis.rows import case_times
from reports.analysis.time_split import core_probe_us
from reports.display.html import count, estimated
from reports.display.series_tables import STACK_NAMES
from reports.sets.version import Version
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, mean_of

RESULTS: Final = ROOT / "reports" / "results"
MAX_TASKS: Final = 3  # that are said one by one
MIN_MACHINES: Final = 5  # that a trend needs
MIN_CORRELATION: Final = 0.7  # of the logarithms of the probe and of the iteration time
QUICKER: Final = 0.9  # a core that needs a tenth less time
HOW_SURE: Final[Mapping[Word, str]] = {
    "slow": "its whole range is below theirs",
    "within": "its range overlaps theirs",
    "fast": "its whole range is above theirs",
    "open": "its runs are too few to be sure",
}


def sentences(version: Version, published: Sequence[Version] | None = None) -> list[str]:
    """Return a sentence each; none where nothing trained as shipped on GPUs.

    ``published``: the versions to place it in; None reads those of labscale, if they have the GPU model.
    """
    every = [result for one in version.scaling for result in as_shipped(one.campaign.results)]
    model = next((gpu.name for result in every for gpu in result.completed[0].environment.gpus), None)
    if model is None:
        return []
    results = [result for result in every if model in {gpu.name for gpu in result.completed[0].environment.gpus}]
    if published is None:
        published = _stored(model)
    by_name, own = {result.case.case_id: result for result in results}, measured(version, version.scaling)
    machines = published_runs(published).others(own).of_model(model)
    cases = [one for one in judge(own, machines, model).cases if one.name in by_name]
    judged = sorted(cases, key=lambda one: -len(one.time.others))
    first, tasks = judged[0], {task_name(one.row["task"]): one for one in reversed(judged)}
    made = [_made(by_name[one.name]) for one in sorted(tasks.values(), key=judged.index)[:MAX_TASKS]]
    more = _more_environments(by_name[first.name], (version, *published))
    about = [_placed(first), more, _faster_core(by_name[first.name], machines, first.row)]
    return [*made, *(said for said in about if said)]


def _stored(model: str) -> tuple[Version, ...]:
    """Read the published versions; nothing where none of their files names the model, which is quicker to see."""
    files = RESULTS.glob("*/*/cases/*/*.json")
    return tuple(versions_below(RESULTS)) if any(model in path.read_text(encoding="utf-8") for path in files) else ()


def _made(result: CaseResult) -> str:
    case, runs = result.case, len(result.completed)
    model, physics = _gpu(result), "" if case.stack == "kitless" else f" on {STACK_NAMES[case.stack]}"
    few = "" if runs >= MIN_ROUNDS_FOR_INTERVAL else ", too few for a range"
    made = f"{task_name(case.task)} with {case.rl_library}{physics} makes {estimated(_fps(result), count)}"
    return (
        f"{made} frames per second with learning on {case.world_size} x {model}, with {case.num_envs:,} environments"
        f" on each GPU, in {counted(runs, 'run')}{few}."
    )


def _fps(result: CaseResult) -> Estimate:
    times_s = mean_of(case_times(result).values())
    return times_s.mapped(lambda time_s: result.case.frames_per_iteration / time_s)


def _placed(one: JudgedCase) -> str:
    """Where it lies among other machines with the same GPUs, work and versions of packages, at equal core speed."""
    if not one.time.others or one.time.value is None:
        return ""
    all_fps = sorted(one.row["frames_per_iteration"] / time_s for time_s in one.time.others.values())
    ends = dict.fromkeys(map(count, (all_fps[0], all_fps[-1])))
    less = sum(time_s > one.time.value.value for time_s in one.time.others.values())
    return (
        f"In {task_name(one.row['task'])} that is more than {less or 'none'} of"
        f" {counted(len(all_fps), 'published machine')} with the same GPUs and packages would make with its CPU"
        f" cores ({' to '.join(ends)}), and {HOW_SURE[one.word]}."
    )


def _more_environments(own: CaseResult, versions: Sequence[Version]) -> str:
    """What the most environments brought that surely brought more, on one machine, best with the same GPUs."""
    found: list[tuple[bool, int, Estimate, CaseResult]] = []
    for campaign in (one.campaign for version in versions for one in version.scaling):
        alike = [each for each in as_shipped(campaign.results) if _like(each.case) == _like(own.case)]
        for base in (each for each in alike if each.case.num_envs == own.case.num_envs):
            for more in (each for each in alike if each.case.num_envs > own.case.num_envs):
                gain = campaign.model.speedup(more.case, base.case)
                if gain and gain.interval and gain.interval[0] > 1 and _host(more) == _host(base):
                    found.append((_gpu(more) == _gpu(own), more.case.num_envs, gain, more))
    if not found:
        return ""
    _, num_envs, gain, more = max(found, key=lambda each: each[:2])
    return (
        f"More environments on the GPU raise it: {num_envs:,} in place of {own.case.num_envs:,} made"
        f" {estimated(gain)} times the frames on {where_it_ran(places([more])[0])}."
    )


def _like(case: Case) -> tuple[object, ...]:
    return case.task, case.rl_library, case.stack, case.world_size, case.num_steps_per_env


def _host(result: CaseResult) -> str | None:
    return result.completed[0].environment.host_label


def _gpu(result: CaseResult) -> str | None:
    return gpu_name(result.completed[0].environment)


def _faster_core(own: CaseResult, machines: Measured, row: Mapping[str, Any]) -> str:
    """How iterations of the published machines go with the probe of their cores; empty without a clear trend."""
    logs: list[tuple[float, float]] = []
    for runs in machines.comparable(row).partition_by("host", maintain_order=True):
        probes_us = runs["core_probe_us"].drop_nulls().to_list()
        if probes_us:
            logs.append((math.log(statistics.median(probes_us)), math.log(statistics.median(runs["iteration_s"]))))
    if len(logs) < MIN_MACHINES or statistics.correlation(*zip(*logs, strict=True)) < MIN_CORRELATION:
        return ""
    slope = statistics.median((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(logs, 2) if a[0] != b[0])
    own_us = [probe_us for record in own.completed if (probe_us := core_probe_us(record))]
    here = f", and {statistics.median(own_us):.0f} µs here" if own_us else ""
    low_us, high_us = (math.exp(end[0]) for end in (min(logs), max(logs)))
    return (
        f"A quicker CPU core raises it: over {len(logs)} of these machines, {1 - QUICKER:.0%} less time for the core"
        f" probe goes with {QUICKER**-slope - 1:.0%} more frames; the probe takes {low_us:.0f} to {high_us:.0f} µs"
        f" there{here}."
    )
