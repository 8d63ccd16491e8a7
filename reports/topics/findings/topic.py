"""One page with every finding."""

from typing import Final

from reports.display.topic import Page, Topic, speeds_and
from reports.topics.findings.page import findings

TOPIC: Final = Topic(pages=(Page(text="findings", is_shown=speeds_and(findings)),))
