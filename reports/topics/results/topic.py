"""The first page."""

from typing import Final

from reports.display.topic import Page, Topic, has_speeds
from reports.sets.version import Version


def _only_works(version: Version) -> bool:
    return not has_speeds(version)


TOPIC: Final = Topic(
    pages=(
        Page(text="index", is_shown=has_speeds),
        Page(text="worked", name="index", is_shown=_only_works),
    ),
)
