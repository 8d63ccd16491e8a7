"""A comparison in words: a table, the reason of each verdict, and what only one side has.

Results come from anybody, so every text that stands in them is shown in Markdown as code, each of its special
characters as a number: it can be no markup, link, mention, reference or end of a table's cell. ``.github/comment.cjs``
posts only what has this form, and nothing else.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, get_args

from rich.console import Console

from reports.compare.comparison import Compared, Comparison, Word
from reports.data.facts import NOT_STATED
from reports.display.html import MISSING, estimated
from suite.files.wording import counted
from suite.options.command_line import say

HEADINGS: Final = ("Configuration", "Verdict", "Before in s", "After in s", "Times the frames/s", "Runs")
MAX_NAMED: Final = 12  # differences of a configuration, or configurations of one side; there may be hundreds
MAX_TEXT: Final = 200  # characters of one text of the results
WORDS: Final[Sequence[Word]] = get_args(Word.__value__)  # what must be looked at stands first
_STYLES: Final = {HEADINGS[1]: "bold", "slower": "red", "failed": "red", "incomparable": "magenta", "faster": "green"}
_SAFE: Final = re.compile(r"[A-Za-z0-9 ,/+=%-]", re.ASCII)


def show(comparison: Comparison, console: Console) -> None:
    """Print it. Names are the last column, since many are longer than what is left of a line."""
    rows = [HEADINGS, *map(_cells, comparison.configurations)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][1:]
    for name, *rest in rows if comparison.configurations else ():
        cells = (cell.ljust(width) for cell, width in zip(rest, widths, strict=True))
        say(console, "  ".join([*cells, name]), style=_STYLES.get(rest[0]))
    say(console, f"\n{_numbers(comparison)}\n")
    for compared in comparison.configurations:
        for line in _reasons(compared, str):
            say(console, line)
    for text in _notes(comparison, str):
        say(console, text)


def markdown(comparison: Comparison) -> str:
    """Return it for a comment on GitHub, what must be looked at first."""
    by_word = sorted(comparison.configurations, key=lambda compared: WORDS.index(compared.word))
    parts = [_numbers(comparison)]
    if by_word:
        reasons = [line for compared in by_word for line in _reasons(compared, code)]
        parts += [
            markdown_table(HEADINGS, ([code(name), *rest] for name, *rest in map(_cells, by_word))),
            "\n".join(["<details><summary>Why</summary>", "", *reasons, "", "</details>"]),
        ]
    return "\n\n".join([*parts, *_notes(comparison, code)]) + "\n"


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, ["---"] * len(headings), *rows))


def code(text: str) -> str:
    """``text`` as code, in one line, whatever it holds. Characters that cannot be seen become question marks."""
    line = "".join(character if character.isprintable() else "?" for character in text)
    if len(line) > MAX_TEXT:
        line = line[: MAX_TEXT - 3] + "..."
    shown = (character if _SAFE.fullmatch(character) else f"&#{ord(character)};" for character in line)
    return f"<code>{''.join(shown)}</code>"


def _numbers(comparison: Comparison) -> str:
    """How many have each verdict, such as ``1 slower, 4 unchanged``."""
    if not comparison.configurations:
        return "No configuration is in both, so nothing was compared."
    numbers = Counter(compared.word for compared in comparison.configurations)
    return ", ".join(f"{numbers[word]} {word}" for word in WORDS if numbers[word]) + "."


def _cells(compared: Compared) -> list[str]:
    times = [MISSING if time_s is None else f"{time_s:.4g}" for time_s in compared.iteration_s]
    runs = ", ".join(map(str, compared.runs))
    return [compared.configuration, compared.word, *times, estimated(compared.ratio), runs]


def _reasons(compared: Compared, shown: Callable[[str], str]) -> Iterator[str]:
    """Yield lines. ``shown`` makes a text of the results fit for where it is read."""
    yield f"- {shown(compared.configuration)}: {compared.word}, {compared.reason}"
    of_both = {name: values for name, values in compared.refused.items() if NOT_STATED not in values}
    for name, (before, after) in list(of_both.items())[:MAX_NAMED]:
        yield f"  - {shown(name)}: {shown(before)} before, {shown(after)} after"
    if len(of_both) > MAX_NAMED:
        yield f"  - and {len(of_both) - MAX_NAMED} more; JSON has all"
    for name, (before, after) in compared.declared.items():
        yield f"  - as declared, {shown(name)}: {shown(before)} before, {shown(after)} after"
    for subject, differences in (("work", compared.refused), ("machine and software", compared.unstated)):
        for place, side in enumerate(("before", "after")):
            if names := [shown(name) for name, values in differences.items() if values[place] == NOT_STATED]:
                yield f"  - {counted(len(names), 'fact')} of the {subject} not stated {side}: {_first(names)}"


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more; JSON has all" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _notes(comparison: Comparison, shown: Callable[[str], str]) -> Iterator[str]:
    for title, names in (("Only before", comparison.only_before), ("Only after", comparison.only_after)):
        if names:
            yield f"{title}: {_first([*map(shown, names)])}."
    yield (
        "Times the frames/s: after over before, below 1 is slower. Seconds are of an iteration. Changes below"
        f" {comparison.threshold:.1%} do not count. How far machines and days lie apart is not in an interval."
    )
