"""What changed between versions."""

from typing import Final

from reports.display.page import Page, speeds_and
from reports.display.topic import Topic

TOPIC: Final = Topic(
    pages=(Page(text="history", part="History", is_shown=speeds_and(lambda version: version.older)),),
)
