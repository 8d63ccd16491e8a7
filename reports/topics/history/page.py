"""What changed since the version before: speed-ups, software, how runs were made, and times case by case."""

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from reports.display.charts.drawing import Point, Texts
from reports.display.charts.forest import forest
from reports.display.figure import Figure, make_figure, source_line
from reports.display.html import (
    MISSING,
    Cell,
    Displayed,
    Html,
    answer_of_page,
    count,
    estimated,
    heading,
    html_table,
    link,
    paragraph,
    rounds_text,
    seconds,
    together,
)
from reports.sets.version import ResultSet, Version
from reports.topics.history.comparison import DEFAULT_THRESHOLD, CaseComparison
from reports.topics.history.conditions import RELEASES, Condition, measurement, software, software_answer
from reports.topics.history.over_versions import (
    Change,
    Measured,
    again,
    answer,
    changes_since_last,
    compared_sets,
    matched_sets,
    measured,
)
from suite.files.wording import are, counted

HOW_TO_READ: Final = (
    "Each point is the speed-up of several GPUs over one GPU of the same machine; a colour is a version. All"
    " figures are computed by the same code, that of this version. Versions were measured on other machines."
)
CHANGED: Final[Mapping[bool | None, str]] = {True: "yes", False: "no", None: "not known"}


def opening(version: Version) -> Html:
    """Return the page's answer."""
    before = version.older[0]
    return answer_of_page(
        f"{answer(before.name, changes_since_last(version))} {software_answer(software(before, version))}"
    )


def over_all_versions(version: Version) -> Html:
    """Draw the speed-ups of all versions up to this one."""
    found = measured([*reversed(version.older), version])
    if not found:
        return paragraph("No version has a speed-up of several GPUs over one.")
    number, several = len({each.work for each in found}), len(again(found))
    title = f"{several} of {counted(number, 'configuration')} {are(several)} in more than one version"
    how = Html(markup=f'<p class="how"><b>How to read it.</b> {html.escape(HOW_TO_READ)}</p>', text=HOW_TO_READ)
    once = number - several
    alone = f"{counted(once, 'configuration')} {'has' if once == 1 else 'have'} points in one version only."
    return together([heading(title, depth=2), _chart(found, version), how, *([paragraph(alone)] if once else [])])


def speedups(version: Version) -> Html:
    """Show each speed-up that this version and the one before measured on the same GPUs."""
    before, found = version.older[0].name, changes_since_last(version)
    if not found:
        return paragraph(answer(before, found))
    return together(
        [
            _table_of_changes(before, version.name, found),
            paragraph(
                f"Higher and lower: the interval is on one side, and the change is beyond {DEFAULT_THRESHOLD:.0%}."
                " Unchanged: all of the interval is within that. Within noise: anything else. The interval of a"
                " change is wider than those of both speed-ups. The machines differ too, so a change need"
                " not come from the versions."
            ),
        ]
    )


def frames(version: Version) -> Html:
    """Show frames per second of the same figures, with the caveat."""
    before, found = version.older[0].name, changes_since_last(version)
    if not found:
        return Html(markup="", text="")
    ratios = [each.frames_ratio for each in found]
    caveat = (
        f"These do not compare versions, because machines of one kind differ. Here, the machines of {version.name} make"
        f" {min(ratios):.2f} to {max(ratios):.2f} times the frames per second."
    )
    rows = (
        [
            each.now.configuration,
            each.before.line.machine,
            each.now.line.machine,
            estimated(each.before.point.fps, count),
            estimated(each.now.point.fps, count),
        ]
        for each in found
    )
    headings = ["Configuration", f"Machine in {before}", f"Machine in {version.name}"]
    headings += [f"Frames/s in {before}", f"Frames/s in {version.name}"]
    table = html_table(headings, rows, label="Frames per second in both versions", num_text_columns=3)
    return together([paragraph(caveat), table])


def stack(version: Version) -> Html:
    """Show the software of both versions."""
    found = software(version.older[0], version)
    return _conditions(found, version, label="Software", name=_release)


def method(version: Version) -> Html:
    """Show how the runs of both versions were made."""
    return _conditions(measurement(version.older[0], version), version, label="How runs were made", name=_plain)


def case_by_case(version: Version) -> Html:
    """Compare the times of campaigns that have one name in both versions."""
    before, matched = version.older[0], matched_sets(version)
    parts: list[Displayed] = []
    for old, one in matched:
        parts += [heading(f"{one.title or one.name}, since {before.name}"), *_compared(old, one, before)]
    known = {one.name for _, one in matched}
    new = [one.name for one in version.scaling if one.name not in known]
    if new:
        parts.append(paragraph(f"Version {before.name} has no campaign of these names: {', '.join(new)}."))
    return together(parts)


def _chart(found: Sequence[Measured], version: Version) -> Figure:
    """Draw each figure as a row, those of one configuration below each other."""
    every = [one for one in (*reversed(version.older), version) if one.name in {each.version for each in found}]
    plain = [f"{each.configuration}, in {each.version}" for each in found]
    points = [
        Point(
            label=name if plain.count(name) == 1 else f"{name} ({each.line.machine})",
            x=each.point.speedup.value,
            interval=each.point.speedup.interval,
            kind=each.version,
            told={"Version": each.version, "Machine": each.line.machine, "Software": _software_of(each)},
        )
        for each, name in zip(found, plain, strict=True)
    ]
    texts = Texts(
        title="Speed-up of several GPUs over one",
        source=source_line(
            " and ".join(dict.fromkeys(each.version for each in found)),
            (one.machines_of_lines([each.line for each in found if each.version == one.name]) for one in every),
        ),
        x="Times one GPU",
    )
    return make_figure(forest(points, texts), figure_id="speedups-over-versions", data=_table(found))


def _software_of(each: Measured) -> str:
    return ", ".join(filter(None, [each.releases, each.library]))


def _table(found: Sequence[Measured]) -> Html:
    return html_table(
        ["Configuration", "Version", "Machine", "Software", "Speed-up", "Runs"],
        (
            [
                each.configuration,
                each.version,
                each.line.machine,
                _software_of(each),
                estimated(each.point.speedup),
                rounds_text([each.point.runs]),
            ]
            for each in found
        ),
        label="Speed-ups by version",
        num_text_columns=4,
        text_headings=("Runs",),
    )


def _table_of_changes(before: str, now: str, found: Sequence[Change]) -> Html:
    rows = (
        [
            each.now.configuration,
            each.before.line.machine,
            each.now.line.machine,
            estimated(each.before.point.speedup),
            estimated(each.now.point.speedup),
            estimated(each.value, lambda value: f"{100 * value:+.0f}"),
            _runs(each),
            each.verdict,
        ]
        for each in found
    )
    headings = ["Configuration", f"Machine in {before}", f"Machine in {now}", f"Speed-up in {before}"]
    headings += [f"Speed-up in {now}", "Change in %", "Runs", "Verdict"]
    label = "Speed-ups in both versions"
    return html_table(headings, rows, label=label, num_text_columns=3, text_headings=("Runs", "Verdict"))


def _runs(change: Change) -> str:
    points = [change.before.point, change.now.point]
    return rounds_text([point.runs for point in points])


def _conditions(found: Sequence[Condition], version: Version, *, label: str, name: Callable[[Condition], Cell]) -> Html:
    return html_table(
        [label, version.older[0].name, version.name, "Changed"],
        ([name(each), each.before, each.now, CHANGED[each.has_changed]] for each in found),
        label=label,
        num_text_columns=4,
    )


def _plain(condition: Condition) -> Cell:
    return condition.name


def _release(condition: Condition) -> Cell:
    address = RELEASES.get(condition.name)
    return link(condition.name, address) if address else condition.name


def _compared(old: ResultSet, new: ResultSet, before: Version) -> list[Displayed]:
    found = compared_sets(old, new)
    if found is None:
        return [paragraph(f"The campaign {new.name} of version {before.name} is of somebody else.")]
    if not found.cases:
        return [paragraph("No case is in both, so nothing was compared.")]
    table = html_table(
        ["Case", "Before in s", "Now in s", "Change of time", "Interval", "Verdict", "Because"],
        (_row(case) for case in found.cases),
        label=f"{new.name} since {before.name}",
        text_headings=("Verdict", "Because"),
    )
    either = {"Only before": found.only_before, "New": found.only_after}
    return [table, *(paragraph(f"{text}: {', '.join(names)}.") for text, names in either.items() if names)]


def _row(case: CaseComparison) -> list[str]:
    change, interval = MISSING, MISSING
    if case.change is not None:
        change = f"{case.change.value:+.1%}"
        if case.change.interval is not None:
            interval = "{:+.1%} to {:+.1%}".format(*case.change.interval)
    differences = "; ".join(f"{item.name}: {item.before}, now {item.after}" for item in case.differences)
    reason = f"{case.reason}. {differences}" if differences else case.reason
    return [case.case_id, seconds(case.before_time_s), seconds(case.after_time_s), change, interval, case.word, reason]
