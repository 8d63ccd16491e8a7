"""The top of a task's page: how it scales, what it costs, how many environments it takes, and its series."""

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reports.analysis.analysed_set import Campaign, shared_kind
from reports.analysis.curves import as_shipped, task_name
from reports.analysis.environments import places, where_it_ran
from reports.analysis.rows import training_fps
from reports.analysis.scaling.answer import answer
from reports.analysis.trainings import Training
from reports.display.addresses import anchor_of_series, page_of_task
from reports.display.calculator import calculator
from reports.display.charts.speedups import panels
from reports.display.charts.sweep import environments
from reports.display.html import (
    Displayed,
    Html,
    answer_of_page,
    count,
    estimated,
    heading,
    html_table,
    link,
    paragraph,
    ratio,
    together,
)
from reports.display.series_tables import STACK_NAMES, environments_text, ranks_text, series_title
from reports.sets.version import Version
from reports.topics.tasks.page import SWEEPS
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.speed import HARDLY_SLOPE

FOLDER: Final = ROOT / "book" / "pictures"


def picture(task: str, *, folder: Path = FOLDER) -> Html:
    """Show the picture of a task, by its plain name, with how it was drawn; nothing if there is none."""
    name = page_of_task(task).removeprefix("task-")
    known: dict[str, Any] = json.loads((folder / "pictures.json").read_text(encoding="utf-8"))
    if name not in known:
        return Html(markup="", text="")
    drawn = known[name]
    view, versions = drawn["view"], drawn["versions"]
    caption = (
        f"{task} after {view['steps']} steps of random actions, drawn by Newton's renderer on the CPU (Newton"
        f" {versions['newton']}, Isaac Lab {versions['isaaclab']}, offline assets, {drawn['drawn']}). SHA-256"
        f" {drawn['sha256'][:12]}."
    )
    data = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
    return Html(
        markup=(
            f'<figure class="task-picture"><img src="data:image/png;base64,{data}" width="{view["width_px"]}"'
            f' height="{view["height_px"]}" alt="The simulation of {html.escape(task)}, one environment">'
            f"<figcaption>{html.escape(caption)}</figcaption></figure>"
        ),
        text=caption,
    )


def tasks(version: Version) -> tuple[str, ...]:
    """The plain names of all tasks, in order."""
    return tuple(sorted({task_name(each.case.task) for each in _results(version)}))


def opening(version: Version, task: str) -> Html:
    """How the task scales, the most that was made of it, and what it is."""
    results = [result for result in _results(version) if task_name(result.case.task) == task]
    found = [line for line in version.lines if line.task == task]
    if found:
        scales = answer(found)
    elif any(result.case.learns or result.case.is_pipeline for result in results):
        scales = f"{task} ran on one number of GPUs only, so nothing is known of its scaling."
    else:
        scales = f"Only single parts of {task} ran, without training, so nothing is known of its scaling."
    both = [scales, most_frames(results)] if found else [most_frames(results), scales]
    said = answer_of_page(" ".join(both).strip())
    return together([said, picture(task), paragraph(_what_it_is(results))])


def most_frames(results: Sequence[CaseResult]) -> str:
    """Return the most frames per second as shipped and what made them, a sentence; empty where nothing trained."""
    found = result_with_most_frames(results)
    if found is None:
        return ""
    fps, result = found
    case = result.case
    return (
        f"The most that was measured as shipped is {count(fps)} frames per second with learning, on {ranks_text(case)}"
        f" with {case.rl_library} and {case.num_envs:,} environments on each ({where_it_ran(places([result])[0])})."
    )


def result_with_most_frames(results: Sequence[CaseResult]) -> tuple[float, CaseResult] | None:
    """Return the most frames per second of one training as shipped on GPUs; None where nothing trained so."""
    known = [(fps, result) for result in as_shipped(results) if (fps := training_fps(result)) is not None]
    return max(known, key=lambda each: each[0], default=None)


def scaling(version: Version, task: str) -> Html:
    """Both charts and the calculator; nothing if no machine ran it on several numbers of GPUs."""
    found = [line for line in version.lines if line.task == task]
    if not found:
        return Html(markup="", text="")
    of = page_of_task(task).removeprefix("task-")
    return together([panels(found, of=f"{of}-"), calculator(found)])


def sweeps(version: Version, task: str) -> Html:
    """How many environments a GPU takes, of every set that asked; nothing if none did."""
    parts: list[Displayed] = []
    for name, found in series_of(version, task).items():
        for series in found:
            if series.is_sweep and series.is_training:
                title = f"{name}: {series.title}" if series.title else name
                parts += [heading(link(title, f"#{anchor_of_series(name)}")), environments(series)]
    above = heading("How many environments on a GPU", depth=2, anchor=SWEEPS)
    return together([above, *parts] if parts else [])


def cpu_core(version: Version, task: str) -> Html:
    """How far training goes with its CPU core, for each library and physics of which that is known."""
    found: dict[tuple[str, str], Html] = {}
    for training in version.trainings:  # those of most machines first
        if task_name(training.case.task) == task and (said := of_core(training)):
            found.setdefault((training.case.rl_library, training.case.stack), paragraph(said))
    above = heading("How far it goes with the CPU core", depth=2, anchor="cpu-core")
    return together([above, *found.values()] if found else [])


def of_core(training: Training) -> str:
    """What the slope says of one core; empty where it is not known, or may be none."""
    case, slope = training.case, training.model.slope
    low, high = (slope and slope.interval) or (0.0, 1.0)
    number = counted(len(training.machines), "machine")
    with_what = f"With {case.rl_library} on {STACK_NAMES[case.stack]} and {environments_text(case.num_envs)}"
    if high < HARDLY_SLOPE:
        return f"{with_what} the CPU core hardly limits this training ({estimated(slope)}; {number})."
    if slope is None or low <= 0:
        return ""
    return (
        f"{with_what} this training goes with its CPU core: a core twice as fast makes it up to"
        f" {2 ** min(1.0, slope.value):.1f} times as fast (slope {ratio(slope.value)}, {ratio(low)} to {ratio(high)};"
        f" {number})."
    )


def details(version: Version, task: str) -> Html:
    """Every series of the task, with what it has."""
    return html_table(
        ["Series", "What it varies", "Cases", "Completed runs", "Sets"],
        (
            [
                link(name, f"#{anchor_of_series(name)}"),
                series_title(parts[0].results[0].case, shared_kind(parts)),
                *map(str, counts_of(parts).values()),
            ]
            for name, parts in series_of(version, task).items()
        ),
        label=f"Series of {task}",
        num_text_columns=2,
    )


def counts_of(parts: Sequence[Campaign]) -> Mapping[str, int]:
    """Return how many cases, completed runs and sets a series has, from what each set has of it."""
    return {
        "cases": sum(bool(row.rounds_completed) for part in parts for row in part.rows),
        "completed": sum(row.rounds_completed for part in parts for row in part.rows),
        "sets": len(parts),
    }


def series_of(version: Version, task: str) -> dict[str, list[Campaign]]:
    """Name of each series of the task -> what each set has of it; those that train first."""
    found = {
        name: [part for part in version.series(name) if task_name(part.rows[0].task) == task]
        for name in version.series_names
    }
    return {name: parts for name, parts in found.items() if parts}


def _results(version: Version) -> list[CaseResult]:
    return [result for one in version.scaling for result in one.campaign.results]


def _what_it_is(results: Sequence[CaseResult]) -> str:
    """Observations, actions, rewards and steps, as the runs stored them."""
    records = [record for result in results for record in result.completed if record.workload]
    if not records:
        return "No run stored what the task consists of."
    return _facts(records[0])


def _facts(record: RunRecord) -> str:
    known = record.workload or {}
    sizes = {name.partition(".")[2]: value for name, value in known.items() if name.startswith("observation_size.")}
    parts = [f"{value} numbers ({name})" for name, value in sizes.items()]
    said = [f"The policy observes {' and '.join(parts)}"] if parts else []
    if "action_size" in known:
        said.append(f"it acts with {counted(int(str(known['action_size'])), 'number')}")
    step_s = known.get("physics_dt_s")
    if isinstance(step_s, float) and "decimation" in known:
        said.append(f"a physics step is {1000 * step_s:.3g} ms, and an action lasts {known['decimation']} of them")
    if known.get("reward_terms") not in (None, "None"):
        said.append(f"the reward adds up {str(known['reward_terms']).replace(',', ', ')}")
    return f"{record.case.task}. {'; '.join(said)}."
