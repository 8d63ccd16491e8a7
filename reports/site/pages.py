"""The pages of a version and their order, from what the topics give."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

from reports.display.html import Html, together
from reports.display.topic import Page
from reports.sets.version import Version
from reports.site import guide
from reports.site.topics import topics

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


def pages() -> tuple[Page, ...]:
    """Every page that a version may have, in the order of the contents."""
    return tuple(page for topic in topics() for page in topic.pages)


def page_sources(version: Version) -> dict[str, str]:
    """Name of every page of this version -> its MyST text, in the order of the contents."""
    return {name: text for page in pages() for name, text in page.texts(version).items()}


def contents(version: Version) -> list[dict[str, Any]]:
    """The contents as Jupyter Book reads them: pages above all parts, then the parts, then how to run labscale."""
    parts: dict[str | None, list[str]] = {}
    for page in pages():
        parts.setdefault(page.part, []).extend(page.texts(version))
    parts["Run it"] = list(guide.PAGES)
    first = parts.pop(None)
    return [*_files(first), *({"title": part, "children": _files(names)} for part, names in parts.items() if names)]


def from_other_topics(page: str, version: Version) -> Html:
    """What other topics show on this page."""
    return together([topic.page_parts[page](version) for topic in topics() if page in topic.page_parts])


def write_beside(version: Version, folder: Path) -> None:
    """Write the files of the topics that stand beside the pages."""
    for topic in topics():
        if topic.write:
            topic.write(version, folder)


def _files(names: Sequence[str]) -> list[dict[str, str]]:
    return [{"file": f"{name}.ipynb"} for name in names]


def page_files(version: Version) -> tuple[str, ...]:
    """Return the file names of all pages of this version."""
    return tuple(f"{name}.html" for name in (*page_sources(version), *guide.PAGES))
