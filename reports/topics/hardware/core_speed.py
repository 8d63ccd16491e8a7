"""What a training makes at full core speed, GPU model beside GPU model, and how far it goes with the CPU core."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

from reports.analysis.curves import task_name
from reports.analysis.machines import machines_in_short
from reports.analysis.trainings import Training
from reports.display.figure import source_line
from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    bullets,
    count,
    estimated,
    html_table,
    link,
    paragraph,
    side_by_side,
    together,
)
from reports.display.series_tables import STACK_NAMES, WITHOUT_ISAAC_SIM, environments_text
from reports.sets.version import Version
from reports.topics.hardware.machines_chart import frames_of_machines
from suite.files.wording import counted, joined
from suite.statistics.intervals import Estimate

RULE: Final = (
    "The slope says how far a training's speed goes with its CPU core: 0 not at all, 1 in proportion. Where too few"
    " machines say it, about 0.5 is assumed. Frames per second are those of one GPU at a core probe of 100 µs."
    " A machine counts once, by the mean of its runs over the iterations that all runs have. Intervals include how much"
    " machines with one GPU model differ."
)
CHARTS: Final = (
    "A point is a machine as it was measured: its core probe and its frames per second, both on a log scale. Lines are"
    " what machines with one GPU model make by the slope, down to a probe of 100 µs."
)
NOTHING: Final = "Too few machines ran the same training, so they cannot be compared at equal core speed."


def core_speed(version: Version) -> Html:
    """Compare all GPU models, and draw the machines of each training whose slope is known."""
    shown = _comparable(version.trainings)
    if not shown:
        return paragraph(NOTHING)
    names = {label: name for one in (*version.older, version) for label, name in one.machine_names.items()}
    every = [machine for one in (*version.older, version) for machine in one.machines if machine.model]
    source = source_line(version.name, [machines_in_short(every)])
    charts = [
        together([paragraph(name_of(training)), frames_of_machines(training, name_of(training), names, source)])
        for training in shown
        if training.model.slope
    ]
    return together([*_compared(shown), *([paragraph(CHARTS), side_by_side(charts)] if charts else [])])


def core_speed_of(version: Version, gpu: str) -> Html:
    """Compare a GPU model with the others."""
    shown = _comparable([training for training in version.trainings if training.number_with(gpu)])
    if not shown:
        return paragraph(NOTHING)
    each_machine = link("Each machine of these trainings", "machines.html#full-core-speed")
    return together([*_compared(shown, gpu), bullets([each_machine])])


def _comparable(trainings: Sequence[Training]) -> list[Training]:
    return [training for training in trainings if len(training.model.gpus) > 1 or training.model.slope]


def name_of(training: Training) -> str:
    """Such as ``Ant, rl_games, Newton, 1,024 environments``."""
    case = training.case
    physics = STACK_NAMES[case.stack].removesuffix(WITHOUT_ISAAC_SIM)
    return f"{task_name(case.task)}, {case.rl_library}, {physics}, {environments_text(case.num_envs)}"


def _compared(trainings: Sequence[Training], gpu: str | None = None) -> list[Displayed]:
    """An answer and a table for each pair of GPU models, of those with ``gpu`` if it is named."""
    models = sorted({model for training in trainings for model in training.model.gpus})
    pairs: list[tuple[str, ...]] = [pair for pair in combinations(models, 2) if gpu in (None, *pair)]
    answers = [paragraph(said) for pair in pairs if (said := answer(trainings, *pair))]
    return [*answers, paragraph(RULE), *(_table(trainings, pair) for pair in pairs or [tuple(models)])]


def over(training: Training, base: str, other: str) -> Estimate | None:
    """Frames per second with ``other`` over those with ``base`` at equal core speed; None without machines of both."""
    has_both = {base, other} <= set(training.model.gpus)
    return training.model.ratio(base, other) if has_both else None


def word(ratio: Estimate) -> str:
    """Say what a ratio of two GPU models says."""
    if ratio.interval is None:
        return "too few machines"
    low, high = ratio.interval
    return "within noise" if low <= 1 <= high else "clear"


def answer(trainings: Sequence[Training], base: str, other: str) -> str:
    """How much faster one GPU is than the other, for whoever buys one; empty if no training ran on both."""
    found = [(training, ratio) for training in trainings if (ratio := over(training, base, other))]
    if not found:
        return ""
    of_word = {name: [each for each in found if word(each[1]) == name] for name in ("clear", "within noise")}
    clear, noise = of_word.values()
    said = []
    if clear:
        times = joined([f"{estimated(ratio)} for {name_of(training)}" for training, ratio in clear])
        said.append(f"At equal core speed the frames per second of one {other} over those of one {base} are {times}.")
    elif noise:
        said.append(f"At equal core speed no training is clearly faster or slower on one {other} than on one {base}.")
    if noise:
        surest, ratio = min(noise, key=lambda each: _width(each[1]))
        said.append(
            f"Within noise {'is' if len(noise) == 1 else 'are'} {counted(len(noise), 'training')}; the surest is"
            f" {name_of(surest)}, with {estimated(ratio)} times the frames per second."
        )
    if few := len(found) - len(clear) - len(noise):
        said.append(f"Too few machines ran {counted(few, 'other training')} to say.")
    return " ".join(said)


def _width(ratio: Estimate) -> float:
    low, high = ratio.interval or (0.0, float("inf"))
    return high / low


def _table(trainings: Sequence[Training], gpus: Sequence[str]) -> Html:
    """A row for each training that ran on one of these GPU models. ``gpus``: one or two."""
    headings = ["Training", *(f"Machines, {gpu}" for gpu in gpus), "Slope", *(f"Frames/s, {gpu}" for gpu in gpus)]
    is_pair = len(gpus) > 1
    if is_pair:
        headings += [f"{gpus[1]} over {gpus[0]}", "Verdict"]
    shown = [training for training in trainings if set(gpus) & set(training.model.gpus)]
    return html_table(
        headings,
        ([*_cells(training, gpus), *(_ratio_cells(training, *gpus) if is_pair else [])] for training in shown),
        label=" beside ".join(gpus) + " at full core speed",
        text_headings=("Verdict",),
    )


def _cells(training: Training, gpus: Sequence[str]) -> list[str]:
    frames = (estimated(training.fps(gpu), count) if gpu in training.model.gpus else MISSING for gpu in gpus)
    machines = (str(training.number_with(gpu)) for gpu in gpus)
    return [name_of(training), *machines, estimated(training.model.slope), *frames]


def _ratio_cells(training: Training, base: str, other: str) -> list[str]:
    ratio = over(training, base, other)
    return [estimated(ratio), word(ratio) if ratio else MISSING]
