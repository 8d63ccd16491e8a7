"""The first page: the answer, both charts, the calculator, how sure it is, and how to check or cite it."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from reports.analysis.curves import task_name
from reports.analysis.scaling.answer import answer, worst_curve
from reports.analysis.scaling.lines import Line
from reports.display.calculator import calculator
from reports.display.charts.speedups import panels
from reports.display.html import Html, answer_of_page, aside, link, paragraph, together
from reports.sets.version import Version
from reports.topics.results import one_size
from suite.files.wording import counted
from suite.schema.record import RunRecord
from suite.statistics.intervals import CONFIDENCE


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What some runs cover. ``tasks``: their ids."""

    tasks: frozenset[str]
    libraries: frozenset[str]
    gpus: frozenset[str]
    most: int  # GPUs of one machine, or ranks of a CPU

    @classmethod
    def by(cls, records: Sequence[RunRecord]) -> "Measured":
        return cls(
            tasks=frozenset(record.case.task for record in records),
            libraries=frozenset(record.case.rl_library for record in records),
            gpus=frozenset(gpu.name for record in records for gpu in record.environment.gpus),
            most=max((record.case.nproc_per_node for record in records), default=0),
        )

    @property
    def task_names(self) -> list[str]:
        return sorted({*map(task_name, self.tasks)})

    def beyond(self, other: "Measured") -> list[str]:
        """Return in words what this covers and ``other`` does not."""
        up_to = [f"up to {counted(self.most, 'GPU')}"] if self.most > other.most else []
        tasks = sorted({*map(task_name, self.tasks - other.tasks)})
        return [*up_to, *sorted(self.gpus - other.gpus), *tasks, *sorted(self.libraries - other.libraries)]


def completed(version: Version) -> list[RunRecord]:
    """Every completed run of a version that may be compared."""
    return [record for one in version.scaling for record in one.campaign.completed]


def measured_by_none(version: Version) -> list[str]:
    """Return in words what people ask first and no run of this version or an older one has. It has to have a run."""
    records = [record for one in (version, *version.older) for record in completed(one)]
    real = [record for record in records if not (record.transport and record.transport.emulated)]
    most = max(record.case.nproc_per_node for record in records)
    known = {
        f"more than {counted(most, 'GPU')} of a machine": False,
        "several real nodes": any(record.case.nnodes > 1 for record in real),
        "Isaac Sim's RTX renderer": any(record.case.stack == "isaacsim" for record in records),
        "NVIDIA's own assets": any(record.case.assets == "official" for record in records),
    }
    return [name for name, is_known in known.items() if not is_known]


def beyond_newer(version: Version) -> Mapping[str, list[str]]:
    """Return name of each older version, newest first -> what it covers beyond all newer ones."""
    newer, found = completed(version), dict[str, list[str]]()
    for older in version.older:
        records = completed(older)
        found[older.name] = Measured.by(records).beyond(Measured.by(newer))
        newer += records
    return found


def measured_before(version: Version) -> Html:
    """One sentence for each older version that covers more than all newer ones; nothing without one."""
    markup, text = "", []
    for older, more in beyond_newer(version).items():
        if more:
            said = f"also has {', '.join(more)}."
            name = link(f"Version {older}", f"../{older}/index.html")
            markup += f'<p class="how">{name.markup} {html.escape(said)}</p>'
            text.append(f"{name.text} {said}")
    return Html(markup=markup, text="\n".join(text))


MAX_SETS_SAID: Final = 2  # one by one


def caution(version: Version) -> Html:
    """What a reader must know before using the numbers; empty when there is nothing."""
    rows = [row for one in version.scaling for row in one.campaign.rows]
    notes = []
    if any(row.rounds_completed == 1 for row in rows):
        notes.append("Where only one round completed, nothing is known about the spread between rounds.")
    labels = {place.environment.host_label for one in version.scaling for place in one.campaign.places}
    if len(labels) > 1:
        notes.append(
            "The results come from more than one environment. Cases are compared within a set only, and where one set"
            " has several environments a speed-up mixes them."
        )
    notes += _of_cores(version)
    return aside("Before you use these numbers", notes)


def _of_cores(version: Version) -> tuple[str, ...]:
    said = version.slowed_cores
    if len(said) <= MAX_SETS_SAID:
        return said
    shared = f"In {len(said)} of {version.totals.sets} sets cores were shared or slowed, which makes iterations longer"
    return (f"{shared}.",)


HOW_TO_READ: Final = (
    "Frames per second relative to one GPU of the same machine; each line is one machine. The bar behind a"
    f" filled point is its {CONFIDENCE:.0%} interval. Hollow points are of too few runs to have one. Dotted: ideal."
)


def opening(version: Version) -> Html:
    """What was measured when and on what, then the answer, with the worst curve of this version and older ones."""
    records = completed(version)
    kicker = f"{_versions(records)} · measured {_days(records)} on {_gpus(records)}"
    above = Html(markup=f'<p class="kicker">{html.escape(kicker)}</p>', text=kicker)
    worst = worst_curve({each.name: each.lines for each in (version, *version.older)})
    scales = f"{answer(version.lines)} {worst}".strip()
    first, *more = ([] if version.lines else one_size.sentences(version)) or [scales]
    return together([above, answer_of_page(first), *map(paragraph, more)])


def main(version: Version) -> Html:
    """Show both charts beside the calculator; nothing where no machine ran on several numbers of GPUs."""
    found = version.lines
    if not found:
        return Html(markup="", text="")
    left = panels(found)
    right = calculator(found)
    addresses = {
        "Explore these results": "explore.html",
        "Settings and sharing": "settings.html",
        "All files, CSV": "data.html",
    }
    links = together(link(text, address) for text, address in addresses.items())
    markup = (
        f'<div class="first"><div>{left.markup}'
        f'<p class="how"><b>How to read it.</b> {html.escape(HOW_TO_READ)}</p><p class="links">{links.markup}</p></div>'
        f"{right.markup}</div>"
    )
    return Html(markup=markup, text=f"{left.text}\n{HOW_TO_READ}\n{right.text}")


def sureness(version: Version) -> Html:
    """What was measured, how sure it is, what is not known, and how to check it."""
    records = completed(version)
    if not records:
        return Html(markup="", text="")
    facts = {
        "What was measured": _measured(records, version.totals.runs),
        "How sure is it": _sure(version, version.lines),
        "What is not known": _unknown(version),
        "Can I check it": "Every sample can be downloaded, and one command computes the figures of every case again.",
    }
    more = {
        "How sure is it": link("Why, and all limits", "limits.html"),
        "What is not known": link("Everything that is missing", "limits.html"),
        "Can I check it": link("Files and command", "data.html"),
    }
    parts = "".join(
        f"<div><h3>{name}</h3><p>{html.escape(text)} {more[name].markup if name in more else ''}</p></div>"
        for name, text in facts.items()
    )
    shown = Html(
        markup=f'<div class="facts">{parts}</div>', text="\n".join(f"{name}: {text}" for name, text in facts.items())
    )
    return together([shown, measured_before(version)])


def _measured(records: Sequence[RunRecord], runs: int) -> str:
    found = Measured.by(records)
    unit = "GPU" if all(record.case.device == "cuda" for record in records) else "rank"
    of_libraries = f"{len(found.libraries)} RL {'library' if len(found.libraries) == 1 else 'libraries'}"
    tasks = f"{counted(len(found.tasks), 'task')} ({', '.join(found.task_names)})"
    return (
        f"{tasks}, {of_libraries}, up to {counted(found.most, unit)} of one machine, {counted(runs, 'completed run')}."
    )


def _sure(version: Version, found: Sequence[Line]) -> str:
    said = []
    if speedups := [point.speedup for line in found for point in line.points[1:]]:
        known = sum(speedup.interval is not None for speedup in speedups)
        said.append(f"{known} of {counted(len(speedups), 'speed-up')} have an interval.")
    machines = {place.environment.host_label for one in version.scaling for place in one.campaign.places}
    if len(machines) > 1:
        said.append("Speed-ups compare within a machine. Frames per second of two machines do not compare.")
    return " ".join(said) or "Nothing here compares numbers of GPUs."


def _unknown(version: Version) -> str:
    """What nobody measured of what people ask first."""
    text = f"{', '.join(measured_by_none(version))}."
    return text[0].upper() + text[1:]


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
    return " and ".join(sorted(Measured.by(records).gpus)) or "CPUs"


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
