"""The list of pages is that of the texts; links to pages that a site lacks become their text, and none is astray."""

import re
from importlib.util import find_spec

import nbformat
import pytest

from reports.__main__ import MODULES, main
from reports.data.words import page_of_task, task_name
from reports.display.page import PAGES_FOLDER
from reports.figures.tables import runs_of
from reports.site import guide
from reports.site.contents import PAGES, WITHOUT_SPEEDS, keep_links_to, page_sources
from suite.errors import UsageError
from suite.files.paths import ROOT
from tests.fixtures.results.committed_results import newest_version

MARKDOWN = (
    "See [all limits](limits.ipynb#a), [the data](data.ipynb) and [Isaac Lab](https://isaac-sim.github.io/x.html)."
)
HTML = '<a href="limits.html">Why</a>, <a class="x" href="../2026.11/a.html">before</a> <a href="data.html#b">all</a>'
NAMED_IN_CODE = re.compile(r"[\"']([\w-]+)\.html(?:#[\w-]*)?[\"']")


@pytest.mark.parametrize(
    ("names", "markdown", "html"),
    [
        (["limits", "data"], MARKDOWN, HTML),
        (
            ["data"],
            MARKDOWN.replace("[all limits](limits.ipynb#a)", "all limits"),
            HTML.replace('<a href="limits.html">Why</a>', "Why"),
        ),
        (
            [],
            "See all limits, the data and [Isaac Lab](https://isaac-sim.github.io/x.html).",
            'Why, <a class="x" href="../2026.11/a.html">before</a> all',
        ),
    ],
    ids=["all pages", "one page", "none"],
)
def test_a_link_to_a_page_that_is_not_there_becomes_its_text(names: list[str], markdown: str, html: str) -> None:
    cell = nbformat.v4.new_code_cell("f()", outputs=[nbformat.v4.new_output("display_data", {"text/html": HTML})])
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(MARKDOWN), cell])
    keep_links_to(names, notebook)
    assert notebook.cells[0].source == markdown
    assert notebook.cells[1].outputs[0]["data"]["text/html"] == html


def test_every_page_that_a_text_or_a_module_names_is_in_the_list_of_pages() -> None:
    """Otherwise a wrong name would become text, and nobody would see that a link is gone."""
    listed = {page.name or page.text for page in (*PAGES, *WITHOUT_SPEEDS)} | set(guide.PAGES)
    texts = [*(path.read_text() for path in sorted(PAGES_FOLDER.glob("*.md"))), *guide.sources().values()]
    in_texts = {name for text in texts for name in re.findall(r"\]\(([\w-]+)\.ipynb", text)}
    modules = [path for folder in ("display", "pages") for path in (ROOT / "reports" / folder).rglob("*.py")]
    in_code = {name for path in modules for name in NAMED_IN_CODE.findall(path.read_text())}
    assert len(in_texts) > 4
    assert len(in_code) > 4
    assert (in_texts | in_code) - listed == set()


def test_every_text_is_in_the_list_of_pages_and_has_a_module() -> None:
    texts = {path.stem for path in PAGES_FOLDER.glob("*.md")}
    assert texts == {page.text for page in (*PAGES, *WITHOUT_SPEEDS)}
    assert texts <= {path.stem for path in PAGES_FOLDER.glob("*.py")}


def test_a_task_has_a_page_if_it_was_trained() -> None:
    """Not one of which only single parts ran."""
    rows = [row for row in runs_of(newest_version()).configurations if row["device"] == "cuda"]
    trained = {page_of_task(task_name(row["task"])) for row in rows if row["workload"] == "train"}
    assert trained < {page_of_task(task_name(row["task"])) for row in rows}
    assert {name for name in page_sources(newest_version()) if name.startswith("task-")} == trained


def test_every_session_has_a_module() -> None:
    assert [name for name in MODULES.values() if find_spec(name) is None] == []


def test_a_session_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("reprot", []) == UsageError.exit_code
    assert "'reprot'" in capsys.readouterr().err
