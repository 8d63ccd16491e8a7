"""The list of pages, in the order of the contents."""

import re
from collections.abc import Collection, Sequence
from typing import Any, Final

from reports.display.page import COMPARED, MEASURING, TASKS, Page
from reports.pages import findings, home, releases, settings, tasks
from reports.sets.version import Version
from reports.site import guide

HARDWARE, DATA = Page(text="hardware"), Page(text="data", part=MEASURING)
PAGES: Final = (
    Page(text="home", made=home.texts),
    Page(text="findings", is_shown=findings.findings),
    HARDWARE,
    Page(text="tasks", part=TASKS, made=tasks.texts),
    Page(text="settings", part=COMPARED, is_shown=settings.ratios_of_settings),
    Page(text="releases", part=COMPARED, is_shown=releases.is_shown),
    Page(text="compared", part=COMPARED, is_shown=lambda version: not version.is_campaign),
    Page(text="explore"),
    Page(text="method", part=MEASURING, is_shown=lambda version: not version.is_campaign),
    DATA,
)
WITHOUT_SPEEDS: Final = (Page(text="what_worked", name="index"), HARDWARE, DATA)  # none speaks of speed

MARKDOWN: Final = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<page>[\w-]+)\.ipynb(?:#[^)]*)?\)")
HTML: Final = re.compile(r'<a href="(?P<page>[\w-]+)\.html(?:#[^"]*)?"[^>]*>(?P<text>.*?)</a>', re.DOTALL)


def keep_links_to(pages: Collection[str], notebook: Any) -> None:
    """Replace every link to another page in the texts and outputs of an executed notebook. ``pages``: their names."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = _kept(MARKDOWN, cell.source, pages)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = _kept(HTML, data["text/html"], pages)


def _kept(links: re.Pattern[str], text: str, pages: Collection[str]) -> str:
    return links.sub(lambda link: link[0] if link["page"] in pages else link["text"], text)


def page_sources(version: Version) -> dict[str, str]:
    """Name of every page of this version -> its MyST text, in the order of the contents."""
    return {name: text for page in _pages(version) for name, text in page.texts(version).items()}


def _pages(version: Version) -> Sequence[Page]:
    return PAGES if version.scaling else WITHOUT_SPEEDS


def contents(version: Version) -> list[dict[str, Any]]:
    """The contents as Jupyter Book reads them: pages above all parts, then the parts, then how to run labscale."""
    parts: dict[str | None, list[str]] = {}
    for page in _pages(version):
        parts.setdefault(page.part, []).extend(page.texts(version))
    parts["Run it"] = [] if version.is_campaign else list(guide.PAGES)
    first = parts.pop(None)
    return [*_files(first), *({"title": part, "children": _files(names)} for part, names in parts.items() if names)]


def _files(names: Sequence[str]) -> list[dict[str, str]]:
    return [{"file": f"{name}.ipynb"} for name in names]


def page_files(version: Version) -> tuple[str, ...]:
    """Return the file names of all pages of this version."""
    return tuple(f"{name}.html" for name in (*page_sources(version), *guide.PAGES))
