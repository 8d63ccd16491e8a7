"""What settings buy: every ratio of a version between configurations that differ in one of them. Pure.

The page computes nothing: ratios are rows of the table of figures, and what differs comes from their pairs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

from reports.data.words import environments_text, physics_name, task_name, trainings_text
from reports.display.charts.drawing import Texts
from reports.display.charts.forest import forest
from reports.display.charts.forest import row as row_of
from reports.display.figure import make_figure, source_line
from reports.display.html import Html, answer_of_page, bullets, html_table, measured, runs_in, span
from reports.figures.compare import Pair, Row
from reports.figures.lines import estimate, figure
from reports.figures.tables import rows_by_id, runs_of
from reports.pages.rewards import by_marks
from reports.sets.machines import Place, plain_name
from reports.sets.version import ResultSet, Version
from suite.files.wording import counted, joined
from suite.schema.record import RULE_WORDS
from suite.statistics.intervals import Estimate

HEADINGS: Final = ("What changes", "Task and library", "From", "To", "Times the speed", "How sure", "Where")


@dataclass(frozen=True)
class Setting:
    """A change of ``reports.figures.compare`` as the page names it."""

    column: str
    title: str
    claim: str  # with ``{}`` for the ratios
    value: Callable[[Row], str]


def _process(row: Row) -> str:
    words = {
        "train": "in turn", "async_pipeline": f"at the same time, on {counted(row['gpus'], 'GPU')}",
        "collection": "in the same process", "collection_ray": "in a process of Ray",
    }  # fmt: skip
    return words[row["workload"]]


SETTINGS: Final = (
    Setting(
        "environments_per_gpu", "Environments", "more environments on a GPU make {}",
        lambda row: f"{row['environments_per_gpu']:,}",
    ),
    Setting("trainings_per_gpu", "Trainings at once", "several trainings on a GPU make {} in total", trainings_text),
    Setting(
        "is_tuned", "Tuned", "tuned settings make {}",
        lambda row: f"{row['environments_per_gpu']:,}, {row['variant'].replace('-', ' ') or 'as shipped'}",
    ),
    Setting("library", "RL library", "another RL library makes {} of rl_games", lambda row: str(row["library"])),
    Setting("physics", "Physics", "PhysX in place of Newton makes {}", lambda row: physics_name(row["physics"])),
    Setting(
        "is_deterministic", "Deterministic", "deterministic settings make {}",
        lambda row: "deterministic" if row["is_deterministic"] else "as shipped",
    ),
    Setting("workload", "Second process", "simulating in another process makes {}", _process),
)  # fmt: skip


@dataclass(frozen=True)
class Ratio:
    """A pair with the row of its figure."""

    setting: Setting
    pair: Pair
    figure: Mapping[str, Any]
    result_set: ResultSet

    @property
    def estimate(self) -> Estimate:
        return estimate(self.figure)

    @property
    def subject(self) -> str:
        """Task and library; libraries are compared with as many environments."""
        name, row = task_name(self.pair.of["task"]), self.pair.of
        if self.setting.column != "library":
            return f"{name}, {row['library']}{self.held}"
        gpus = f" on {row['gpus']} GPUs" if row["gpus"] > 1 else ""
        physics = "" if row["physics"] == "kitless" else f", {physics_name(row['physics'])}"
        trainings = f", {trainings_text(row)}" if row["trainings_per_gpu"] > 1 else ""
        return f"{name}, {row['environments']:,}{gpus}{physics}{trainings}"

    @property
    def held(self) -> str:
        """What stays when a training gets more environments: the minibatch, or the number of optimiser steps."""
        if self.setting.column != "environments_per_gpu" or not self.is_training:
            return ""
        has_same_steps = self.pair.of["optimiser_steps"] == self.pair.over["optimiser_steps"]
        return f", {RULE_WORDS['fixed_updates' if has_same_steps else 'fixed_minibatch']}"

    @property
    def ends(self) -> tuple[str, str]:
        """The setting before and after the change."""
        return self.setting.value(self.pair.over), self.setting.value(self.pair.of)

    @property
    def is_training(self) -> bool:
        """Whether it is of a training; others are of single parts."""
        return {self.pair.of["workload"], self.pair.over["workload"]} <= {"train", "async_pipeline"}

    @property
    def where(self) -> str:
        """The machine and the day."""
        return plain_name(self.place)

    @property
    def place(self) -> Place:
        return self.result_set.campaign.largest_place


@cache
def ratios_of_settings(version: Version) -> tuple[Ratio, ...]:
    """Return every ratio of training on GPUs as it is shown, by setting, in the order of the sets."""
    sets = {result_set.name or "results": result_set for result_set in version.scaling}
    figures, by_column = rows_by_id(version), {setting.column: setting for setting in SETTINGS}
    shown = [
        Ratio(by_column[pair.change.column], pair, figures[pair.id], sets[pair.set_name])
        for pair in runs_of(version).pairs()
        if pair.change.column in by_column and pair.set_name in sets
    ]
    return tuple(sorted(shown, key=lambda ratio: SETTINGS.index(ratio.setting)))


def answer(version: Version) -> Html:
    """Say what each setting makes of the frames of a training, in clear ratios alone."""
    known = [(setting, [ratio.figure for ratio in clear(version, setting.column)]) for setting in SETTINGS]
    sentences = [setting.claim.format(f"{span(figures)} times the frames") for setting, figures in known if figures]
    text = f"{joined(sentences)}." if sentences else "No ratio is clear: too few runs."
    return answer_of_page(text[0].upper() + text[1:])


@cache
def newest(version: Version) -> tuple[Ratio, ...]:
    """Return of each comparison of training, or of its parts, the newest ratio that is clear, else the newest."""
    best: dict[tuple[str, ...], Ratio] = {}
    for ratio in ratios_of_settings(version):
        key = ratio.setting.column, ratio.subject, *ratio.ends
        if ratio.pair.of["library"] != "lerobot" and (key not in best or _order(ratio) > _order(best[key])):
            best[key] = ratio
    return tuple(best.values())


def _order(ratio: Ratio) -> tuple[bool, str]:
    return ratio.figure["status"] == "clear", ratio.place.first_started_utc or ""


def table(version: Version) -> Html:
    """Show the newest ratio of each comparison."""
    rows = ([*_cells(ratio), ratio.figure["status"], ratio.where] for ratio in newest(version))
    return html_table(HEADINGS, rows, label="Ratios of configurations that differ in one setting")


def _cells(ratio: Ratio) -> list[str]:
    return [ratio.setting.title, ratio.subject, *ratio.ends, measured(ratio.figure)]


@cache
def largest(version: Version) -> tuple[Ratio, ...]:
    """Return of each setting, task and library the ratio of training of the newest campaign with the largest step."""
    shown: dict[tuple[str, str], Ratio] = {}
    for ratio in newest(version):
        place = ratio.setting.column, ratio.subject
        if ratio.is_training and ratio.estimate.interval and (place not in shown or _step(ratio) > _step(shown[place])):
            shown[place] = ratio
    return tuple(shown.values())


def clear(version: Version, column: str) -> list[Ratio]:
    """Return the ratios of the largest steps of a setting that are clear."""
    ratios = (ratio for ratio in largest(version) if ratio.setting.column == column)
    return [ratio for ratio in ratios if ratio.figure["status"] == "clear"]


def chart(version: Version) -> Html:
    """Draw what the largest steps make of the frames."""
    points = [
        row_of(
            f"{ratio.setting.title}, {' to '.join(ratio.ends)}: {ratio.subject}",
            ratio.estimate,
            ratio.pair.id,
            kind=ratio.setting.title,
        )
        for ratio in largest(version)
    ]
    data = html_table(HEADINGS[:5], map(_cells, largest(version)), label="Values of the chart")
    texts = Texts(
        title="What settings make of the frames per second",
        note="Over the configuration that differs in this setting alone, which is 1.",
        source=source_line(version.name, dict.fromkeys(ratio.where for ratio in largest(version))),
        x="Times the speed",
    )
    return make_figure(forest(points, texts), figure_id="settings", data=data)


def _step(ratio: Ratio) -> tuple[int, int]:
    sizes = [row["environments_per_gpu"] * row["trainings_per_gpu"] for row in (ratio.pair.of, ratio.pair.over)]
    return ratio.pair.of["trainings_per_gpu"], sizes[0] // sizes[1]


def beside(version: Version) -> Html:
    """Say what ratios of frames do not: rewards, equal results, LeRobot's calls, and starts."""
    sets = {result_set.name or "results" for result_set in version.scaling}
    rows = [row for row in runs_of(version).configurations if row["set"] in sets]
    sentences = [text(version, ratio) for text in (_sooner, _results) for ratio in newest(version)]
    return bullets(text for text in [*sentences, _lerobot(version, rows), _starts(version, rows)] if text)


def _sooner(version: Version, ratio: Ratio) -> str:
    sooner = figure(version, ratio.pair.of, "sooner")
    if ratio.setting.column != "is_tuned" or sooner is None:
        return ""
    return (
        f"Tuned settings, {ratio.subject}: the reward as shipped comes {measured(sooner)} times as soon at 90 % of its"
        f" rise ({by_marks(partial(figure, version, ratio.pair.of))})."
    )


def _results(version: Version, ratio: Ratio) -> str:
    if ratio.setting.column != "is_deterministic":
        return ""
    shown = []
    for row, word in ((ratio.pair.of, "with deterministic settings"), (ratio.pair.over, "as shipped")):
        if different := figure(version, row, "results"):
            results = "equal bit for bit" if different["value"] == 1 else f"of {measured(different)} different results"
            shown.append(f"{runs_in(different, 'run')} of one seed {word} are {results}")
    return f"{ratio.subject}: {'; '.join(shown)}." if shown else ""


def _lerobot(version: Version, rows: Sequence[Row]) -> str:
    known = [
        (row, call, frames)
        for row in sorted(rows, key=lambda row: row["environments"])
        if (call := figure(version, row, "policy_call_s")) and (frames := figure(version, row, "frames_per_s"))
    ]
    if not known:
        return ""
    made = [f"{measured(fps, has_interval=False)} in {environments_text(row['environments'])}" for row, _, fps in known]
    calls = span([call for _, call, _ in known])
    return f"A policy of LeRobot (ACT) makes {joined(made)} frames/s; a call takes {calls} s."


def _starts(version: Version, rows: Sequence[Row]) -> str:
    """How long processes take until they train on one GPU as shipped, where both kinds of starts are known."""
    both = [
        [figure(version, row, f"{kind}_start_s") for kind in ("warm", "cold")]
        for row in rows
        if row["gpus"] == 1 and not row["is_tuned"]
    ]
    known = [(warm, cold) for warm, cold in both if warm and cold]
    if not known:
        return ""
    warm, cold = (f"{span(starts)} s" for starts in zip(*known, strict=True))
    return (
        f"A process on one GPU trains after {warm}, and after {cold} if it has to compile kernels"
        f" ({counted(len(known), 'configuration')})."
    )
