"""How it was measured, and how sure it is."""

from typing import Final

from reports.display.page import MEASURING, Page, has_speeds, speeds_and
from reports.display.topic import Topic
from reports.topics.trust.turns_page import has_check

TOPIC: Final = Topic(
    pages=(
        Page(text="turns", part=MEASURING, is_shown=speeds_and(has_check)),
        Page(text="methodology", part=MEASURING, is_shown=has_speeds),
        Page(text="limits", part=MEASURING, is_shown=lambda _: True),
    ),
)
