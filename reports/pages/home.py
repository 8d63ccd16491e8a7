"""The first page: what to do with GPUs in a sentence and a table, a chart, the calculator, and how to check it."""

import html
import string
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from reports.data.words import configuration_name, environments_text
from reports.display.calculator import calculator
from reports.display.charts import forest
from reports.display.charts.drawing import Texts
from reports.display.figure import make_figure, source_line
from reports.display.html import (
    Html,
    answer_of_page,
    commands,
    heading,
    html_table,
    link,
    measured,
    paragraph,
    runs_in,
    span,
    together,
)
from reports.display.page import read_text
from reports.figures.declarations import MARKS
from reports.figures.lines import Figure, Line, by_reward, estimate, over_environments, over_gpus, tasks
from reports.figures.tables import rows_by_id
from reports.pages import method, one_gpu, releases
from reports.pages.rewards import seeds, sooner_on, times
from reports.pages.settings import Ratio, clear
from reports.sets.version import Version
from suite.files.wording import counted, day_in_words, joined
from suite.schema.record import RunRecord
from suite.statistics.speed import side_of

PUBLISHED: Final = (
    "Results of other machines are published in reports/results of labscale; python3 -m nox -s publish builds their"
    " pages in site/, and one that says how everything is measured."
)
ADD_COMMANDS: Final = ("bench -- --matrix full", "submit -- runs/full")


def completed(version: Version) -> list[RunRecord]:
    """Every completed run of a version that may be compared."""
    return [record for result_set in version.scaling for record in result_set.campaign.completed]


def lines(version: Version, *, of_rewards: bool = False) -> list[tuple[str, Line]]:
    """The curves over GPUs of every task, with its name."""
    return [(task, line) for task in tasks(version) for line in over_gpus(version, task, of_rewards=of_rewards)]


def texts(version: Version) -> Mapping[str, str]:
    """The first page, under the question that these results can answer."""
    title = "How many GPUs should train your robot?" if lines(version) else "How fast does this machine train?"
    return {"index": string.Template(read_text("home")).substitute(title=title)}


def opening(version: Version) -> Html:
    """Say what was measured when and on what, and what to do."""
    records = completed(version)
    gpus = " and ".join(sorted({gpu.name for record in records for gpu in record.environment.gpus})) or "CPUs"
    kicker = f"{_versions(records)} · measured {_days(version)} on {gpus}"
    above = Html(markup=f'<p class="kicker">{html.escape(kicker)}</p>', text=kicker)
    first, *more = answer(version)
    return together([above, answer_of_page(first), *map(paragraph, more)])


def answer(version: Version) -> list[str]:
    """Return what to do, or where nothing ran on several GPUs, what one makes; sentences with figures."""
    return [_advice(version)] if lines(version) else one_gpu.sentences(version)


def _advice(version: Version) -> str:
    """What filling one GPU makes; then what the most GPUs bring in frames and in reward."""
    sentences = []
    if filled := clear(version, "environments_per_gpu"):
        advice = "For frames fill one GPU first: up to" if _all_more(filled) else "Up to"
        most = max(ratio.pair.of["environments_per_gpu"] for ratio in filled)
        made = f"{span([ratio.figure for ratio in filled])} times the frames of {_fewer(filled)} environments"
        sentences.append(f"{advice} {most:,} environments on a GPU make {made}.")
    known = [item for item in lines(version, of_rewards=True) if item[1].figure(item[1].base, "time_to_reward_s")]
    task, line = max(known or lines(version, of_rewards=True), key=lambda item: by_reward(item[1]))
    last, reward = line.rows[-1], "how much sooner a reward comes is not known"
    if known:
        reward = f"the reward comes after {times(line)} ({seeds(line)})"
    sentences.append(
        f"{counted(last['gpus'], 'GPU')} make {measured(line.figure(last, 'over_gpus'))} times the frames of one"
        f" ({task}, {line.label}); {reward}."
    )
    return " ".join(sentences)


# --- the table -----------------------------------------------------------------------------------------------------

HEADINGS: Final = ("You want", "Do", "Measured", "How sure")
HOW_SURE: Final = (
    "Clear: the whole 95 % interval is above or below no change, for shares of ideal above or below 80 %. Within noise:"
    " it is on both sides. Too few runs: there is no interval."
)


def table(version: Version) -> Html:
    """Show what to do for five wishes, with what was measured; a wish of which nothing was measured is left out."""
    environments, shared = clear(version, "environments_per_gpu"), clear(version, "trainings_per_gpu")
    own = [item for item in lines(version) if item[1].base["scaling"] == "weak"]
    split = [item for item in lines(version) if item[1].base["scaling"] == "strong"]
    fill = "give it more environments" if _all_more(environments) else "measure how many it takes"
    beside = "run them on one GPU" if _all_more(shared) else "measure how many it takes"
    rows = [
        ["More frames from one GPU", fill, *_of_ratios(environments, " environments")],
        ["Several experiments", beside, *_of_ratios(shared)],
        ["One training, environments on each GPU", _how_many(own), *_of_lines(own, "share_kept", "of ideal")],
        ["One training, a fixed number", _how_many(split), *_of_lines(split, "over_gpus", "times the frames")],
        ["A reward sooner", *_rewards(version)],
    ]
    known = [row for row in rows if len(row) == len(HEADINGS)]
    has_more = len(known) > 1  # a single row is the answer of the page
    shown = [html_table(HEADINGS, known, label="What to do with GPUs"), paragraph(HOW_SURE)] if has_more else []
    return together(shown)


def _fewer(ratios: Sequence[Ratio]) -> str:
    """What ratios are over: ``1,024``, ``1 training``."""
    return joined(list(dict.fromkeys(ratio.ends[0] for ratio in ratios)))


def _of_ratios(ratios: Sequence[Ratio], noun: str = "") -> list[str]:
    named = [(ratio.figure, f"{configuration_name(ratio.pair.of)}{ratio.held}") for ratio in ratios]
    return [f"{_ends(named)} times the frames of {_fewer(ratios)}{noun}", "clear"] if ratios else []


def _ends(named: Sequence[tuple[Figure, str]]) -> str:
    """The least and the greatest of figures, each with its name."""
    ends = [end(named, key=lambda item: float(item[0]["value"])) for end in (min, max)][: len(named)]
    return " to ".join(f"{measured(own, has_interval=False)} ({name})" for own, name in ends)


def _how_many(of_lines: Sequence[tuple[str, Line]]) -> str:
    """How many GPUs to use, by the share of ideal that the most GPUs of each line keep."""
    kept = [own for _, line in of_lines if (own := line.figure(line.rows[-1], "share_kept"))]
    sides = {side_of(estimate(own)) for own in kept}
    if sides == {"at least 80 %"}:
        return "use all GPUs of a machine"
    return "use one GPU, or pay more for each frame" if sides == {"below 80 %"} else "see your task in the chart"


def _of_lines(of_lines: Sequence[tuple[str, Line]], name: str, what: str) -> list[str]:
    """The least and the greatest of a figure of the most GPUs of each line, and of how many it is clear."""
    known = [
        (own, f"{task}, {line.label}, {line.rows[-1]['gpus']} GPUs")
        for task, line in of_lines
        if (own := line.figure(line.rows[-1], name))
    ]
    statuses = sorted({own["status"] for own, _ in known})
    sure = f"depends on the training: {joined(statuses, 'or')}" if len(statuses) > 1 else joined(statuses)
    return [f"{_ends(known)} {what}", sure] if known else []


def _rewards(version: Version) -> list[str]:
    """The time to a reward of the training that says most of it, and on the most GPUs of others what is clear."""
    known = [item for item in lines(version, of_rewards=True) if item[1].figure(item[1].base, "time_to_reward_s")]
    if not known:
        return []
    task, line = max(known, key=lambda item: by_reward(item[1]))
    own = sooner_on(line, line.rows[-1])
    sure = f"{own['status']}, " if own else ""
    others = [
        f"{measured(own)} times as soon on {other.rows[-1]['gpus']} GPUs ({name}, {other.label})"
        for name, other in known
        if other is not line and (own := sooner_on(other, other.rows[-1])) and own["status"] == "clear"
    ]
    for name in tasks(version):
        filled = [
            (full.rows[-1]["environments"], measured(own), full.label)
            for full in over_environments(version, name, of_rewards=True)
            if (own := sooner_on(full, full.rows[-1])) and own["low"] is not None
        ]
        if filled:
            most, as_soon, label = max(filled)
            others.append(f"{as_soon} times as soon with {environments_text(most)} on one GPU ({name}, {label})")
    comes = f"; the reward comes {joined(others)}" if others else ""
    shown = f"{times(line)} ({task}, {line.label}){comes}"
    return [f"for {task} with {line.base['library']}, {_for_a_reward(line)}", shown, f"{sure}{seeds(line)}"]


def _for_a_reward(line: Line) -> str:
    """What to do, by how many times as soon a reward comes on more GPUs: whichever part of the rise is asked for."""
    known = [(row["gpus"], sooner_on(line, row)) for row in line.rows[1:]]
    clear = [(own["low"], gpus) for gpus, own in known if own and own["status"] == "clear"]
    if sooner := [end for end in clear if end[0] > 1]:
        return f"use {max(sooner)[1]} GPUs"
    if len(clear) == len(known):
        return "use one GPU: more bring it later"
    # Surely less than half of what more GPUs would ideally bring, at every mark that all runs have.
    marks = [(row["gpus"], own) for row in line.rows[1:] for end in MARKS if (own := line.figure(row, f"sooner{end}"))]
    if all(own for _, own in known) and all((own["high"] or gpus) < (1 + gpus) / 2 for gpus, own in marks):
        most, kindest = max(marks, key=lambda mark: (mark[0], mark[1]["high"]))
        return f"use one GPU: {most} GPUs bring the reward at best {measured(kindest)} times as soon"
    return "open: measure it; frames are no rewards"


def _all_more(ratios: Sequence[Ratio]) -> bool:
    """Whether some ratio is clear, and every clear one is above 1."""
    return bool(ratios) and all(ratio.figure["value"] > 1 for ratio in ratios)


# --- chart, calculator, releases, trust ------------------------------------------------------------------------------


def main(version: Version) -> Html:
    """Show the share of the ideal speed that the most GPUs keep, and the calculator; nothing without several GPUs."""
    known = lines(version)
    kept = [(task, line, own) for task, line in known if (own := line.figure(line.rows[-1], "share_kept"))]
    if not kept:
        return Html(markup="", text="")
    names = [f"{task}, {line.label}, {line.rows[-1]['gpus']} GPUs" for task, line, _ in kept]
    points = [
        forest.row(name, estimate(own), line.rows[-1]["configuration"], kind=task)
        for name, (task, line, own) in zip(names, kept, strict=True)
    ]
    texts = Texts(
        title="Share of the ideal speed that several GPUs keep",
        note="1 is ideal. Each on the most GPUs; of several machines the newest with an interval.",
        source=source_line(version.name, (line.where for _, line, _ in kept)),
        x="Share of ideal",
    )
    rows = [[name, measured(own)] for name, (_, _, own) in zip(names, kept, strict=True)]
    data = html_table(["Training", "share_kept"], rows, label="Share of the ideal speed")
    drawn = make_figure(forest.forest(points, texts), figure_id="share", data=data)
    return together([drawn, calculator(known, lines(version, of_rewards=True))])


def is_a_release_slower(version: Version) -> Html:
    """Say whether another release of a package is slower, and what would have been seen."""
    if not (answer := releases.in_words(version)):
        return Html(markup="", text="")
    text = f"Is a release slower? {answer}"
    return Html(markup=f"<p>{html.escape(text)} {link('Releases', 'releases.html').markup}</p>", text=text)


def ending(version: Version) -> Html:
    """Say in a sentence what there is, and how to check it; of one campaign, where others are and how to send it."""
    records = completed(version)
    if not records:
        return Html(markup="", text="")
    libraries, total = joined(sorted({record.case.rl_library for record in records})), rows_by_id(version)["total/task"]
    number = measured(total, lambda tasks: counted(int(tasks), "task"))
    sentence = (
        f"{runs_in(total, 'completed run')} of {number} with {libraries}, not counting repeats and copies that"
        " check the method. One command computes every figure again."
    )
    places = {
        "Data": "data.html", "Add your machine": "data.html#add-your-results", "Explore": "explore.html",
        "What was measured": "hardware.html#what-runs-where",
    }  # fmt: skip
    if not version.is_campaign:
        places |= {"Method and limits": "method.html", "Cite": "data.html#cite"}
    links = [link(*place) for place in places.items()]
    shown = Html(
        markup=f"<p>{html.escape(sentence)} {' · '.join(link_html.markup for link_html in links)}</p>", text=sentence
    )
    parts = [heading("Can I trust it?", depth=2, anchor="trust"), shown]
    cut_off = method.unfinished(version)
    of_campaign = [method.failures(version), paragraph(PUBLISHED), commands(ADD_COMMANDS)]
    of_campaign = [paragraph(cut_off), *of_campaign] if cut_off else of_campaign
    return together(parts + of_campaign if version.is_campaign else parts)


def _versions(records: Sequence[RunRecord]) -> str:
    """Such as ``Isaac Lab 3.0.0 · Newton 1.8.0``; of several versions of one package all.

    Versions that a case asked for are left out, unless every case did.
    """
    records = [record for record in records if not record.case.with_packages] or records
    named: Mapping[str, str] = {"Isaac Lab": "versions.isaaclab", "Newton": "versions.newton"}
    installed = {
        name: sorted({str(value) for record in records for rank in record.ranks if (value := rank.settings.get(key))})
        for name, key in named.items()
    }
    return " · ".join(f"{name} {' and '.join(values)}" for name, values in installed.items() if values) or "Isaac Lab"


def _days(version: Version) -> str:
    """Time from the start of the first run to that of the last, of runs of which only the learning counts too."""
    records = (record for own in version.sets for record in own.campaign.completed)
    started = sorted(record.started_utc for record in records if record.started_utc)
    days = [day_in_words(datetime.fromisoformat(day)) for day in (*started[:1], *started[-1:])]
    return " to ".join(dict.fromkeys(days)) or "on an unknown day"
