"""Every point in one chart."""

from typing import Final

from reports.display.topic import Page, Topic, has_speeds

TOPIC: Final = Topic(pages=(Page(text="explore", is_shown=has_speeds),))
