"""Every measured number on a page is a row of the table of figures: the page names the row, and has its value."""

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jupytext
import pytest

from reports.data.columns import WORK
from reports.figures import coverage
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.version import Version, hand_on, read_version, version_of_page
from reports.site.cells import output_of
from reports.site.contents import page_sources
from suite.files.paths import ROOT
from tests.fixtures.results.committed_results import RESULTS, committed_version

FIGURE: Final = re.compile(r'<data value="([^"]*)">(.*?)</data>', re.DOTALL)
CHART: Final = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)
UNSEEN: Final = re.compile(r"<(script|style|svg|code|pre)\b.*?</\1>|<[^>]+>", re.DOTALL)
# A number that only a measurement has: a decimal, a share in percent, or one with thousands.
MEASURED: Final = re.compile(r"(?<![\w.,-])(?:\d+(?:\.\d+)? ?%|\d+\.\d+(?![.\w])|\d{1,3}(?:,\d{3})+)")
# What looks so and is none: versions of packages and of this report, and the step of a simulator.
NAMES: Final = re.compile(r"(?:Isaac Sim|Isaac Lab|release|Warp|Newton|and) \d+\.\d+|\b20\d\d\.\d+|step is [\d.]+ ms")
# Of the method: confidence, what scales, windows, seconds of an hour; and who counts as idle, slowed or unknown.
RULES: Final = {"95 %", "95%", "90 %", "80 %", "80%", "50 %", "3,600", "5 %", "1.3", "0.5"}
DIGITS: Final = 5  # significant ones, from which on a number of a chart is measured


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Version]:
    version = read_version(RESULTS.parent / "2026.12", name="2026.12", older=[committed_version()])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in hand_on(version, tmp_path_factory.mktemp("version") / "version.pickle").items():
            patch.setenv(name, value)
        version_of_page.cache_clear()
        yield version_of_page()
        version_of_page.cache_clear()


@pytest.fixture(scope="module")
def pages(newest: Version) -> Mapping[str, str]:
    """The markup of what the cells of each page show."""
    namespace: dict[str, Any] = {}
    shown = {}
    for name, text in page_sources(newest).items():
        cells = [cell.source for cell in jupytext.reads(text, fmt="md:myst").cells if cell.cell_type == "code"]
        outputs = [output_of(source, namespace) for source in cells]
        shown[name] = "\n".join(output["text/html"] for output in outputs if output)
    return shown


def test_every_number_of_a_page_is_a_figure(pages: Mapping[str, str], newest: Version) -> None:
    of_others = MEASURED.findall((ROOT / "reports" / "figures" / "published.toml").read_text(encoding="utf-8"))
    known = RULES | {f"{value:,}" for value in work_of(newest)} | set(of_others)
    typed = {name: [number for number in numbers(markup) if number not in known] for name, markup in pages.items()}
    assert {name: found[:20] for name, found in typed.items() if found} == {}


def work_of(version: Version) -> set[Any]:
    """The numbers that describe the work of a run, such as its environments."""
    frames = [runs_of(own).every.select(column.name for column in WORK) for own in (version, *version.older)]
    return {value for frame in frames for row in frame.unique().iter_rows() for value in row if isinstance(value, int)}


def numbers(markup: str) -> list[str]:
    """The measured numbers in a text outside of figures."""
    return MEASURED.findall(NAMES.sub(" ", html.unescape(UNSEEN.sub(" ", FIGURE.sub(" ", markup)))))


def test_a_figure_has_the_value_of_its_row(pages: Mapping[str, str], newest: Version) -> None:
    rows = dict(coverage.stored())
    for own in (*newest.older, newest):
        rows.update(rows_by_id(own))
    shown = [(name, figure, text) for name, markup in pages.items() for figure, text in FIGURE.findall(markup)]
    assert len(shown) > 100
    assert [item for item in shown if not is_of(rows.get(html.unescape(item[1])), item[2])] == []


def is_of(row: Mapping[str, Any] | None, text: str) -> bool:
    """Whether the text begins with the value of the row, rounded to its digits.

    It may be in another power of ten, the hours of a training where the row has trainings in an hour, or what a core
    twice as fast makes where it has a slope.
    """
    number = re.search(r"[-\u2212]?[\d,]+(?:\.(\d+))?", text)
    if row is None or number is None:
        return False
    values = [row["value"]]
    if row.get("column") == "trainings_per_hour":
        values.append(1 / row["value"])
    if row.get("kind") == "machines_slope":
        values.append(2 ** min(1, row["value"]))
    shown, half = float(number[0].replace(",", "").replace("\u2212", "-")), 0.51 * 10 ** -len(number[1] or "")
    return any(abs(value * scale - shown) <= half for value in values for scale in (1, 100, 1e-3, 1e-6, 1e3, 1e6))


def test_every_number_of_a_chart_is_a_figure(pages: Mapping[str, str], newest: Version) -> None:
    rows = [*(row for own in (newest, *newest.older) for row in rows_by_id(own).values()), *coverage.stored().values()]
    ends = {
        f"{row[end] * scale:.5g}" for row in rows for end in ("value", "low", "high") for scale in (1, 100) if row[end]
    }
    wrong = {}
    for name, markup in pages.items():
        for spec in CHART.findall(markup):
            values = [value for value in floats(json.loads(spec)) if len(f"{value:.6g}".replace(".", "")) >= DIGITS]
            if bad := [value for value in values if f"{value:.5g}" not in ends]:
                wrong[name] = bad[:5]
    assert wrong == {}


def floats(part: Any) -> Iterator[float]:
    """The numbers of a chart's data."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "values":
                yield from (
                    number
                    for point in value
                    if isinstance(point, dict)
                    for number in point.values()
                    if isinstance(number, float)
                )
            else:
                yield from floats(value)
    elif isinstance(part, list):
        for value in part:
            yield from floats(value)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("1.94 times", ["1.94"]),
        ('<data value="a/b">1.94</data> times, 1,024 environments, 12 runs, Isaac Lab 3.0.0, 30 Nov 2026', ["1,024"]),
        ("97.1 % of h200-x2", ["97.1 %"]),
    ],
)
def test_a_typed_number_is_found(text: str, typed: list[str]) -> None:
    assert numbers(f"<p>{text}</p>") == typed
