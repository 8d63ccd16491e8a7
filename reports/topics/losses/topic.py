"""Where the time is lost."""

from typing import Final

from reports.display.topic import Page, Topic, speeds_and
from reports.topics.losses.card import card
from reports.topics.losses.findings_page import has_findings

TOPIC: Final = Topic(pages=(Page(text="findings", is_shown=speeds_and(has_findings), card=card),))
