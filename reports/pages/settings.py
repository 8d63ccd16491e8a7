"""What settings buy: every ratio of a version between configurations that differ in one of them. Pure.

The page computes nothing: ratios are rows of the table of figures, and what differs comes from their pairs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from reports.analysis.curves import task_name
from reports.analysis.environments import plain_name
from reports.display.charts.drawing import Texts
from reports.display.charts.forest import forest
from reports.display.charts.forest import row as row_of
from reports.display.figure import Figure, make_figure, source_line
from reports.display.html import Html, answer_of_page, bullets, count, html_table, measured, seconds, span
from reports.display.series_tables import STACK_NAMES, environments_text
from reports.figures.compare import Pair, Row
from reports.figures.lines import estimate
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.version import ResultSet, Version
from suite.files.wording import counted, joined
from suite.statistics.intervals import Estimate

type Figures = Mapping[str, Mapping[str, Any]]  # rows by id

HEADINGS: Final = ("What changes", "Task and library", "From", "To", "Times the frames/s", "How sure", "Runs", "Where")
TEXTS: Final = ("Task and library", "From", "To", "How sure", "Where")


@dataclass(frozen=True)
class Setting:
    """A change of ``reports.figures.compare`` as the page names it."""

    column: str
    title: str
    claim: str  # with ``{}`` for the ratios
    value: Callable[[Row], str]


def _environments(row: Row) -> str:
    return environments_text(row["environments_per_gpu"])


def _trainings(row: Row) -> str:
    number = row["trainings_per_gpu"]
    return counted(number, "training") + (" with MPS" if row["mps"] and number > 1 else "")


def _tuned(row: Row) -> str:
    return f"{row['variant'].replace('-', ' ') or 'as shipped'}, {_environments(row)}"


def _deterministic(row: Row) -> str:
    return "deterministic" if row["is_deterministic"] else "as shipped"


def _process(row: Row) -> str:
    words = {
        "train": "in turn", "async_pipeline": f"at the same time, on {counted(row['gpus'], 'GPU')}",
        "collection": "in the same process", "collection_ray": "in a process of Ray",
    }  # fmt: skip
    return words[row["workload"]]


SETTINGS: Final = (
    Setting("environments_per_gpu", "Environments on a GPU", "more environments on a GPU make {}", _environments),
    Setting("trainings_per_gpu", "Trainings on a GPU", "several trainings on a GPU make {} in total", _trainings),
    Setting("is_tuned", "Tuned settings", "tuned settings make {}", _tuned),
    Setting("library", "RL library", "another RL library makes {} of rl_games", lambda row: str(row["library"])),
    Setting("physics", "Physics", "PhysX in place of Newton makes {}", lambda row: STACK_NAMES[row["physics"]]),
    Setting("is_deterministic", "Deterministic", "deterministic settings make {}", _deterministic),
    Setting("workload", "A second process", "simulating in another process makes {}", _process),
)


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
        """Task and library."""
        name = task_name(self.pair.of["task"])
        return name if self.setting.column == "library" else f"{name}, {self.pair.of['library']}"

    @property
    def is_training(self) -> bool:
        """Whether it is of a training; others are of single parts."""
        ends = self.pair.of["workload"], self.pair.over["workload"]
        return set(ends) <= {"train", "async_pipeline"}

    @property
    def where(self) -> str:
        """The machine and the day."""
        return plain_name(max(self.result_set.campaign.places, key=lambda place: len(place.environment.gpus)))


@cache
def ratios(version: Version) -> tuple[Ratio, ...]:
    """Return every ratio of training on GPUs as it is shown, by setting, in the order of the sets."""
    sets = {one.name or "results": one for one in version.scaling}
    figures, by_column = rows_by_id(version), {setting.column: setting for setting in SETTINGS}
    shown = [
        Ratio(by_column[pair.change.column], pair, figures[pair.id], sets[pair.set_name])
        for pair in runs_of(version).pairs()
        if pair.change.column in by_column and pair.set_name in sets
    ]
    return tuple(sorted(shown, key=lambda ratio: SETTINGS.index(ratio.setting)))


def answer(version: Version) -> Html:
    """Say what each setting makes of the frames of a training, in clear ratios alone."""
    said = []
    for setting in SETTINGS:
        figures = [
            ratio.figure
            for ratio in ratios(version)
            if ratio.setting is setting and ratio.figure["status"] == "clear" and ratio.is_training
        ]
        if figures:
            said.append(setting.claim.format(f"{span(figures)} times the frames"))
    text = f"{joined(said)}." if said else "No ratio is clear: too few runs."
    return answer_of_page(text[0].upper() + text[1:])


def table(version: Version) -> Html:
    """Show every ratio."""
    label = "Ratios of configurations that differ in one setting"
    return html_table(HEADINGS, map(_row, ratios(version)), label=label, text_headings=TEXTS)


def chart(version: Version) -> Figure:
    """Draw of each setting, task and library the ratio of the newest campaign with the largest step."""
    shown: dict[tuple[str, str], Ratio] = {}
    for each in ratios(version):
        place = each.setting.column, each.subject
        if each.is_training and each.estimate.interval and (place not in shown or _step(each) > _step(shown[place])):
            shown[place] = each
    points = [
        row_of(
            f"{each.setting.value(each.pair.of)}: {each.subject}", each.estimate, each.pair.id, kind=each.setting.title
        )
        for each in shown.values()
    ]
    rows = [
        [each.setting.title, each.subject, each.setting.value(each.pair.of), measured(each.figure)]
        for each in shown.values()
    ]
    headings = ["What changes", "Task and library", "To", "Times the frames/s"]
    data = html_table(headings, rows, label="Values of the chart", num_text_columns=3)
    texts = Texts(
        title="What settings make of the frames per second",
        note="Over the configuration that differs in this setting alone, which is 1.",
        source=source_line(version.name, dict.fromkeys(each.where for each in shown.values())),
        x="Times the frames/s",
    )
    return make_figure(forest(points, texts), figure_id="settings", data=data, caption="")


def _step(ratio: Ratio) -> tuple[int, int]:
    sizes = [row["environments_per_gpu"] * row["trainings_per_gpu"] for row in (ratio.pair.of, ratio.pair.over)]
    return ratio.pair.of["trainings_per_gpu"], sizes[0] // sizes[1]


def beside(version: Version) -> Html:
    """Say what ratios of frames do not: rewards, equal results, LeRobot's calls, and starts."""
    figures, sets = rows_by_id(version), {one.name or "results" for one in version.scaling}
    said = [_sooner(each, figures) for each in ratios(version)] + [_results(each, figures) for each in ratios(version)]
    rows = [row for row in runs_of(version).configurations if row["set"] in sets]
    said += [_lerobot(row, figures) for row in sorted(rows, key=lambda row: row["environments"])]
    return bullets(text for text in [*said, _starts(rows, figures)] if text)


def _sooner(ratio: Ratio, figures: Figures) -> str:
    figure = figures.get(f"{ratio.pair.set_name}/{ratio.pair.of['configuration']}/sooner")
    if ratio.setting.column != "is_tuned" or figure is None:
        return ""
    return (
        f"Tuned settings, {ratio.subject}, {ratio.where}: the reward as shipped comes {measured(figure)}"
        f" times as soon ({figure['status']})."
    )


def _results(ratio: Ratio, figures: Figures) -> str:
    if ratio.setting.column != "is_deterministic":
        return ""
    shown = []
    for row, word in ((ratio.pair.of, "with deterministic settings"), (ratio.pair.over, "as shipped")):
        figure = figures.get(f"{row['set']}/{row['configuration']}/results")
        if figure is not None:
            results = "equal bit for bit" if figure["value"] == 1 else f"of {measured(figure, count)} different results"
            shown.append(f"{counted(figure['runs'], 'run')} of one seed {word} are {results}")
    return f"{ratio.subject}, {ratio.where}: {'; '.join(shown)}." if shown else ""


def _lerobot(row: Row, figures: Figures) -> str:
    call, frames = (
        figures.get(f"{row['set']}/{row['configuration']}/{name}") for name in ("policy_call_s", "frames_per_s")
    )
    if call is None or frames is None:
        return ""
    return (
        f"A policy of LeRobot (ACT) in {environments_text(row['environments'])}:"
        f" {measured(frames, count)} frames/s; a call takes {measured(call, seconds, has_interval=False)} s."
    )


def _starts(rows: Sequence[Row], figures: Figures) -> str:
    """How long processes take until they train on one GPU as shipped, where both kinds of starts are known."""
    both = [
        [figures.get(f"{row['set']}/{row['configuration']}/{kind}_start_s") for kind in ("warm", "cold")]
        for row in rows
        if row["gpus"] == 1 and not row["is_tuned"]
    ]
    known = [(warm, cold) for warm, cold in both if warm and cold]
    if not known:
        return ""
    warm, cold = (f"{span(starts, count)} s" for starts in zip(*known, strict=True))
    return (
        f"A process on one GPU trains after {warm}, and after {cold} if it has to compile kernels"
        f" ({counted(len(known), 'configuration')})."
    )


def _row(ratio: Ratio) -> list[str]:
    pair, setting = ratio.pair, ratio.setting
    status, number = ratio.figure["status"], str(ratio.figure["runs"])
    ends = setting.value(pair.over), setting.value(pair.of)
    return [setting.title, ratio.subject, *ends, measured(ratio.figure), status, number, ratio.where]
