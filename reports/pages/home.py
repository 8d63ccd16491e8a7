"""The first page: what to do with GPUs in a sentence and a table, a chart, the calculator, and how to check it."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from reports.analysis.curves import task_name
from reports.analysis.scaling.lines import Line as MachineLine
from reports.analysis.scaling.lines import Point
from reports.display.calculator import calculator
from reports.display.charts import forest
from reports.display.charts.drawing import Texts
from reports.display.figure import make_figure, source_line
from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    answer_of_page,
    estimated,
    html_table,
    link,
    paragraph,
    percent,
    ratio,
    together,
)
from reports.figures.compare import Pair
from reports.figures.lines import Line, estimate, over_gpus, tasks
from reports.figures.tables import rows_by_id, runs_of
from reports.pages import one_size
from reports.sets.version import Version
from suite.files.wording import counted, joined
from suite.schema.record import RunRecord
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate
from suite.statistics.speed import side_of


@dataclass(frozen=True)
class Ratio:
    """A pair of training configurations with its figure."""

    pair: Pair
    own: Mapping[str, Any]

    @property
    def subject(self) -> str:
        return f"{task_name(self.pair.of['task'])}, {self.pair.of['library']}"


def completed(version: Version) -> list[RunRecord]:
    """Every completed run of a version that may be compared."""
    return [record for one in version.scaling for record in one.campaign.completed]


def ratios(version: Version, column: str) -> list[Ratio]:
    """Every ratio of trainings that differ in the column."""
    sets, rows = {one.name or "results" for one in version.scaling}, rows_by_id(version)
    return [
        Ratio(pair, rows[pair.id])
        for pair in runs_of(version).pairs()
        if pair.change.column == column and pair.set_name in sets and pair.of["workload"] == "train"
    ]


def lines(version: Version) -> list[tuple[str, Line]]:
    """The curves over GPUs of every task, with its name."""
    return [(task, line) for task in tasks(version) for line in over_gpus(version, task)]


def opening(version: Version) -> Html:
    """Say what was measured when and on what, and what to do."""
    records = completed(version)
    kicker = f"{_versions(records)} · measured {_days(records)} on {_gpus(records)}"
    above = Html(markup=f'<p class="kicker">{html.escape(kicker)}</p>', text=kicker)
    first, *more = ([] if version.lines else one_size.sentences(version)) or [_advice(version)]
    return together([above, answer_of_page(first), *map(paragraph, more)])


def _advice(version: Version) -> str:
    """What filling one GPU makes; then what the most GPUs bring in frames and in reward."""
    said = []
    if filled := _largest_steps(_clear(ratios(version, "environments_per_gpu"))):
        advice = "Start with one GPU and fill it: more environments on it" if _all_more(filled) else "More environments"
        said.append(f"{advice} make {_range(filled)} times the frames.")
    best = max(lines(version), key=lambda each: each[1].rows[-1]["gpus"], default=None)
    if best:
        task, line = best
        last, ratio = line.rows[-1], line.figure(line.rows[-1], "over_gpus")
        if ratio:
            said.append(
                f"{counted(last['gpus'], 'GPU')} make {estimated(estimate(ratio))} times the frames of one"
                f" ({task}, {line.label}); {_reward(task, line)}."
            )
    return " ".join(said) or "Nothing here ran on one GPU and on several, so nothing is known of how training scales."


def _reward(task: str, line: Line) -> str:
    """What the same GPUs bring in reward."""
    last = line.rows[-1]["configuration"]
    own = [each for each in line.version.lines if (each.task, each.points[-1].case.case_id) == (task, last)]
    times = _times(own[0].points) if own else ""
    if not times:
        return "how much sooner a reward comes was not measured"
    return f"the reward that all reach comes after {times} ({counted(_seeds(own[0].points), 'seed')})"


def _times(points: Sequence[Point]) -> str:
    """Seconds to the reward on each number of GPUs; empty unless it is known of all, and of two at least."""
    known = [(point.gpus, point.to_reward.time_s) for point in points if point.to_reward]
    if len(known) < 2 or len(known) < len(points):  # noqa: PLR2004  (two can be compared)
        return ""
    times = [f"{time_s:.0f} s on {gpus}" for gpus, time_s in known if time_s is not None]
    return joined(times) if len(times) == len(known) else ""


def _seeds(points: Sequence[Point]) -> int:
    """The fewest seeds that a point's runs had."""
    return min(
        len({point.case.seed_of(rank=0, round_index=number) for number in point.to_reward.round_times_s})
        for point in points
        if point.to_reward
    )


# --- the table -----------------------------------------------------------------------------------------------------

NOT_MEASURED: Final = "not measured"
FRAMES: Final = "times the frames"
HEADINGS: Final = ("You want", "Do", "Measured", "How sure")


def table(version: Version) -> Html:
    """Show what to do for five wishes, with what was measured; a wish of which nothing was measured is left out."""
    environments, shared = ratios(version, "environments_per_gpu"), ratios(version, "trainings_per_gpu")
    own = [each for each in lines(version) if each[1].base["scaling"] == "weak"]
    split = [each for each in lines(version) if each[1].base["scaling"] == "strong"]
    fill = "give it more environments" if _all_more(environments) else "measure how many environments it takes"
    beside = "run them on one GPU at the same time" if _all_more(shared) else "measure how many it takes"
    rows = [
        ["More frames from one GPU", fill, *_measured(environments, "times the frames")],
        ["Several experiments", beside, *_measured(shared, "times the frames in total")],
        ["One training, environments on each GPU", _how_many(own), *_of_lines(own, "share_kept", "of ideal", percent)],
        [
            "One training, a fixed number of environments",
            _how_many(split),
            *_of_lines(split, "over_gpus", FRAMES, ratio),
        ],
        ["A reward sooner", "measure it: more frames are not a reward sooner", *_rewards(version)],
    ]
    measured = [row for row in rows if row[2] != NOT_MEASURED]
    if not measured:
        return Html(markup="", text="")
    return html_table(HEADINGS, measured, label="What to do with GPUs", num_text_columns=4)


def _measured(found: Sequence[Ratio], what: str) -> list[str]:
    clear = _clear(found)
    if not found:
        return [NOT_MEASURED, MISSING]
    subjects = list(dict.fromkeys(ratio.subject for ratio in clear))
    value = f"{_range(_largest_steps(clear))} {what} ({'; '.join(subjects)})" if clear else "too few runs"
    return [value, f"clear in {len(clear)} of {counted(len(found), 'ratio')}"]


def _how_many(found: Sequence[tuple[str, Line]]) -> str:
    """How many GPUs to use, by the share of ideal that the most GPUs of each line keep."""
    kept = [own for _, line in found if (own := line.figure(line.rows[-1], "share_kept"))]
    sides = {side_of(estimate(own)) for own in kept}
    if sides == {"at least 80 %"}:
        return "use all GPUs of a machine"
    if sides == {"below 80 %"}:
        return "use one GPU, unless frames are worth more than GPU-hours"
    return "it depends on the task: look at its share of ideal"


def _of_lines(found: Sequence[tuple[str, Line]], name: str, what: str, text: Callable[[float], str]) -> list[str]:
    """A figure of the most GPUs of each line, and of how many it is clear."""
    known = [(task, line, own) for task, line in found if (own := line.figure(line.rows[-1], name))]
    if not known:
        return [NOT_MEASURED, MISSING]
    said = [
        f"{task}, {line.base['library']}, {line.rows[-1]['gpus']} GPUs: {estimated(estimate(own), text)} {what}"
        for task, line, own in known
    ]
    return ["; ".join(said), f"clear in {sum(own['status'] == 'clear' for _, _, own in known)} of {len(known)}"]


def _rewards(version: Version) -> list[str]:
    """The newest time to a reward of each training on one GPU and on several."""
    newest: dict[tuple[object, ...], MachineLine] = {}
    for line in version.lines:
        if _times(line.points):
            newest.setdefault(line.key, line)
    if not newest:
        return [NOT_MEASURED, MISSING]
    said = [f"{line.task}, {line.library}, {line.work}: {_times(line.points)}" for line in newest.values()]
    seeds = min(_seeds(line.points) for line in newest.values())
    few = ": too few to say" if seeds < MIN_ROUNDS_FOR_INTERVAL else " at least"
    return ["; ".join(said), f"{counted(seeds, 'seed')} each{few}"]


def _all_more(found: Sequence[Ratio]) -> bool:
    """Whether some ratio is clear, and every clear one is above 1."""
    clear = _clear(found)
    return bool(clear) and all(ratio.own["value"] > 1 for ratio in clear)


def _clear(found: Sequence[Ratio]) -> list[Ratio]:
    return [ratio for ratio in found if ratio.own["status"] == "clear"]


def _largest_steps(found: Sequence[Ratio]) -> list[Ratio]:
    """Of each task and library the ratios whose environments, of all trainings, differ by the largest factor."""
    steps = {id(ratio): ratio.pair.of["environments"] / ratio.pair.over["environments"] for ratio in found}
    largest: dict[str, float] = {}
    for each in found:
        largest[each.subject] = max(steps[id(each)], largest.get(each.subject, 0))
    return [ratio for ratio in found if steps[id(ratio)] == largest[ratio.subject]]


def _range(found: Sequence[Ratio]) -> str:
    values = sorted(ratio.own["value"] for ratio in found)
    low, high = f"{values[0]:.1f}", f"{values[-1]:.1f}"
    return low if low == high else f"{low} to {high}"


# --- chart, calculator, releases, trust ------------------------------------------------------------------------------


def main(version: Version) -> Html:
    """Show the share of the ideal speed that each training keeps, and the calculator; nothing without several GPUs."""
    found = lines(version)
    points, where = [], []
    for task, line in found:
        for row in line.rows[1:]:
            if kept := line.figure(row, "share_kept"):
                label = f"{task}, {line.label}, {row['gpus']} GPUs"
                points.append(forest.row(label, estimate(kept), row["configuration"], kind=task))
                where.append(line.where)
    if not points:
        return Html(markup="", text="")
    texts = Texts(
        title="Share of the ideal speed that several GPUs keep",
        note="1 is ideal. Of several machines the one with most GPUs, then the newest.",
        source=source_line(version.name, where),
        x="Share of ideal",
    )
    rows = [[point.label, estimated(Estimate(value=point.x, interval=point.interval), percent)] for point in points]
    data = html_table(["Training", "Share of ideal"], rows, label="Share of the ideal speed")
    drawn = make_figure(forest.forest(points, texts), figure_id="share", data=data, caption="")
    shown: list[Displayed] = [drawn]
    if version.lines:
        shown.append(calculator(version.lines))
    return together(shown)


def releases(version: Version) -> Html:
    """Say whether another release of a package is slower, and what would have been seen."""
    found = [ratio for ratio in ratios(version, "packages") if ratio.own["low"] is not None]
    if not found:
        return Html(markup="", text="")
    slower = [ratio for ratio in found if ratio.own["status"] == "clear" and ratio.own["value"] < 1]
    least = max(1 - ratio.own["low"] / ratio.own["value"] for ratio in found)
    names = joined([f"{ratio.pair.of['packages']} ({ratio.subject})" for ratio in slower])
    said = f"Clearly slower: {names}." if slower else f"None of {counted(len(found), 'comparison')} shows a slower one."
    more = link("Releases", "releases.html").markup
    text = f"Is a release slower? {said} A loss of {least:.0%} would have been seen in each."
    return Html(markup=f"<p>{html.escape(text)} {more}</p>", text=text)


def trust(version: Version) -> Html:
    """Say in a sentence what there is, and how to check it."""
    records = completed(version)
    if not records:
        return Html(markup="", text="")
    found = {record.case.task for record in records}, {record.case.rl_library for record in records}
    libraries = f"{len(found[1])} RL {'library' if len(found[1]) == 1 else 'libraries'}"
    said = (
        f"{counted(version.totals.runs, 'completed run')} of {counted(len(found[0]), 'task')} with {libraries}; every"
        " sample can be downloaded, and one command computes every figure again. Compare ratios between machines, not"
        " frames per second."
    )
    links = [link("Data", "data.html"), link("method and limits", "method.html"), link("explore", "explore.html")]
    return Html(markup=f"<p>{html.escape(said)} {' · '.join(each.markup for each in links)}</p>", text=said)


def _versions(records: Sequence[RunRecord]) -> str:
    """Such as ``Isaac Lab 3.0.0 · Newton 1.8.0``; of several versions of one package all.

    Versions that a case asked for are left out, unless every case did.
    """
    records = [record for record in records if not record.case.with_packages] or records
    named: Mapping[str, str] = {"Isaac Lab": "versions.isaaclab", "Newton": "versions.newton"}
    found = {
        name: sorted({str(value) for record in records for rank in record.ranks if (value := rank.settings.get(key))})
        for name, key in named.items()
    }
    return " · ".join(f"{name} {' and '.join(values)}" for name, values in found.items() if values) or "Isaac Lab"


def first_and_last(records: Sequence[RunRecord]) -> tuple[date, date] | None:
    """Return the days on which the first and the last run started; None if no record says it."""
    days = sorted(datetime.fromisoformat(record.started_utc).date() for record in records if record.started_utc)
    return (days[0], days[-1]) if days else None


def _days(records: Sequence[RunRecord]) -> str:
    days = first_and_last(records)
    if days is None:
        return "on an unknown day"
    first, last = days
    end = f"{last.day} {last:%B %Y}"
    if first == last:
        return end
    is_one_month = (first.year, first.month) == (last.year, last.month)
    return f"{first.day if is_one_month else f'{first.day} {first:%B %Y}'} to {end}"


def _gpus(records: Sequence[RunRecord]) -> str:
    return " and ".join(sorted({gpu.name for record in records for gpu in record.environment.gpus})) or "CPUs"


def citation(version: Version) -> Html:
    """How to cite this version: one sentence, and BibTeX with the month of its last run."""
    said = f"The labscale authors: How Isaac Lab training scales, report {version.name}."
    days = first_and_last(completed(version))
    last = days[1] if days else None
    fields = {
        "author": "{The labscale authors}",
        "title": f"How {{Isaac Lab}} training scales, report {version.name}",
        "version": version.name,
        "year": str(last.year) if last else "n.d.",
    }
    lines = [f"  {name} = {{{value}}}" for name, value in fields.items()]
    if last:
        lines.append(f"  month = {f'{last:%b}'.lower()}")  # a macro of BibTeX, so without braces
    bibtex = ",\n".join([f"@misc{{labscale-{version.name}", *lines]) + "\n}"
    return Html(
        markup=f"<p>{html.escape(said)} Text and data: CC-BY-4.0. Code: BSD-3-Clause.</p>"
        f'<details><summary>BibTeX</summary><pre tabindex="0">{html.escape(bibtex)}</pre></details>',
        text=f"{said}\n{bibtex}",
    )
