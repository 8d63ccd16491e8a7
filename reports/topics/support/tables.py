"""What ran where, as rows of text for a page and for README.md. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Final, get_args

from reports.analysis.curves import task_name
from reports.display.series_tables import STACK_NAMES, WITHOUT_ISAAC_SIM
from reports.topics.support.model import Most, System, Training, Way, most, newest, systems, versions_of
from suite.files.wording import day_in_words
from suite.matrix.catalog import Catalog
from suite.schema.record import Device, Stack

NOT_MEASURED: Final = "not measured"
DEVICES: Final[Mapping[Device, str]] = {"cpu": "CPU", "cuda": "GPUs"}
RENDERERS: Final[Mapping[str, str]] = {"none": "no camera", "newton": "Newton Warp"}
# Where processes were, in words, and the launchers that put them there.
WAYS: Final[Mapping[Way, tuple[str, str]]] = {
    "one machine": ("on one machine", "native"),
    "image": ("in a container image", "container, apptainer"),
    "simulated nodes": ("on simulated nodes of one machine", "emulated"),
    "several machines": ("on several machines", "slurm, ssh, ray; kubernetes and osmo through files"),
}

type Rows = list[list[str]]
type Column = tuple[Stack, Device]


def columns(catalog: Catalog, trainings: Iterable[Training]) -> list[Column]:
    """Every stack with the devices that it knows, and what ran besides."""
    known = [(stack, device) for stack, entry in catalog.stacks.items() for device in entry.devices]
    return list(dict.fromkeys([*known, *((one.stack, one.device) for one in trainings)]))


def headings(found: Iterable[Column]) -> list[str]:
    return [f"{physics(stack)}, {DEVICES[device]}" for stack, device in found]


def physics(stack: Stack) -> str:
    """Its name, short: the page says once that Newton and PhysX run without Isaac Sim."""
    return STACK_NAMES[stack].removesuffix(WITHOUT_ISAAC_SIM)


def library_rows(catalog: Catalog, trainings: Sequence[Training]) -> Rows:
    """One row for each RL library: its name with the versions that ran, then the most that ran in each column."""
    named = ((library, versions_of(library, trainings)) for library in catalog.libraries)
    return [
        [
            " ".join([library, ", ".join(versions)]).strip(),
            *_cells(catalog, trainings, [one for one in trainings if one.rl_library == library]),
        ]
        for library, versions in named
    ]


def task_rows(catalog: Catalog, trainings: Sequence[Training]) -> Rows:
    """One row for each task: its name, what drew its pictures, then the most that ran in each column."""
    tasks = dict.fromkeys([*catalog.tasks, *(one.task for one in trainings)])
    those = {task: [one for one in trainings if one.task == task] for task in tasks}
    return [
        [task_name(task), ", ".join(renderers(found)) or NOT_MEASURED, *_cells(catalog, trainings, found)]
        for task, found in those.items()
    ]


def way_rows(trainings: Sequence[Training]) -> Rows:
    """One row for each way to start: in words, the launchers, the most that ran."""
    return [
        [said[0].upper() + said[1:], launchers, most_text(most(one for one in trainings if one.way == way))]
        for way, (said, launchers) in WAYS.items()
    ]


def system_rows(trainings: Sequence[Training]) -> Rows:
    """One row for each system that ran, with the tasks, sizes, number of runs and the newest of them."""
    return [_system_row(one) for one in systems(trainings)]


def renderers(trainings: Iterable[Training]) -> list[str]:
    """Return what drew the pictures, in words."""
    found = dict.fromkeys(one.renderer for one in trainings if one.renderer)
    return sorted(RENDERERS.get(name, name) for name in found)


def most_text(found: Sequence[Most]) -> str:
    """``4 x H200, 22 Nov 2026; 2 CPU processes, 23 Nov 2026``; ``not measured`` for nothing."""
    return "; ".join(_most_text(one) for one in found) or NOT_MEASURED


def size_text(one: Most) -> str:
    """``4 x H200``, ``2 CPU processes``."""
    if one.device == "cuda":
        return f"{one.ranks} x {one.hardware}"
    return f"{one.ranks} CPU process{'' if one.ranks == 1 else 'es'}"


def day_text(day: date | None) -> str:
    return "unknown day" if day is None else day_in_words(day)


def ways_that_ran(trainings: Sequence[Training]) -> tuple[list[str], list[str]]:
    """In words, the ways that ran with their newest day, and those that did not."""
    found = {way: [one for one in trainings if one.way == way] for way in get_args(Way)}
    ran = [f"{WAYS[way][0]} ({day_text(newest(those).day)})" for way, those in found.items() if those]
    return ran, [WAYS[way][0] for way, those in found.items() if not those]


def _cells(catalog: Catalog, everything: Sequence[Training], those: Sequence[Training]) -> list[str]:
    return [
        most_text(most(one for one in those if (one.stack, one.device) == column))
        for column in columns(catalog, everything)
    ]


def _most_text(one: Most) -> str:
    return f"{size_text(one)}, {day_text(one.day)}"


def _system_row(one: System) -> list[str]:
    last = one.newest
    return [
        " ".join([one.rl_library, ", ".join(one.library_versions)]).strip(),
        f"{physics(one.stack)}, {one.hardware}",
        "several nodes, unknown whether simulated" if one.way is None else WAYS[one.way][0],
        ", ".join(map(task_name, one.tasks)),
        ", ".join(map(str, one.ranks)),
        str(one.runs),
        f"{day_text(last.day)}, version {last.version}{f', by {last.by}' if last.by else ''}",
    ]
