"""GPU models beside each other at equal core speed, every machine, and what ran where."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

from reports.data.columns import COMPARABLE, MOST_OTHERS_PERCENT
from reports.data.words import physics_name, size_of_training, task_name
from reports.display.charts.drawing import Texts
from reports.display.charts.forest import forest
from reports.display.charts.forest import row as row_of
from reports.display.figure import make_figure, source_line
from reports.display.html import (
    MISSING,
    Html,
    answer_of_page,
    heading,
    html_table,
    link,
    machine_cell,
    measured,
    paragraph,
    span,
    together,
)
from reports.figures.compare import Row
from reports.figures.lines import estimate, figure
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.machines import Machine, machines_in_short
from reports.sets.version import Version
from suite.files.wording import counted, day_in_words, joined
from suite.matrix.catalog import load_catalog
from suite.statistics.core_speed import SLOWED
from suite.statistics.series_model import PRIOR_SLOPE

ASKED_FOR: Final = ("RTX 5090", "RTX 4090", "RTX PRO 6000", "L40S", "A100", "B200")  # what readers ask for
NOT_MEASURED: Final = "not measured"
WAYS: Final = ("on one machine", "in a container image", "on simulated nodes of one machine", "on several machines")
HEADINGS: Final = (
    "Machine", "CPU", "Driver", "slowed_core_looks", "env_check warned of", "Runs", "Campaigns",
)  # fmt: skip

# --- one GPU model over another ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A training on one GPU, as shipped, that machines with two GPU models ran. ``name``: in words."""

    version: Version
    name: str
    training: str  # in the column of runs
    figure: Mapping[str, Any]
    gpus: tuple[str, str]  # this one over that one
    machines: tuple[int, int]

    @property
    def how_sure(self) -> str:
        return str(self.figure["status"]).replace("runs", "machines")

    @property
    def slope(self) -> Mapping[str, Any] | None:
        """The figure that says how far the training goes with the core."""
        return rows_by_id(self.version).get(f"{self.training}/machines_slope")


@cache
def comparisons(version: Version) -> tuple[Comparison, ...]:
    """The newest of each training and two GPU models that has an interval, else the newest; most machines first."""
    best: dict[tuple[str, ...], Comparison] = {}
    for own in (version, *version.older):
        for ratio in rows_by_id(own).values():
            if ratio["id"].endswith("/over_gpu_model"):
                comparison = _comparison(own, ratio)
                known = best.setdefault((comparison.training, *comparison.gpus), comparison)
                if known.figure["low"] is None and ratio["low"] is not None:
                    best[comparison.training, *comparison.gpus] = comparison
    return tuple(sorted(best.values(), key=lambda own: (-sum(own.machines), own.name)))


def _comparison(version: Version, ratio: Mapping[str, Any]) -> Comparison:
    of, over = (dict(part.split("=", 1) for part in ratio[name].split("&")) for name in ("of", "over"))
    training, gpus = of["one_gpu_training"], (of["gpu_model"], over["gpu_model"])
    rows = [row for row in _runs(version) if row["one_gpu_training"] == training]
    work = task_name(rows[0]["task"]), rows[0]["library"], physics_name(rows[0]["physics"])
    one, other = ({row["machine"] for row in rows if row["gpu_model"] == gpu} for gpu in gpus)
    return Comparison(
        version=version,
        name=", ".join((*work, size_of_training(rows[0]))),
        training=training,
        figure=ratio,
        gpus=(_short(gpus[0]), _short(gpus[1])),
        machines=(len(one), len(other)),
    )


@cache
def _runs(version: Version) -> list[Row]:
    """Every completed run but those of repeats."""
    return [row for row in runs_of(version).completed.iter_rows(named=True) if not row["is_repeat"]]


def _short(gpu: str) -> str:
    return gpu.removeprefix("NVIDIA ")


def _pairs(version: Version) -> list[tuple[str, str]]:
    return list(dict.fromkeys(comparison.gpus for comparison in comparisons(version)))


def answer(version: Version) -> Html:
    """Say how much faster one GPU model is than another; without two of them, what the machines are."""
    if not _pairs(version):
        kinds = sorted({_short(machine.model or "CPUs") for machine in version.machines}) or ["nothing"]
        return answer_of_page(f"{counted(len(version.machines), 'machine')} ran this: {joined(kinds)}.")
    return answer_of_page(" ".join(sentence for pair in _pairs(version) for sentence in _compared(version, *pair)))


def in_short(version: Version) -> Html:
    """What the first page says; nothing without two GPU models."""
    if not _pairs(version):
        return Html(markup="", text="")
    sentences = " ".join(sentence for pair in _pairs(version) for sentence in _compared(version, *pair)[:2])
    more = link("Machines, and GPUs that nobody has measured", "hardware.html")
    shown = Html(markup=f"<p>{html.escape(sentences)} {more.markup}</p>", text=sentences)
    return together([heading("Which GPU?", depth=2, anchor="hardware"), shown])


def _compared(version: Version, of: str, over: str) -> list[str]:
    """What two GPU models are at equal core speed: what is clear, what is noise, and what too few machines ran."""
    every = [own for own in comparisons(version) if own.gpus == (of, over)]
    clear, noise = ([own for own in every if own.figure["status"] == word] for word in ("clear", "within noise"))
    sentences = []
    if clear:
        times = joined([f"{measured(own.figure)} times the frames/s ({own.name})" for own in clear])
        sentences.append(f"At equal core speed one {of} makes {times} of one {over}.")
    elif noise:
        sentences.append(f"At equal core speed no training is clearly faster or slower on one {of} than on one {over}.")
    if noise:
        surest = min(noise, key=lambda own: float(own.figure["high"] / own.figure["low"]))
        tasks = joined(sorted({own.name.partition(",")[0] for own in noise}))
        sentences.append(
            f"Within noise, trainings of {tasks} make {span([own.figure for own in noise])} times the frames/s; the"
            f" surest is {surest.name}: {measured(surest.figure)}.{_busy(noise)}"
        )
    if len(every) > len(clear) + len(noise):
        sentences.append("Too few machines ran other trainings to say.")
    if slopes := [own.slope for own in every if own.slope]:
        sentences.append(f"Speed goes with one CPU core: the slope is {span(slopes)}, and 1 is in proportion.")
    return sentences


def _busy(compared: Sequence[Comparison]) -> str:
    """How much of the time kernels ran: trainings that keep a GPU busier may differ more."""
    known = [
        busy
        for own in compared
        for row in runs_of(own.version).configurations
        if row["one_gpu_training"] == own.training and (busy := figure(own.version, row, "gpu_utilisation_percent"))
    ]
    return f" Kernels ran in {span(known)} % of the time; trainings that keep a GPU busier may differ." if known else ""


def chart(version: Version) -> Html:
    """Draw every machine that ran the training with most machines, at equal core speed."""
    known = [own for own in comparisons(version) if own.version is version and own.figure["low"] is not None]
    if not known:
        return together(())
    training, name, base = known[0].training, known[0].name, known[0].gpus[1]
    figures = rows_by_id(version)
    every = [
        (machine, figures.get(f"{training}/{machine.environment.host_label}/at_equal_core_speed"))
        for machine in version.machines
    ]
    rows = sorted(((own, figure) for own, figure in every if figure), key=lambda pair: pair[0].model or "")
    points = [row_of(own.name, estimate(figure), own.name, kind=_short(own.model or "")) for own, figure in rows]
    texts = Texts(
        title=f"Machines at equal core speed: {name}",
        note=f"A point is a machine; 1 is the mean of those with one {base}.",
        source=source_line(version.name, [machines_in_short([machine for machine, _ in rows])]),
        x="Times the speed",
    )
    data = html_table(
        ["Machine", "at_equal_core_speed"],
        [[machine.name, measured(figure)] for machine, figure in rows],
        label="Values of the chart",
    )
    return make_figure(forest(points, texts), figure_id="equal-core-speed", data=data)


def table(version: Version) -> Html:
    """Show every comparison, a table for each two GPU models."""
    return together(_table(version, *pair) for pair in _pairs(version))


def _table(version: Version, of: str, over: str) -> Html:
    headings = ["Training on one GPU", f"Machines, {of}", f"Machines, {over}", f"Times the speed, {of} over {over}"]
    rows = [
        [own.name, *map(str, own.machines), measured(own.figure), own.how_sure, measured(own.slope), own.version.name]
        for own in comparisons(version)
        if own.gpus == (of, over)
    ]
    headings += ["How sure", "machines_slope", "Version"]
    return html_table(headings, rows, label=f"{of} over {over}")


def rules(version: Version) -> Html:
    """Say how GPU models are compared; nothing without two of them."""
    if not _pairs(version):
        return together(())
    core = (
        "A GPU that trains waits for the CPU core that launches its kernels, and cores differ between machines and by"
        " the hour. So each machine's time is brought to one core speed first."
    )
    training = (
        f"A training is on one GPU, as Isaac Lab ships it, of {COMPARABLE[0]} to {COMPARABLE[-1]} iterations, while"
        f" other processes took at most {MOST_OTHERS_PERCENT} % of the CPU. The core slope says how far the time of an"
        " iteration goes with that of a fixed piece of work on the CPU core: 0 is not at all, 1 is in proportion."
        f" Where too few machines say it, {PRIOR_SLOPE} is assumed."
    )
    machine = (
        "Each machine counts once, by the mean of its runs, and the interval includes how much machines with one GPU"
        " model differ. A row is of the newest version with an interval; machines of two versions are not pooled."
    )
    return together(map(paragraph, (core, training, machine)))


# --- machines ----------------------------------------------------------------------------------------------------


def machines(version: Version) -> Html:
    """A row for each machine of this version: what it is, and what was found there."""
    rows = [_machine(version, machine) for machine in version.machines]
    same = [place for place in range(1, 3) if len(rows) > 1 and len({row[place] for row in rows}) == 1]
    sentences = [f"{HEADINGS[place]} of all: {rows[0][place]}." for place in same]
    shown = [place for place in range(len(HEADINGS)) if place not in same]
    table = html_table(
        [HEADINGS[place] for place in shown],
        ([machine_cell(row[0]), *(row[place] for place in shown[1:])] for row in rows),
        label="Machines",
    )
    slowed = f"Cores slowed: how often the fixed piece of work took over {SLOWED:g} times as long as at best."
    return together([table, paragraph(" ".join([*sentences, slowed]))])


def _machine(version: Version, machine: Machine) -> list[str]:
    where, sets = machine.environment, list(dict.fromkeys(own.set_name for own in machine.of_sets))
    checks = (check for place in machine.places for check in place.environment.checks)
    faults = {check.fault or check.name: None for check in checks if check.verdict in ("failure", "warning")}
    whose = {own.whose: None for own in machine.of_sets if own.whose}
    return [
        machine.name,
        where.cpu_model or MISSING,
        where.driver_version or MISSING,
        measured(rows_by_id(version).get(f"{where.host_label}/slowed_core_looks")),
        ", ".join(faults) or ("nothing" if where.checks else "not checked"),
        str(sum(place.num_rounds for place in machine.places)),
        ", ".join([*sets, *(f"by {name}" for name in whose)]),
    ]


def packages(version: Version) -> Html:
    """Name what was added to the worker beside the pins, such as an extension with a task; nothing without any."""
    places = [place for machine in version.machines for place in machine.places]
    added = sorted({package for place in places for package in place.environment.worker_packages})
    return paragraph(f"Packages added to the worker: {'; '.join(added)}.") if added else Html(markup="", text="")


# --- what ran where ----------------------------------------------------------------------------------------------


def _trained(version: Version) -> list[Row]:
    """Every completed run of all versions that trained, or was of LeRobot, which never trains."""
    every = (row for own in (version, *version.older) for row in _runs(own))
    return [row for row in every if row["workload"] == "train" or row["library"] == "lerobot"]


def _where_rows(version: Version) -> list[list[str]]:
    """A row for each RL library: the tasks that ran with each physics, and the most GPUs of each model."""
    catalog, ran = load_catalog(), _trained(version)
    columns = {(stack, device): None for stack, entry in catalog.stacks.items() for device in entry.devices}
    columns |= {(row["physics"], row["device"]): None for row in ran}  # and what ran besides
    headings = [f"{physics_name(stack)}, {'GPUs' if device == 'cuda' else 'CPU'}" for stack, device in columns]
    rows = [["RL library", *headings, "Last run"]]
    for library in catalog.libraries:
        own = [row for row in ran if row["library"] == library]
        cells = [_cell([row for row in own if (row["physics"], row["device"]) == column]) for column in columns]
        last = max((row["started_utc"] for row in own if row["started_utc"]), default=None)
        rows.append([library, *cells, day_in_words(datetime.fromisoformat(last)) if last else MISSING])
    return rows


def _cell(rows: Sequence[Row]) -> str:
    """Tasks, then the most GPUs of each model: ``Ant, Cartpole: 4 x H200, 2 x H100``."""
    most: dict[str, int] = {}
    for row in rows:
        model = _short(row["gpu_model"] or "GPU") if row["device"] == "cuda" else ""
        most[model] = max(row["gpus"], most.get(model, 0))
    sizes = [
        f"{number} x {model}" if model else f"{number} process{'es' if number > 1 else ''}"
        for model, number in sorted(most.items(), key=lambda item: -item[1])
    ]
    tasks = sorted({task_name(row["task"]) for row in rows})
    return f"{', '.join(tasks)}: {', '.join(sizes)}" if rows else NOT_MEASURED


def where(version: Version) -> Html:
    """What ran with which RL library, physics and hardware, in all versions."""
    headings, *rows = _where_rows(version)
    return html_table(headings, rows, label="What ran where")


def ways(version: Version) -> str:
    """Say where the processes of runs were, and where none has been yet."""
    ran = {_way(row) for row in _trained(version)}
    missing = [way for way in WAYS if way not in ran]
    return f"Runs were started {joined([way for way in WAYS if way in ran])}." + (
        f" Not measured: {joined(missing)}." if missing else ""
    )


def _way(row: Row) -> str:
    if row["nodes"] > 1:
        return WAYS[2] if row["is_emulated"] else WAYS[3]
    return WAYS[1] if row["is_in_image"] else WAYS[0]


def missing(version: Version) -> Html:
    """Name the GPU models that readers ask for and nobody has sent."""
    there = {row["gpu_model"] or "" for own in (version, *version.older) for row in _runs(own)}
    names = [name for name in ASKED_FOR if not any(name in model for model in there)]
    return paragraph(f"Nobody has sent results of these yet: {joined(names)}.")


def readme(version: Version) -> str:
    """What ran where, as README.md has it."""
    headings, *rows = _where_rows(version)
    table = [f"| {' | '.join(row)} |" for row in (headings, ["---"] * len(headings), *rows)]
    return "\n".join([*table, "", ways(version)])
