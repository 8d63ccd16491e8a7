"""What a topic gives to the site: its pages."""

from dataclasses import dataclass

from reports.display.page import Page


@dataclass(frozen=True, kw_only=True)
class Topic:
    """What ``topic.py`` in the folder of a topic says of it."""

    pages: tuple[Page, ...]
