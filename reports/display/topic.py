"""What a topic gives to the site: its pages, what it has on the first page, and files beside the pages."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reports.display.html import Html
from reports.sets.version import Version
from suite.files.paths import ROOT

TOPICS_FOLDER: Final = ROOT / "reports" / "topics"
# Parts of the contents that several topics have pages in.
COMPARED: Final = "Compared"
MEASURING: Final = "How we measure"

type Texts = Mapping[str, str]  # name of a page -> its MyST text


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page, or pages that are made from one text."""

    text: str  # the file in the topic's folder ``pages``, without its ending
    part: str | None = None  # heading in the contents; None: above all parts
    is_shown: Callable[[Version], object]  # its truth counts
    made: Callable[[Version], Texts] | None = None  # None: one page, named as its text, or ``name``
    name: str | None = None

    def texts(self, version: Version) -> Texts:
        """Return its pages of this version; empty if it is not shown."""
        if not self.is_shown(version):
            return {}
        return self.made(version) if self.made else {self.name or self.text: read_text(self.text)}


def read_text(name: str) -> str:
    """The text of a page; pages of all topics differ in their names."""
    (path,) = TOPICS_FOLDER.glob(f"*/pages/{name}.md")
    return path.read_text(encoding="utf-8")


def has_speeds(version: Version) -> bool:
    """Whether numbers of ranks may be compared. Where not, no page speaks of speed."""
    return bool(version.scaling)


def speeds_and(condition: Callable[[Version], object]) -> Callable[[Version], object]:
    return lambda version: has_speeds(version) and condition(version)


@dataclass(frozen=True, kw_only=True)
class Topic:
    """What ``topic.py`` in the folder of a topic says of it."""

    pages: tuple[Page, ...]
    page_parts: Mapping[str, Callable[[Version], Html]] = field(default_factory=dict)  # page of another topic -> part
    write: Callable[[Version, Path], None] | None = None  # files beside the pages, into the folder of the site
    readme: Callable[[Version], str] | None = None  # its part of README.md, from all versions
