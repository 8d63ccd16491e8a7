"""Every measured number on a page is a row of the table of figures: the page names the row, and has its value."""

import html
import json
import re
from collections.abc import Collection, Mapping
from typing import Any, Final

import jupytext
import numpy as np
import pytest

import reports.sets.version
from reports.data.columns import RUN_COLUMNS, WORK
from reports.figures import coverage
from reports.figures.compare import Row
from reports.figures.published import read_published
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.version import Version
from reports.site.cells import output_of
from reports.site.contents import page_sources
from reports.verification.first import read_weaknesses
from suite.files.paths import ROOT
from tests.fixtures.results.committed_results import committed_version, newest_version
from tests.reports.site.test_words_of_frames import said_of_frames

FIGURE: Final = re.compile(r'<data value="([^"]*)">(.*?)</data>', re.DOTALL)
CHART: Final = re.compile(
    r'<figure class="vega-figure" id="([^"]*)".*?<script type="application/json">(.*?)</script>', re.DOTALL
)
EXPLORE: Final = re.compile(r'<div class="explore">.*<script type="application/json">(.*?)</script>', re.DOTALL)
UNSEEN: Final = re.compile(r"<(script|style|svg|code|pre)\b.*?</\1>|<[^>]+>", re.DOTALL)
TABLE: Final = re.compile(r"<thead>(.*?)</thead>(.*?)</table>", re.DOTALL)
CELL: Final = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.DOTALL)
_COUNT: Final = r"(?<![\d.,])\d[\d,]*"
_COUNTS: Final = rf"{_COUNT}(?:(?:, | and | to ){_COUNT})*"
_VERSION: Final = r"\d+(?:\.\d+)+"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_SPELLED: Final = "one|two|three|four|five|six|seven|eight|nine|ten|sixteen|dozens?|hundred|thousand|million|half"
IN_WORDS: Final = re.compile(
    rf"\btwice (?:as|the)\b|\b(?:{_SPELLED})(?:[ -]\w+)? (?:times|percent|per cent)\b", re.IGNORECASE
)
DRAWN: Final = re.compile(r"<(script|svg)\b.*?</\1>", re.DOTALL)
BLOCK: Final = re.compile(r"</?(?:p|li|td|th|tr|h\d|div|figcaption|summary|label|option|text)\b[^>]*>")
SHARE: Final = "h200-x4/ant-weak/rl_games-kitless-n4096-1x4/share_kept"
# What is in digits on a page and is no measurement: nothing else. A cell has the heading of its column after it.
NO_MEASUREMENT: Final[Mapping[str, str]] = {
    "dates": rf"(?:\d+ to )?\d+ {_MONTH}(?: 20\d\d)?(?:, \d\d:\d\d)?|20\d\d-\d\d-\d\d",
    "GPUs": rf"{_COUNTS} (?:H[12]00 (?:80GB HBM3 )?)?GPUs?\b",
    "nodes and processes": rf"{_COUNTS} (?:(?:simulated )?nodes?|process(?:es)?|ranks|cores)\b",
    "GPUs of a list": r"\bon \d{1,2}(?![\d.])|\b\d{1,2} x |\b\d+ vCPU\b|\(\d+ CPUs\)",
    "work of a run": rf"{_COUNTS} (?:environments?|iterations|(?:optimiser )?steps|trainings?)\b",
    "environments of a run": rf"{_COUNTS} (?:per GPU|in total|on each|in place of)\b",
    "environments of each": rf"{_COUNT} per (?:training|process)\b",
    "work in a cell": rf"{_COUNTS}(?:, as shipped|, wide| (?:Environments|Million frames|Processes|Ranks|From|To)\b)",
    "settings": rf"Environments, {_COUNTS}|(?:Ant|Cartpole), {_COUNT}(?=$|, PhysX| Task and library)",
    "what a task is": r"(?:observes|with|and) [\dx]+ numbers?|physics step is [\d.]+ ms|lasts \d+ of them",
    "packages": rf"(?:Isaac Lab|Isaac Sim|Newton|Warp) {_VERSION}(?: and {_VERSION})?",
    "versions": r"\b20\d\d\.\d+\b|\b\d+(?:\.\d+){2,}",
    "hashes": r"\b(?:[0-9a-f]{12}|[0-9a-f]{64})\b",
    "ids and names": r"(?<![\w.])[A-Za-z_][\w./:-]*\d[\w./-]*|\b80GB\b|RTX (?:PRO )?\d+|\bseed \d+",
    "what is listed": rf"{_COUNT} (?:of {_COUNT} )?(?:configurations?|[Mm]achines|[Rr]uns|Late)\b",
    "what is stored": rf"{_COUNT} (?:[Ff]iles|sets|packages|MB)\b",
    "marks of a rise": r"\bat (?:(?:60|70|80|90|95|97)(?:, | and | %(?=,| of)))+",
    "rules": r"(?:95|90|80|50) ?% (?:interval|of|by)|(?:at least|below|of) 80 %|at most 5 %|over 1\.3 times|3,600",
    "slopes": r"1 is in proportion|0 is not at all|0\.5 is assumed",
}


@pytest.fixture(scope="module")
def rows() -> Mapping[str, Row]:
    """The figures of all versions by id."""
    return {**coverage.stored(), **rows_by_id(committed_version()), **rows_by_id(newest_version())}


@pytest.fixture(scope="module")
def pages() -> Mapping[str, str]:
    """The markup of each page of the newest version: what its cells show, and its own text."""
    namespace: dict[str, Any] = {}
    shown = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reports.sets.version, "version_of_page", newest_version)
        for name, text in page_sources(newest_version()).items():
            parts = []
            for cell in jupytext.reads(text, fmt="md:myst").cells:
                output = (
                    output_of(cell.source, namespace) if cell.cell_type == "code" else {"text/html": prose(cell.source)}
                )
                parts.append(output["text/html"] if output else "")
            shown[name] = "\n".join(parts)
    return shown


def prose(markdown: str) -> str:
    """A text without code and addresses of links."""
    return re.sub(r"```.*?```|`[^`]*`|(?<=\])\([^)]*\)|^ {4}[^\n]*$", " ", markdown, flags=re.DOTALL | re.MULTILINE)


# --- text and tables ---


def test_every_number_of_a_page_is_a_figure(pages: Mapping[str, str]) -> None:
    quoted = quotations(newest_version())
    typed = {name: numbers(markup, quoted) for name, markup in pages.items()}
    assert {name: digits[:20] for name, digits in typed.items() if digits} == {}


def test_no_number_is_typed_into_the_text_of_a_page() -> None:
    """Of every page, also of those that the newest version does not show; in digits or in words."""
    texts = {path.name: prose(path.read_text(encoding="utf-8")) for path in (ROOT / "reports" / "pages").glob("*.md")}
    assert texts.keys() >= {"home.md", "what_worked.md"}
    typed = {name: [*numbers(text), *in_words(text)] for name, text in texts.items()}
    assert {name: results for name, results in typed.items() if results} == {}


def in_words(text: str) -> list[str]:
    return [words.group() for words in IN_WORDS.finditer(text)]


def test_a_number_in_words_is_found() -> None:
    assert in_words("Three times as many frames, twice the power; half a percent. Both run twice, on two GPUs.") == [
        "Three times", "twice the", "half a percent",
    ]  # fmt: skip


def test_no_page_says_sooner_of_frames(pages: Mapping[str, str]) -> None:
    texts = [
        html.unescape(UNSEEN.sub(" ", text)) for page in pages.values() for text in BLOCK.split(DRAWN.sub(" ", page))
    ]
    assert any("sooner" in text for text in texts)  # of a reward
    assert [sentence for text in texts for sentence in said_of_frames(text)] == []


def quotations(version: Version) -> list[str]:
    """What others wrote, and stored texts that a page repeats."""
    published = read_published()
    of_others = [text for own in published.source for text in (own.title, own.author, own.date, own.terms, own.gpu)]
    of_others += [table.title for table in published.table]
    runs = runs_of(version).every
    stored = (str(text) for name in ("reason", "cpu_model", "driver") for text in runs[name].drop_nulls().unique())
    weaknesses = (
        text for own in read_weaknesses(version.folder) for text in (own.what, own.why, own.got.partition(", as ")[0])
    )
    meanings = (column.meaning for column in RUN_COLUMNS)
    return sorted({*of_others, *stored, *weaknesses, *meanings}, key=len, reverse=True)


def numbers(markup: str, quoted: Collection[str] = ()) -> list[str]:
    """What is in digits outside of figures and is no name of a thing, with the words around it."""
    shown = TABLE.sub(lambda table: with_headings(*table.groups()), FIGURE.sub(" ", markup))
    text = " ".join(html.unescape(UNSEEN.sub(" ", shown)).split())
    for quotation in quoted:
        text = text.replace(" ".join(quotation.split()), " ")
    for pattern in NO_MEASUREMENT.values():
        text = re.sub(pattern, " ", text)
    return [text[max(0, digit.start() - 30) : digit.end() + 30] for digit in re.finditer(r"\d[\d.,]*", text)]


def with_headings(head: str, body: str) -> str:
    """The cells of a table, each before the heading of its column."""
    headings = CELL.findall(head)
    return " ; ".join(
        f"{cell} {heading}"
        for line in body.split("<tr")
        for cell, heading in zip(CELL.findall(line), headings, strict=False)
    )


@pytest.mark.parametrize(
    ("markup", "typed"),
    [
        ("<p>A second GPU makes 7 more.</p>", 1),
        ("<p>6 of 8 clear, at 97.1 % of h200-x2</p>", 3),
        ("<table><thead><tr><th>GPUs</th><th>Speed</th></tr></thead><tr><td>4</td><td>512</td></tr></table>", 1),
        ('<p><data value="a/b">1.94</data> on 4 GPUs with 1,024 environments, Isaac Lab 3.0.0, 30 Nov 2026</p>', 0),
    ],
)
def test_a_bare_number_of_a_page_is_found(pages: Mapping[str, str], markup: str, typed: int) -> None:
    assert len(numbers(pages["findings"] + markup)) == typed


def test_a_figure_has_the_value_of_its_row(pages: Mapping[str, str], rows: Mapping[str, Row]) -> None:
    shown = [(name, figure, text) for name, markup in pages.items() for figure, text in FIGURE.findall(markup)]
    assert len(shown) > 100
    assert [item for item in shown if not is_of(rows.get(html.unescape(item[1])), item[2])] == []


def is_of(row: Row | None, text: str) -> bool:
    """Whether the text has the value of the row with its interval, rounded, or how many runs it is of.

    The value may be in percent, the hours of a training where the row has trainings in an hour, or what a core twice as
    fast makes where it has a slope.
    """
    digits = re.findall(r"([-+]?[\d,]+(?:\.(\d+))?)", text)
    if row is None or not digits:
        return False
    shown = [(float(number.replace(",", "")), 0.51 * 10 ** -len(decimals)) for number, decimals in digits]
    values = [row[end] for end in ("value", "low", "high") if row.get(end) is not None][: len(shown)]
    turned, twice = ([1 / value if value else 0 for value in values], [2 ** min(1, value) for value in values])
    forms = [values, [100 * value for value in values], turned, twice, [row.get("runs", 0)]]
    return any(
        len(form) == len(shown)
        and all(abs(value - number) <= half for value, (number, half) in zip(form, shown, strict=True))
        for form in forms
    )


# --- charts, Explore and the calculator ---

PLACES: Final = {"at", "top", "place"}  # fields that say where a label or a row is drawn
LEARNING: Final = "-learning"  # a chart of rewards: each point is a stored sample, or the median of several runs'


def test_every_number_of_a_chart_is_a_figure(pages: Mapping[str, str], rows: Mapping[str, Row]) -> None:
    charts = [chart for markup in pages.values() for chart in CHART.findall(markup) if not chart[0].endswith(LEARNING)]
    assert len(charts) > 10
    values, work = values_of(rows), work_of(newest_version())
    wrong = {name: bad[:5] for name, spec in charts if (bad := untold(json.loads(spec), values, work))}
    assert wrong == {}


def values_of(rows: Mapping[str, Row]) -> list[float]:
    """What a chart may draw: values and ends of figures, and the parts of an iteration in seconds."""
    values = [row[end] for row in rows.values() for end in ("value", "low", "high") if row.get(end) is not None]
    shares = [(name.rpartition("/")[0], row["value"]) for name, row in rows.items() if name.endswith("_share")]
    times = {start: row["value"] for start, _ in shares if (row := rows.get(f"{start}/iteration_s"))}
    return values + [times[start] * share for start, share in shares if start in times]


def work_of(version: Version) -> set[int]:
    """The numbers that describe the work of a run, such as its environments."""
    frames = [runs_of(own).every.select(column.name for column in WORK) for own in (version, *version.older)]
    of_others = {row.gpus for table in read_published().table for row in table.rows}
    return of_others | {
        value for frame in frames for row in frame.unique().iter_rows() for value in row if isinstance(value, int)
    }


def untold(spec: Mapping[str, Any], values: Collection[float], work: Collection[int]) -> list[Any]:
    """The points of a chart with a number that is neither a figure nor work."""
    figures = np.sort(np.array([*values, 1.0]))
    return [point for points in spec["datasets"].values() for point in points if not is_told(point, figures, work)]


def nearest(figures: Any, value: float) -> float:
    return float(figures[np.abs(figures - value).argmin()])


def is_told(point: Mapping[str, Any], figures: Any, work: Collection[int]) -> bool:
    values = {name: value for name, value in point.items() if name not in PLACES and type(value) in (int, float)}
    if "baseline" in values and values["y"] == values["x"] / values["baseline"]:  # the ideal
        del values["y"]
    if "x2" in values:  # a part of a bar
        values = {"part": values["x2"] - values["x"]}
    texts = {name: value for name, value in point.items() if isinstance(value, str)}
    label = texts.pop("text", texts.pop("total", ""))
    if label and "label" in texts:
        label, _, place = " ".join(label.split()).removesuffix(texts["label"]).partition(" at ")
        place = place.partition(":")[0].removesuffix(" predicted")
        texts["place"] = "" if place == f"{values.get('x', 0):,.0f}" else place
        texts["text"] = "" if is_of({"value": nearest(figures, values["y"])}, label) else label
    is_known = (
        value in work
        if isinstance(value, int)
        else abs(nearest(figures, value) - value) < 1e-5 * point.get("x2", abs(value))
        for value in values.values()
    )
    return all(is_known) and not any(numbers(html.escape(text)) for text in texts.values())


def test_a_bare_number_of_a_chart_is_found(rows: Mapping[str, Row]) -> None:
    values, share = values_of(rows), rows[SHARE]["value"]
    told = {"label": "rl_games", "x": 4, "y": share, "text": f"{100 * share:.0f}% at 4: rl_games", "at": 0.123}
    assert untold({"datasets": {"a": [told]}}, values, {4}) == []
    for changed in (
        {"y": 0.123},
        {"x": 3},
        {"text": "12% at 4: rl_games"},
        {"text": told["text"].replace("4:", "2:")},
        {"label": "rl_games, 12 %"},
    ):
        assert untold({"datasets": {"a": [{**told, **changed}]}}, values, {4}) != [], changed


def test_explore_and_the_calculator_have_figures(pages: Mapping[str, str], rows: Mapping[str, Row]) -> None:
    (text,) = EXPLORE.findall(pages["explore"])
    shown = json.loads(text)
    keys = [metric["key"] for metric in shown["metrics"]]
    figures = [
        (f"{point['key']}/{key}", figure)
        for point in shown["points"]
        for key, figure in zip(keys, point["figures"], strict=True)
        if figure
    ]
    assert len(figures) > 1000
    assert [figure for figure in figures if not is_of(rows.get(figure[0]), figure[1])] == []
    (text,) = re.findall(r'data-trainings="([^"]*)"', pages["index"])
    values = {row[end] for row in rows.values() for end in ("value", "low", "high") if end in row}
    times = [number for training in json.loads(html.unescape(text)) for row in training["rows"] for number in row[1:]]
    assert set(times) <= values
