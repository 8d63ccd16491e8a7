"""Links between pages: a link to a page that this site lacks becomes its text.

Which pages a site has depends on what was measured and on which topics there are. So texts and cells name pages freely,
and a test compares these names with the list of all pages.
"""

import re
from collections.abc import Collection
from typing import Any, Final

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
