"""What a topic gives to the site: its pages, what it has on the first page, and its part of README.md."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reports.display.html import Html
from reports.display.page import Page
from reports.sets.version import Version


@dataclass(frozen=True, kw_only=True)
class Topic:
    """What ``topic.py`` in the folder of a topic says of it."""

    pages: tuple[Page, ...]
    page_parts: Mapping[str, Callable[[Version], Html]] = field(default_factory=dict)  # page of another topic -> part
    readme: Callable[[Version], str] | None = None  # its part of README.md, from all versions
