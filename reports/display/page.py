"""A page of the site: a text, when a version has it, and where it stands in the contents."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from reports.sets.version import Version
from suite.files.paths import ROOT

PAGES_FOLDER: Final = ROOT / "reports" / "pages"
# Parts of the contents.
TASKS: Final = "Tasks"
COMPARED: Final = "Compared"
MEASURING: Final = "How we measure"


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page, or pages that are made from one text."""

    text: str  # a file in ``reports/pages``, without its ending
    part: str | None = None  # heading in the contents; None: above all parts
    is_shown: Callable[[Version], object] = lambda _: True  # its truth counts
    # Name of a page -> its MyST text. None: one page, named as its text, or ``name``.
    made: Callable[[Version], Mapping[str, str]] | None = None
    name: str | None = None

    def texts(self, version: Version) -> Mapping[str, str]:
        """Return its pages of this version; empty if it is not shown."""
        if not self.is_shown(version):
            return {}
        return self.made(version) if self.made else {self.name or self.text: read_text(self.text)}


def read_text(name: str) -> str:
    return (PAGES_FOLDER / f"{name}.md").read_text(encoding="utf-8")
