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
from reports.display.charts.forest import forest, row
from reports.display.figure import Figure, make_figure, source_line
from reports.display.html import Html, answer_of_page, bullets, count, estimated, html_table, seconds
from reports.display.series_tables import STACK_NAMES
from reports.figures.compare import Pair, Row
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
    return f"{row['environments_per_gpu']:,} environments"


def _trainings(row: Row) -> str:
    return counted(row["trainings_per_gpu"], "training") + (" with MPS" if row["mps"] and row["trainings_per_gpu"] > 1 else "")


def _tuned(row: Row) -> str:
    return f"{row['variant'].replace('-', ' ') or 'as shipped'}, {_environments(row)}"


def _process(row: Row) -> str:
    words = {
        "train": "in turn", "async_pipeline": f"at the same time, on {counted(row['gpus'], 'GPU')}",
        "collection": "in the same process", "collection_ray": "in a process of Ray",
    }  # fmt: skip
    return words[row["workload"]]


SETTINGS: Final = (
    Setting("environments_per_gpu", "Environments on one GPU", "more environments on a GPU make {} times the frames", _environments),
    Setting("trainings_per_gpu", "Trainings on one GPU", "several trainings on one GPU make {} times the frames in total", _trainings),
    Setting("is_tuned", "Tuned settings", "tuned settings make {} times the frames", _tuned),
    Setting("library", "RL library", "another RL library makes {} times the frames", lambda row: row["library"]),
    Setting("physics", "Physics", "PhysX makes {} times the frames of Newton", lambda row: STACK_NAMES[row["physics"]]),
    Setting(
        "is_deterministic", "Deterministic", "deterministic settings make {} times the frames",
        lambda row: "deterministic" if row["is_deterministic"] else "as shipped",
    ),
    Setting("workload", "A second process", "a second process makes {} times the frames", _process),
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
        return _estimate(self.figure)

    @property
    def subject(self) -> str:
        """Task and library."""
        name = task_name(self.pair.of["task"])
        return name if self.setting.column == "library" else f"{name}, {self.pair.of['library']}"

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
    """Say what each setting makes, in clear ratios alone."""
    said = []
    for setting in SETTINGS:
        values = [each.figure["value"] for each in ratios(version) if each.setting is setting and each.figure["status"] == "clear"]
        if values:
            low, high = f"{min(values):.2f}", f"{max(values):.2f}"
            said.append(setting.claim.format(low if low == high else f"{low} to {high}"))
    return answer_of_page(f"{joined(said)}.".capitalize() if said else "No ratio is clear: too few runs.")


def table(version: Version) -> Html:
    """Show every ratio."""
    return html_table(
        HEADINGS, map(_row, ratios(version)), label="Ratios of configurations that differ in one setting", text_headings=TEXTS
    )


def chart(version: Version) -> Figure:
    """Draw of each setting, task and library the ratio of the newest campaign with the largest step."""
    shown: dict[tuple[str, str], Ratio] = {}
    for each in ratios(version):
        place = each.setting.column, each.subject
        if each.estimate.interval and (place not in shown or _step(each) > _step(shown[place])):
            shown[place] = each
    points = [
        row(f"{each.setting.value(each.pair.of)}: {each.subject}", each.estimate, each.pair.id, kind=each.setting.title)
        for each in shown.values()
    ]
    texts = Texts(
        title="What settings make of the frames per second",
        note="Over the configuration that differs in this setting alone, which is 1.",
        source=source_line(version.name, dict.fromkeys(each.where for each in shown.values())),
        x="Times the frames/s",
    )
    return make_figure(forest(points, texts), figure_id="settings", data=table(version), caption="")


def _step(ratio: Ratio) -> tuple[int, int]:
    sizes = [
        row["environments_per_gpu"] * row["trainings_per_gpu"] for row in (ratio.pair.of, ratio.pair.over)
    ]
    return ratio.pair.of["trainings_per_gpu"], sizes[0] // sizes[1]


def beside(version: Version) -> Html:
    """Say what ratios of frames do not: rewards, equal results, LeRobot's calls, and starts."""
    figures, sets = rows_by_id(version), {one.name or "results" for one in version.scaling}
    said = [_sooner(each, figures) for each in ratios(version)] + [_results(each, figures) for each in ratios(version)]
    rows = [row for row in runs_of(version).configurations if row["set"] in sets]
    said += [_lerobot(row, figures) for row in rows]
    return bullets(text for text in [*said, *_starts(rows, figures)] if text)


def _sooner(ratio: Ratio, figures: Figures) -> str:
    figure = figures.get(f"{ratio.pair.set_name}/{ratio.pair.of['configuration']}/sooner")
    if ratio.setting.column != "is_tuned" or figure is None:
        return ""
    return (
        f"Tuned settings, {ratio.subject}, {ratio.where}: the reward as shipped comes {estimated(_estimate(figure))}"
        f" times as soon ({figure['status']})."
    )


def _results(ratio: Ratio, figures: Figures) -> str:
    if ratio.setting.column != "is_deterministic":
        return ""
    shown = []
    for row, word in ((ratio.pair.of, "with deterministic settings"), (ratio.pair.over, "as shipped")):
        figure = figures.get(f"{row['set']}/{row['configuration']}/results")
        if figure is not None:
            results = "equal bit for bit" if figure["value"] == 1 else f"of {figure['value']:.0f} different results"
            shown.append(f"{counted(figure['runs'], 'run')} of one seed {word} are {results}")
    return f"{ratio.subject}, {ratio.where}: {'; '.join(shown)}." if shown else ""


def _lerobot(row: Row, figures: Figures) -> str:
    own = {name: figures.get(f"{row['set']}/{row['configuration']}/{name}") for name in ("policy_call_s", "frames_per_s")}
    call, frames = own["policy_call_s"], own["frames_per_s"]
    if call is None or frames is None:
        return ""
    return (
        f"A policy of LeRobot (ACT) in {counted(row['environments'], 'environment')}:"
        f" {estimated(_estimate(frames), count)} frames/s; a call takes {seconds(call['value'])} s."
    )


def _starts(rows: Sequence[Row], figures: Figures) -> list[str]:
    """Of each task and library the start of the newest configuration on one GPU as shipped that began both ways."""
    shown: dict[str, str] = {}
    for row in rows:
        name = f"{task_name(row['task'])}, {row['library']}"
        warm, cold = (figures.get(f"{row['set']}/{row['configuration']}/{kind}_start_s") for kind in ("warm", "cold"))
        if warm and cold and row["gpus"] == 1 and not row["is_tuned"]:
            shown.setdefault(
                name,
                f"{name}: a process trains after {warm['value']:.0f} s, and after {cold['value']:.0f} s if it has to"
                " compile kernels.",
            )
    return list(shown.values())


def _estimate(figure: Mapping[str, Any]) -> Estimate:
    return Estimate(value=figure["value"], interval=None if figure["low"] is None else (figure["low"], figure["high"]))


def _row(ratio: Ratio) -> list[str]:
    pair, setting = ratio.pair, ratio.setting
    status, number = ratio.figure["status"], str(ratio.figure["runs"])
    ends = setting.value(pair.over), setting.value(pair.of)
    return [setting.title, ratio.subject, *ends, estimated(ratio.estimate), status, number, ratio.where]
