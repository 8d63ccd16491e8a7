"""The page of a GPU model: its machines, what was made on them, and what is known of how steady they are."""

from collections.abc import Sequence
from dataclasses import replace

from reports.analysis.curves import measured_for_speed, task_name
from reports.analysis.environments import Place, plain_name
from reports.analysis.rows import training_fps
from reports.display.addresses import page_of_gpu, page_of_task
from reports.display.html import MISSING, Cell, Html, count, html_table, link, paragraph
from reports.sets.version import ResultSet, Version
from suite.files.wording import counted
from suite.schema.record import CaseResult

CPUS = "CPUs"


def gpu_models(version: Version) -> tuple[str, ...]:
    """Every GPU model that a run was measured on, as its maker names it; ``CPUS`` for machines without."""
    return tuple(sorted({_model(place) for one in version.sets for place in one.campaign.places}))


def of_model(version: Version, model: str) -> Version:
    """The part of a version that ran on machines with this model."""
    return replace(version, sets=tuple(one for one in version.sets if _has(one, model)))


def opening(version: Version, model: str) -> Html:
    """How many machines, when, and how much ran on them. ``version``: the part of this model."""
    places = _places(version, model)
    runs = sum(place.num_rounds for _, place in places)
    most = max((len(place.environment.gpus) for _, place in places), default=0)
    machines = len({(plain_name(place), place.environment.host_label) for _, place in places})
    up_to = f", with up to {counted(most, 'GPU')}" if most else ""
    ran = f"{counted(runs, 'run')} in {counted(len(version.sets), 'set')}"
    kind = "without GPUs" if model == CPUS else f"with {model}"
    return paragraph(f"{counted(machines, 'machine')} {kind}{up_to}: {ran}.")


def in_older_versions(version: Version, model: str) -> Html:
    """Say what older versions have of this model, with the way there; nothing if they have none of it."""
    found = [older for older in version.older if _places(older, model)]
    if not found:
        return Html(markup="", text="")
    rows: list[list[Cell]] = []
    for older in found:
        records = [record for one in of_model(older, model).sets for record in one.campaign.completed]
        most = max((record.case.nproc_per_node for record in records), default=0)
        tasks = sorted({task_name(record.case.task) for record in records})
        address = f"../{older.name}/{page_of_gpu(model)}.html"
        rows.append([link(f"Version {older.name}", address), str(most), ", ".join(tasks), str(len(records))])
    return html_table(
        ["Older version", "Most GPUs of a machine", "Tasks", "Runs"],
        rows,
        label=f"{model} in older versions",
        text_headings=("Tasks",),
    )


def machines(version: Version, model: str) -> Html:
    """One row a machine, oldest first: a host with one label on one day."""
    rows: dict[tuple[str, str | None], list[tuple[ResultSet, Place]]] = {}
    for one, place in sorted(_places(version, model), key=lambda each: each[1].first_started_utc or ""):
        rows.setdefault((plain_name(place), place.environment.host_label), []).append((one, place))
    return html_table(
        ["Machine", "First run (UTC)", "Processor", "Memory in GB", "Driver", "Tasks", "Runs"],
        (_machine(name, found) for (name, _), found in rows.items()),
        label=f"Machines with {model}",
        num_text_columns=3,
        text_headings=("Driver", "Tasks"),
    )


def _machine(name: str, found: Sequence[tuple[ResultSet, Place]]) -> list[str]:
    first = found[0][1]
    tasks = {task_name(result.case.task) for one, _ in found for result in one.campaign.results}
    return [
        name,
        (first.first_started_utc or MISSING).partition("+")[0].replace("T", " "),
        first.environment.cpu_model or MISSING,
        count(first.environment.memory_gb),
        first.environment.driver_version or MISSING,
        ", ".join(sorted(tasks)),
        str(sum(place.num_rounds for _, place in found)),
    ]


def most(version: Version, model: str) -> Html:
    """The most frames per second of each task, for each number of GPUs."""
    best: dict[tuple[str, int], tuple[float, CaseResult]] = {}
    for result in (result for one in version.scaling for result in measured_for_speed(one.campaign.results)):
        case, fps = result.case, training_fps(result)
        if fps is not None and case.nnodes == 1:
            key = task_name(case.task), case.world_size
            best[key] = max(best.get(key, (0.0, result)), (fps, result), key=lambda each: each[0])
    if not best:
        return paragraph(
            "Nothing that ran here has a speed that says something: it ran on a CPU, did not settle, or was to time"
            " starts."
        )
    return html_table(
        ["Task", "GPUs", "Frames per second", "Library, environments of a GPU, settings", "Runs"],
        (_row(key, *found) for key, found in sorted(best.items())),
        label=f"Most frames per second on {model}",
        text_headings=("Library, environments of a GPU, settings",),
    )


def _row(key: tuple[str, int], fps: float, result: CaseResult) -> list[Cell]:
    case = result.case
    settings = "tuned" if case.division == "open" else "as shipped"
    return [
        link(key[0], f"{page_of_task(key[0])}.html"),
        str(key[1]),
        count(fps),
        f"{case.rl_library}, {case.num_envs:,}, {settings}",
        str(len(result.completed)),
    ]


def _model(place: Place) -> str:
    return place.environment.gpus[0].name if place.environment.gpus else CPUS


def _has(one: ResultSet, model: str) -> bool:
    return any(_model(place) == model for place in one.campaign.places)


def _places(version: Version, model: str) -> list[tuple[ResultSet, Place]]:
    return [(one, place) for one in version.sets for place in one.campaign.places if _model(place) == model]
