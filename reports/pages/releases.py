"""Is a release slower? Other versions of packages over the pinned ones, and one configuration in several versions.

The page computes nothing: ratios are rows of the table of figures, and what differs comes from their pairs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Final

from reports.data.words import PACKAGES, configuration_name, packages_text, task_name, versions_of
from reports.display.charts.drawing import Texts
from reports.display.charts.forest import forest
from reports.display.charts.forest import row as row_of
from reports.display.figure import make_figure, source_line
from reports.display.html import (
    MISSING,
    Html,
    answer_of_page,
    bullets,
    html_table,
    measured,
    paragraph,
    runs_in,
    span,
    together,
)
from reports.figures.compare import Pair, Row
from reports.figures.lines import Figure, estimate, figure, rows_of, tasks
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.machines import plain_name
from reports.sets.version import Version
from suite.files.wording import counted, joined

HEADINGS: Final = (
    "Release", "Task and library", "What", "Times as fast", "loss_seen", "How sure", "Runs", "Where",
)  # fmt: skip
TRAINING, WARM, COLD = "Training", "Warm start", "Cold start"
SAME: Final = (  # of a configuration that several versions measured
    "task", "library", "physics", "scaling", "size", "minibatch_rule", "gpus", "nodes", "gpu_model",
)  # fmt: skip


@dataclass(frozen=True)
class Release:
    """A configuration with other versions of packages, over the one of its campaign with the pinned versions."""

    pair: Pair
    what: str
    ratio: Figure
    loss_seen: Figure | None  # None: too few runs
    where: str

    @property
    def release(self) -> str:
        return packages_text(self.pair.of["packages"])

    @property
    def instead(self) -> str:
        """What the pinned configuration ran with of the packages that this one asked for."""
        known = versions_of(self.pair.over)
        names = (package.partition("==")[0] for package in self.pair.of["packages"].split())
        return packages_text(" ".join(f"{name}=={known.get(name, MISSING)}" for name in names))

    @property
    def task(self) -> str:
        return task_name(self.pair.of["task"])

    @property
    def subject(self) -> str:
        gpus = self.pair.of["gpus"]
        return f"{self.task}, {self.pair.of['library']}{'' if gpus == 1 else f', {gpus} GPUs'}"


@cache
def releases(version: Version) -> tuple[Release, ...]:
    """Return the ratios of frames and of starts of this version and older ones, those of frames first."""
    every = [release for own in (version, *version.older) for release in _of_version(own)]
    return tuple(sorted(every, key=lambda own: ((TRAINING, WARM, COLD).index(own.what), own.where, own.subject)))


def _of_version(version: Version) -> Iterator[Release]:
    sets, figures = {result_set.name or "results": result_set for result_set in version.scaling}, rows_by_id(version)
    known = runs_of(version)
    starts = {(row["set"], row["series"]) for row in known.configurations if row["kernel_cache"] == "empty"}
    for pair in known.pairs():
        if pair.change.column != "packages" or pair.set_name not in sets:
            continue
        names = {"start_": COLD if pair.of["kernel_cache"] == "empty" else WARM}
        if (pair.set_name, pair.of["series"]) not in starts:  # whose runs are short
            names[""] = TRAINING
        for start, what in names.items():
            name = f"{pair.set_name}/{pair.of['configuration']}/{start}"
            ratio, seen = figures[f"{name}over_packages"], figures.get(f"{name}loss_seen")
            yield Release(pair, what, ratio, seen, plain_name(sets[pair.set_name].campaign.largest_place))


def is_shown(version: Version) -> bool:
    return bool(version.older or releases(version))


def answer(version: Version) -> Html:
    """Say which releases are clearly slower or faster, and what would have been seen."""
    return answer_of_page(in_words(version) or "No other release of a package was measured beside the pinned one.")


def in_words(version: Version) -> str:
    """Return the answer of the page; nothing if no other release was measured."""
    frames = [own for own in releases(version) if own.what == TRAINING]
    if not frames:
        return ""
    sentences = [
        f"{own.release} is {'slower' if own.ratio['value'] < 1 else 'faster'} than {own.instead}: it makes"
        f" {measured(own.ratio)} times the frames per second ({own.subject})."
        for own in frames
        if own.ratio["status"] == "clear"
    ]
    if not sentences:
        names = _listed(own.release for own in frames)
        where = f"{_listed(own.task for own in frames)} with {_listed(own.pair.of['library'] for own in frames)}"
        ratios = span([own.ratio for own in frames])
        sentences.append(
            f"No release is clearly slower or faster: with {names}, the frames per second are {ratios} times those with"
            f" the pinned versions, in {where}."
        )
    seen = sorted((own.loss_seen for own in frames if own.loss_seen), key=lambda figure: float(figure["value"]))
    if seen:
        least, most = map(measured, (seen[0], seen[-1]))
        exact = f" in every comparison, one of {least} in the most exact" if len(seen) > 1 else ""
        sentences.append(f"A loss of {most} would have shown{exact}.")
    else:
        sentences.append("The runs are too few to show a loss.")
    if not any("isaaclab==" in own.pair.of["packages"] for own in frames):
        sentences.append("No other release of Isaac Lab was measured.")
    return " ".join(sentences)


def _listed(words: Iterable[str]) -> str:
    return joined(list(dict.fromkeys(words)))


def chart(version: Version) -> Html:
    """Draw the ratios of frames per second."""
    frames = [own for own in releases(version) if own.what == TRAINING and own.ratio["low"] is not None]
    if not frames:
        return together(())
    points = [
        row_of(f"{own.release}: {own.subject}", estimate(own.ratio), own.ratio["id"], kind=own.subject)
        for own in frames
    ]
    texts = Texts(
        title="Frames per second with other releases",
        note="Over those with the pinned versions, in the same campaign, which are 1.",
        source=source_line(version.name, (own.where for own in frames)),
        x="Times the pinned versions",
    )
    data = html_table(
        ["Release", "over_packages"],
        ([f"{own.release}: {own.subject}", measured(own.ratio)] for own in frames),
        label="Values of the chart",
    )
    return make_figure(forest(points, texts), figure_id="releases", data=data)


def table(version: Version) -> Html:
    """Show every ratio, and what did not run."""
    rows = [
        [
            f"{own.release} over {own.instead}", own.subject, own.what, measured(own.ratio),
            measured(own.loss_seen), own.ratio["status"], runs_in(own.ratio), own.where,
        ]
        for own in releases(version)
    ]  # fmt: skip
    failed = [
        f"{own['configuration']}, run {own['run']}: {own['outcome']}. {own['reason']}"
        for own in runs_of(version).every.iter_rows(named=True)
        if own["packages"] and own["outcome"] != "completed"
    ]
    shown: list[Html] = []
    if rows:
        shown.append(html_table(HEADINGS, rows, label="Other releases over the pinned versions"))
    if failed:
        shown += [paragraph("Did not complete:"), bullets(failed)]
    return together(shown)


# --- over versions of the report ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """The share of the ideal speed that a configuration kept in one version."""

    version: Version
    row: Row
    kept: Figure
    where: str


@cache
def again(version: Version) -> tuple[Sequence[Measured], ...]:
    """Return each configuration on several GPUs that several versions measured, oldest first."""
    groups: dict[tuple[object, ...], list[Measured]] = {}
    for own in (*reversed(version.older), version):
        where = {own_set.name or "results": plain_name(own_set.campaign.largest_place) for own_set in own.scaling}
        for row in (row for task in tasks(own) for row in rows_of(own, task)):
            if kept := figure(own, row, "share_kept"):
                key = tuple(row[name] for name in SAME)
                groups.setdefault(key, []).append(Measured(own, row, kept, where[row["set"]]))
    several = (group for group in groups.values() if len({own.version.name for own in group}) > 1)
    return tuple(sorted(several, key=lambda group: configuration_name(group[0].row)))


def history(version: Version) -> Html:
    """Show what several versions measured side by side; say where intervals lie apart, and which packages differ."""
    groups = again(version)
    if not groups:
        return paragraph("No configuration was measured on the same GPU model in two versions.")
    apart = [configuration_name(group[0].row) for group in groups if _is_apart(group)]
    result = (
        f"the intervals of two versions lie apart for {joined(apart)}"
        if apart
        else "in none do the intervals of two versions lie apart, so no change is seen"
    )
    sentence = f"Several versions measured {counted(len(groups), 'configuration')} on the same GPU model: {result}."
    rows = [
        [configuration_name(own.row), own.version.name, measured(own.kept), runs_in(own.kept), own.where]
        for group in groups
        for own in group
    ]
    headings = ["Configuration", "Version", "share_kept", "Runs", "Where"]
    table = html_table(headings, rows, label="Shares of the ideal speed by version")
    return together([paragraph(f"{sentence} {_packages(groups)}"), table])


def _is_apart(group: Sequence[Measured]) -> bool:
    known = [own for own in group if own.kept["low"] is not None]
    return any(
        first.version is not other.version
        and (first.kept["low"] > other.kept["high"] or other.kept["low"] > first.kept["high"])
        for first, other in combinations(known, 2)
    )


def _packages(groups: Sequence[Sequence[Measured]]) -> str:
    """Say which packages of these runs have several versions."""
    versions: dict[str, set[str]] = {}
    for own in (own for group in groups for own in group):
        for row in runs_of(own.version).of(own.row).iter_rows(named=True):
            for name, version in versions_of(row).items():
                versions.setdefault(name, set()).add(version)
    several = [f"{PACKAGES.get(name, name)} ({joined(sorted(own))})" for name, own in versions.items() if len(own) > 1]
    if several:
        return f"They ran with several versions of {joined(several)}."
    return f"They ran with the same versions of {counted(len(versions), 'package')}."
