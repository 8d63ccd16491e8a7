"""Values, paragraphs and tables as HTML. Pure.

Every table is read in a browser and by screen readers, so cells say their unit in the heading and ``n/a`` where nothing
was measured.
"""

import html
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reports.figures.columns import COLUMNS, Rounding, column_of
from reports.figures.lines import estimate
from suite.files.wording import counted, three_digits
from suite.statistics.intervals import Estimate

MISSING = "n/a"
MAX_COLUMNS, MAX_TEXT_COLUMNS = 16, 6  # that report.css knows
_REGION = 'role="region" aria-label="'
_BEGIN, _MIDDLE, _END = "\ue000", "\ue001", "\ue002"  # of a figure in a text: its id, then what is shown
_FIGURE = re.compile(f"{_BEGIN}(.*?){_MIDDLE}(.*?){_END}")
_NUMBER = re.compile(r"\d[\d.,]*")
_VALUE = re.compile(f"({_BEGIN}[^{_END}]*{_END}|{_NUMBER.pattern})( [^ ]+)?|{MISSING}|")
_LONG_NAME = re.compile(r"\b[a-z_]+(?:\.\w+){2,}")


@dataclass(frozen=True, kw_only=True)
class Html:
    """Markup with the text a terminal would show instead; a notebook displays it."""

    markup: str
    text: str

    def __post_init__(self) -> None:
        """Give every figure its element in the markup, and keep ``%`` on its line; the text has neither."""
        object.__setattr__(self, "markup", _FIGURE.sub(_element, self.markup))
        object.__setattr__(self, "text", _FIGURE.sub(r"\2", self.text))

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.markup, "text/plain": self.text}


def _element(figure: re.Match[str]) -> str:
    text = figure[2].replace(" %", "\u00a0%")
    return f'<data value="{figure[1]}">{text}</data>'


type Cell = str | Html  # text is escaped


# --- values as text ----------------------------------------------------------------------------------------------


ROUNDINGS: Final[Mapping[Rounding, Callable[[float], str]]] = {
    "count": "{:,.0f}".format,
    "digits": three_digits,
    "ratio": lambda value: f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}",  # noqa: PLR2004 - needs more digits
    "percent": lambda value: f"{100 * value:.1f} %",
    "signed": lambda value: f"{100 * value:+.1f} %",
    "hundredths": lambda value: f"{100 * value:+.2f} %",
}


def estimated(value: Estimate | None, text: Callable[[float], str] = ROUNDINGS["ratio"]) -> str:
    """``1.90``, or ``1.90 (1.85 to 1.93)`` where the interval is known."""
    if value is None:
        return MISSING
    low_high = value.interval
    return text(value.value) + ("" if low_high is None else f" ({text(low_high[0])} to {text(low_high[1])})")


def measured(
    figure: Mapping[str, Any] | None, text: Callable[[float], str] | None = None, *, has_interval: bool = True
) -> str:
    """A row of the table of figures as text: its value, with its interval where it has one.

    ``text``: in place of the rounding of its column. The id of the row goes with the text through sentences and cells;
    ``Html`` makes it an element ``data``, so that a test can tell a figure from a number that somebody typed or
    computed.
    """
    if figure is None:
        return MISSING
    shown = estimate(figure) if has_interval else Estimate(value=figure["value"], interval=None)
    return f"{_BEGIN}{figure['id']}{_MIDDLE}{estimated(shown, text or rounding_of(figure))}{_END}"


def runs_in(figure: Mapping[str, Any], noun: str = "") -> str:
    """How many runs a figure is of, as a number or in words; with its id, as ``measured``."""
    shown = counted(figure["runs"], noun) if noun else str(figure["runs"])
    return f"{_BEGIN}{figure['id']}{_MIDDLE}{shown}{_END}"


def rounding_of(figure: Mapping[str, Any]) -> Callable[[float], str]:
    """How a figure is rounded wherever it is shown."""
    return ROUNDINGS[column_of(figure["id"]).rounding]


def span(figures: Collection[Mapping[str, Any]]) -> str:
    """Return the least and the greatest of some rows of the table of figures: ``1.03 to 2.50``."""
    least, most = (end(figures, key=lambda figure: float(figure["value"])) for end in (min, max))
    text, shown = rounding_of(least), measured(least, has_interval=False)
    is_one = text(least["value"]) == text(most["value"])
    return shown if is_one else f"{shown} to {measured(most, has_interval=False)}"


# --- tables ------------------------------------------------------------------------------------------------------


def html_table(headings: Sequence[str], rows: Iterable[Sequence[Cell]], *, label: str) -> Html:
    """A table in a region that scrolls sideways. The first cell of a row is its heading.

    The name of a column of figures, as a heading, becomes its title and unit, with its help. Columns of numbers are
    told from those of words by what is in them.
    """
    rows = [list(row) for row in rows]
    if len(headings) > MAX_COLUMNS:
        raise ValueError(f"{len(headings)} columns: report.css knows fewer; add them there")
    columns = [COLUMNS.get(heading) for heading in headings]
    names = [column.heading if column else heading for column, heading in zip(columns, headings, strict=True)]
    are_words = [not all(_is_value(row[place]) for row in rows) for place in range(len(headings))]
    num_words = max(1, next((place for place, is_word in enumerate(are_words) if not is_word), len(names)))
    num_words = num_words if num_words == len(names) else min(num_words, MAX_TEXT_COLUMNS)
    kinds = [' class="words"' if is_word and place >= num_words else "" for place, is_word in enumerate(are_words)]
    helps = [f' title="{html.escape(column.help)}"' if column and column.help else "" for column in columns]
    head = "".join(
        f'<th scope="col"{kind}{meaning}>{html.escape(name)}</th>'
        for kind, meaning, name in zip(kinds, helps, names, strict=True)
    )
    # On a phone a row is a block of its own, whose lines begin with the headings: report.css takes them from here, so
    # that not every cell has to have its own. The first cell says what it is itself, but for a bare number.
    shown = list(enumerate(names, start=1))[0 if any(_is_number(row[0]) for row in rows) else 1 :]
    style = ";".join(f"--h{index}:{json.dumps(name, ensure_ascii=False)}" for index, name in shown)
    body = "".join(f"<tr>{_cells(row, kinds)}</tr>\n" for row in rows)
    markup = (
        f'<div class="scroll" tabindex="0" {_REGION}{html.escape(label)}">'
        f'<table class="words-{num_words}" style="{html.escape(style)}"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>"
    )
    lines = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in rows]
    return Html(markup=markup, text="\n".join("\t".join(line) for line in [names, *lines]))


def _cells(row: Sequence[Cell], kinds: Sequence[str]) -> str:
    first, *rest = row
    # A case id may break after its series.
    heading = html.escape(first).replace("/", "/<wbr>", 1) if isinstance(first, str) else first.markup
    cells = "".join(f"<td{kind}>{_markup(cell)}</td>" for kind, cell in zip(kinds[1:], rest, strict=True))
    kind = ' class="number"' if _is_number(first) else ""
    return f'<th scope="row"{kind}>{heading}</th>{cells}'


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, str) and _NUMBER.fullmatch(cell) is not None


def _is_value(cell: Cell) -> bool:
    """Whether a cell has a number or a figure, with a unit at most, or lacks it."""
    return isinstance(cell, str) and _VALUE.fullmatch(cell) is not None


def _markup(cell: Cell) -> str:
    if not isinstance(cell, str):
        return cell.markup
    if _BEGIN in cell:
        # On a phone a cell spreads its parts over its width, so that several need to be one.
        return html.escape(cell) if _FIGURE.fullmatch(cell) else f"<span>{html.escape(cell)}</span>"
    # The name of a setting may break after its dots.
    return _LONG_NAME.sub(lambda name: name[0].replace(".", ".<wbr>"), html.escape(cell))


def paragraph(text: str) -> Html:
    return Html(markup=f"<p>{html.escape(text)}</p>", text=text)


def answer_of_page(text: str) -> Html:
    """The sentence that a page opens with."""
    return Html(markup=f'<p class="answer">{html.escape(text)}</p>', text=text)


def together(parts: Iterable[Html]) -> Html:
    """Several things, one below the other."""
    parts = list(parts)
    return Html(markup="\n".join(part.markup for part in parts), text="\n".join(part.text for part in parts))


def heading(title: str, *, depth: int = 3, anchor: str) -> Html:
    """A page's contents list it if it has depth 2. Its ``anchor`` is unique on the page."""
    shown = html.escape(title)
    to_here = f'<a class="anchor" href="#{anchor}" aria-label="Link to section: {shown}">#</a>'
    return Html(markup=f'<h{depth} id="{anchor}">{shown}{to_here}</h{depth}>', text=title)


def fold(summary: str, parts: Iterable[Html]) -> Html:
    """Closed until a reader opens it, or follows an address within it or of the heading above; open in print."""
    inside = together(parts)
    return Html(
        markup=f'<details class="fold"><summary>{html.escape(summary)}</summary>\n{inside.markup}\n</details>',
        text=f"{summary}\n{inside.text}",
    )


def bullets(items: Iterable[Cell]) -> Html:
    items = list(items)
    markup = "".join(f"<li>{_markup(item)}</li>" for item in items)
    return Html(
        markup=f"<ul>{markup}</ul>", text="\n".join(item if isinstance(item, str) else item.text for item in items)
    )


def commands(sessions: Iterable[str]) -> Html:
    """Lines to type, each a session of nox."""
    text = "\n".join(f"python3 -m nox -s {session}" for session in sessions)
    return Html(markup=f'<pre tabindex="0"><code>{html.escape(text)}</code></pre>', text=text)


def machine_cell(name: str) -> Html:
    """The name of a machine in a table, wide enough for its parts."""
    return Html(markup=f'<span class="machine">{html.escape(name)}</span>', text=name)


def link(text: str, address: str) -> Html:
    return Html(markup=f'<a href="{html.escape(address)}">{html.escape(text)}</a>', text=text)
