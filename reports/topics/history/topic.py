"""What changed between versions."""

from typing import Final

from reports.display.topic import Page, Topic, speeds_and

TOPIC: Final = Topic(
    pages=(Page(text="history", part="History", is_shown=speeds_and(lambda version: version.older)),),
)
