"""The page of a GPU model: its machines, and what was made on them."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import as_shipped, task_name, tuned
from reports.analysis.machines import Machine
from reports.analysis.rows import training_fps
from reports.display import resource_tables
from reports.display.addresses import page_of_gpu, page_of_task
from reports.display.html import (
    MISSING,
    Cell,
    Displayed,
    Html,
    answer_of_page,
    count,
    fold,
    heading,
    html_table,
    link,
    machine_cell,
    named_of,
    paragraph,
    together,
)
from reports.sets.version import ResultSet, Version
from reports.topics.hardware import tables as machine_tables
from reports.topics.hardware.env_check import Looked, looked_at, said_of, what_checks_said
from suite.files.wording import counted
from suite.schema.record import CaseResult, Environment

CPUS = "CPUs"
type Settings = Literal["as shipped", "tuned"]
TRAINED: Final[Mapping[Settings, Callable[[Iterable[CaseResult]], list[CaseResult]]]] = {
    "as shipped": as_shipped,
    "tuned": tuned,
}


def gpu_models(version: Version) -> tuple[str, ...]:
    """Every GPU model that a run was measured on, as its maker names it; ``CPUS`` for machines without."""
    return tuple(sorted({_model(place.environment) for one in version.sets for place in one.campaign.places}))


def of_model(version: Version, model: str) -> Version:
    """The part of a version that ran on machines with this model."""
    return replace(version, sets=tuple(one for one in version.sets if _has(one, model)))


def opening(version: Version, model: str) -> Html:
    """How many machines, when, and how much ran on them. ``version``: the part of this model."""
    found = machines_of(version, model)
    most = max((len(machine.environment.gpus) for machine in found), default=0)
    up_to = f", with up to {counted(most, 'GPU')}" if most else ""
    ran = f"{counted(sum(map(runs_on, found)), 'run')} in {counted(len(version.sets), 'set')}"
    kind = "without GPUs" if model == CPUS else f"with {model}"
    return answer_of_page(f"{counted(len(found), 'machine')} {kind}{up_to}: {ran}.")


def machines_of(version: Version, model: str) -> tuple[Machine, ...]:
    """The machines with this model, the one that ran first first."""
    return tuple(machine for machine in version.machines if (machine.model or CPUS) == model)


@dataclass(frozen=True, kw_only=True)
class Before:
    """What completed in an older version on machines with a GPU model. ``tasks``: their ids."""

    most_ranks_of_a_machine: int | None
    tasks: tuple[str, ...]
    runs: int


def before(version: Version, model: str) -> Mapping[str, Before]:
    """Return name of each older version that has this model, newest first -> what it has of it."""
    return {older.name: _before(older, model) for older in version.older if model in gpu_models(older)}


def _before(version: Version, model: str) -> Before:
    every = (record for one in version.sets for record in one.campaign.completed)
    records = [record for record in every if _model(record.environment) == model]
    return Before(
        most_ranks_of_a_machine=max((record.case.nproc_per_node for record in records), default=None),
        tasks=tuple(sorted({record.case.task for record in records})),
        runs=len(records),
    )


def in_older_versions(version: Version, model: str) -> Html:
    """Say what older versions have of this model, with the way there; nothing if they have none of it."""
    found = before(version, model)
    if not found:
        return Html(markup="", text="")
    rows: list[list[Cell]] = []
    for name, has in found.items():
        way = link(f"Version {name}", f"../{name}/{page_of_gpu(model)}.html")
        tasks = ", ".join(sorted({*map(task_name, has.tasks)}))
        rows.append([way, count(has.most_ranks_of_a_machine), tasks, str(has.runs)])
    return html_table(
        ["Older version", "Most ranks" if model == CPUS else "Most GPUs of a machine", "Tasks", "Completed runs"],
        rows,
        label=f"{model} in older versions",
        text_headings=("Tasks",),
    )


def machines(version: Version, model: str) -> Html:
    """One row a machine, with the way to what is known of it below."""
    return html_table(
        ["Machine", "First run (UTC)", "Processor", "Memory in GB", "Driver", "Tasks", "Runs"],
        (_machine(version, machine) for machine in machines_of(version, model)),
        label=f"Machines with {model}",
        num_text_columns=3,
        text_headings=("Driver", "Tasks"),
    )


def _machine(version: Version, machine: Machine) -> list[Cell]:
    where = machine.environment
    return [
        machine_cell(machine.name, f"#{machine.slug}"),
        (machine.first_started_utc or MISSING).partition("+")[0].replace("T", " "),
        where.cpu_model or MISSING,
        count(where.memory_gb),
        where.driver_version or MISSING,
        ", ".join(sorted({*map(task_name, tasks_on(version, machine))})),
        str(runs_on(machine)),
    ]


def tasks_on(version: Version, machine: Machine) -> tuple[str, ...]:
    """Return the ids of the tasks that ran there."""
    return tuple(sorted({result.case.task for _, part in _ran_on(version, machine) for result in part.results}))


def runs_on(machine: Machine) -> int:
    return sum(place.num_rounds for place in machine.places)


def machine_by_machine(version: Version, model: str) -> Html:
    """What is known of each machine: its power and utilisation, its cores, and what env_check said."""
    found = machines_of(version, model)
    folds = (fold(machine.name, _known(version, machine), anchor=machine.slug) for machine in found)
    return together([paragraph(what_folds_show(looked_at(found), model)), *folds])


def what_folds_show(found: Looked, model: str) -> str:
    """Say it, and how many machines env_check looked at. Pure."""
    known = "its cores" if model == CPUS else "its power, its cores"
    return (
        f"Open a machine to see {known} and what env_check said of it. Of {counted(found.machines, 'machine')}"
        f" {what_checks_said(found)}"
    )


def _known(version: Version, machine: Machine) -> list[Displayed]:
    parts: list[Displayed] = []
    for one, ran in _ran_on(version, machine):
        parts += [paragraph(one.title)] if one.title else []
        of = f"{one.title} on {machine.name}" if one.title else machine.name
        tables = resource_tables.energy(ran.rows, ran.inside), resource_tables.host(ran.rows, ran.inside, label="Cores")
        parts += [named_of(table, of) for table in tables]
    parts.append(heading("What env_check said"))
    return parts + [machine_tables.checks(each, {}, label=f"Checks of {machine.name}") for each in said_of(machine)]


def most(version: Version, model: str, settings: Settings) -> Html:
    """The most frames per second of each task, for each number of GPUs."""
    best = best_of(version, settings)
    if not best:
        return paragraph(f"Nothing that trained on GPUs here with settings {settings} has a speed that says something.")
    return html_table(
        ["Task", "GPUs", "Frames per second", "Library, environments of a GPU", "Machine", "Runs"],
        (_row(key, *found) for key, found in sorted(best.items())),
        label=f"Most frames per second on {model}, {settings}",
        text_headings=("Library, environments of a GPU", "Machine"),
    )


def best_of(version: Version, settings: Settings) -> dict[tuple[str, int], tuple[float, CaseResult, str]]:
    """Return task and number of GPUs -> the most frames per second, the case that has them, and its machine."""
    best: dict[tuple[str, int], tuple[float, CaseResult, str]] = {}
    for one in version.scaling:
        names = version.machine_names_of(one)
        for result in TRAINED[settings](one.campaign.results):
            fps = training_fps(result)
            key = task_name(result.case.task), result.case.world_size
            if fps is not None and (key not in best or fps > best[key][0]):
                best[key] = fps, result, names[result.completed[0].environment]
    return best


def _row(key: tuple[str, int], fps: float, result: CaseResult, machine: str) -> list[Cell]:
    return [
        link(key[0], f"{page_of_task(key[0])}.html"),
        str(key[1]),
        count(fps),
        f"{result.case.rl_library}, {result.case.num_envs:,}",
        machine,
        str(len(result.completed)),
    ]


def _model(where: Environment) -> str:
    return where.gpus[0].name if where.gpus else CPUS


def _has(one: ResultSet, model: str) -> bool:
    return any(_model(place.environment) == model for place in one.campaign.places)


def _ran_on(version: Version, machine: Machine) -> list[tuple[ResultSet, Campaign]]:
    """Each set with its part that ran on this machine."""
    known: dict[str, set[Environment]] = {}
    for each in machine.found:
        known.setdefault(each.set_name, set()).add(each.place.environment)
    return [(one, _only(one.campaign, known[one.name])) for one in version.sets if one.name in known]


def _only(campaign: Campaign, environments: Collection[Environment]) -> Campaign:
    return campaign.only(lambda result: any(record.environment in environments for record in result.rounds))
