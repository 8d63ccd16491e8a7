"""A comparison as Markdown for a comment on GitHub. Pure.

Results come from anybody, so every text that stands in them is shown as code, each of its special characters as a
number: it can be no markup, link, mention, reference or end of a table's cell. ``.github/comment.cjs`` posts only what
has this form, and nothing else.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from reports.display.html import estimated
from reports.topics.history.changed_sets import ChangedSet, Look
from reports.topics.history.comparison import BETWEEN_CAMPAIGNS, CaseComparison, Comparison
from reports.topics.history.likeness import Difference
from suite.files.wording import counted

MISSING: Final = "n/a"
MAX_TEXT: Final = 200  # characters of one text of the results
MAX_FAULTS: Final = 12  # of one set
MAX_DIFFERENCES: Final = 12  # of one case
MAX_CHARACTERS: Final = 50_000  # GitHub takes 65,536
_SAFE: Final = re.compile(r"[A-Za-z0-9 ,/+=%-]", re.ASCII)

# What must be looked at stands first.
_WORDS: Final = ("regression", "failed", "incomparable", "within noise", "too few runs", "improvement", "unchanged")


def code(text: str) -> str:
    """``text`` as code, in one line, whatever it holds. Characters that cannot be seen become question marks."""
    line = "".join(character if character.isprintable() else "?" for character in text)
    if len(line) > MAX_TEXT:
        line = line[: MAX_TEXT - 3] + "..."
    shown = (character if _SAFE.fullmatch(character) else f"&#{ord(character)};" for character in line)
    return f"<code>{''.join(shown)}</code>"


def changes(found: Sequence[ChangedSet]) -> str:
    """One section for each set that a change adds, changes or removes; too many are counted only."""
    if not found:
        return "No result set is added, changed or removed.\n"
    text = ""
    for index, one in enumerate(found):
        section = f"{_title(one)}\n\n{_body(one)}\n"
        if len(text) + len(section) > MAX_CHARACTERS:
            return text + f"Left out, as a comment has no room for them: {counted(len(found) - index, 'more set')}.\n"
        text += section
    return text


def comparison(found: Comparison) -> str:
    """Counts, a table of the cases, and the reason of each verdict."""
    if not found.cases:
        parts = ["No case is in both, so nothing was compared."]
    else:
        counted = Counter(case.word for case in found.cases)
        parts = [
            ", ".join(f"{counted[word]} {word}" for word in _WORDS if counted[word]) + ".",
            _table(_by_word(found.cases)),
            _folded("Why", (line for case in _by_word(found.cases) for line in _reasons(case))),
        ]
    for title, names in (("Only before", found.only_before), ("Only after", found.only_after)):
        if names:
            parts.append(f"{title}: {', '.join(code(name) for name in names)}.")
    return "\n\n".join([*parts, _allowance(found)]) + "\n"


def _title(one: ChangedSet) -> str:
    since = f", since {code(one.since)}" if one.since and one.since != one.name else ""
    return f"### {code(one.name)}, {one.kind}{since}"


def _body(one: ChangedSet) -> str:
    look = f"{_look(one.look)}\n\n" if one.look else ""
    if one.comparison is not None:
        return look + comparison(one.comparison)
    return look + (f"{one.reason} {code(one.error)}\n" if one.error else f"{one.reason}\n")


def _look(look: Look) -> str:
    """The verifier's word, and the rows of the first page."""
    verified = look.verified
    read = f"{counted(verified.cases, 'case')}, {counted(verified.rounds, 'round')}, {verified.samples:,} samples"
    faults = verified.findings
    word = f"{counted(len(faults), 'fault')}" if faults else "nothing differs"
    shown = "".join(f"\n- {code(str(fault))}" for fault in faults[:MAX_FAULTS])
    if len(faults) > MAX_FAULTS:
        shown += f"\n- and {len(faults) - MAX_FAULTS} more"
    said = f"Computed again from the samples: {read}: {word}.{shown}"
    if not look.lines:
        return f"{said}\n\nNo machine of it ran on one GPU and on several, so the first page has no line of it."
    rows = [
        f"| {code(f'{line.task}, {line.library}, {line.work}')} | {code(line.machine)} | {point.gpus}"
        f" | {estimated(point.speedup)} | {point.runs} |"
        for line in look.lines
        for point in line.points[1:]
    ]
    head = "| As the first page will show it | Machine | GPUs | Speed-up | Runs |\n| --- | --- | ---: | ---: | --- |"
    return "\n".join([said, "", head, *rows])


def _by_word(cases: Sequence[CaseComparison]) -> list[CaseComparison]:
    return sorted(cases, key=lambda case: (_WORDS.index(case.word), case.case_id))


def _table(cases: Sequence[CaseComparison]) -> str:
    head = "| Case | Verdict | Before in s | After in s | Change of time | Interval | Rounds |"
    lines = [head, "| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    return "\n".join([*lines, *(_row(case) for case in cases)])


def _row(case: CaseComparison) -> str:
    times = [MISSING if time_s is None else f"{time_s:.4g}" for time_s in (case.before_time_s, case.after_time_s)]
    change = interval = MISSING
    if case.change is not None:
        change = f"{case.change.value:+.1%}"
        if case.change.interval is not None:
            interval = "{:+.1%} to {:+.1%}".format(*case.change.interval)
    cells = [code(case.case_id), case.word, *times, change, interval, f"{case.before_rounds}, {case.after_rounds}"]
    return f"| {' | '.join(cells)} |"


def _reasons(case: CaseComparison) -> Iterator[str]:
    # That of a refused case is the list of the names that follow.
    yield f"- {code(case.case_id)}: {'differs' if case.differences else case.reason}"
    shown = case.differences[:MAX_DIFFERENCES]
    yield from (_difference(item) for item in shown)
    if len(shown) < len(case.differences):
        yield f"  - and {len(case.differences) - len(shown)} more"


def _difference(item: Difference) -> str:
    return f"  - {code(item.name)}: {code(item.before)} before, {code(item.after)} after"


def _folded(title: str, lines: Iterator[str]) -> str:
    return "\n".join([f"<details><summary>{title}</summary>", "", *lines, "", "</details>"])


def _allowance(found: Comparison) -> str:
    return f"Above 0 is slower. Threshold {found.threshold:.1%}. {BETWEEN_CAMPAIGNS}"
