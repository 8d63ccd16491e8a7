"""One page with every ratio between configurations that differ in one setting."""

from typing import Final

from reports.display.topic import COMPARED, Page, Topic, speeds_and
from reports.topics.settings.page import ratios

TOPIC: Final = Topic(pages=(Page(text="settings", part=COMPARED, is_shown=speeds_and(ratios)),))
