"""Every point in one chart."""

from typing import Final

from reports.display.page import Page, has_speeds
from reports.display.topic import Topic

TOPIC: Final = Topic(pages=(Page(text="explore", is_shown=has_speeds),))
