"""Clocks and publications beside these results."""

from typing import Final

from reports.display.page import COMPARED, Page, has_speeds
from reports.display.topic import Topic

TOPIC: Final = Topic(
    pages=(
        Page(text="published", part=COMPARED, is_shown=has_speeds),
        Page(text="clock", part=COMPARED, is_shown=lambda version: version.pairs),
    ),
)
