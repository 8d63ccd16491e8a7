"""Hours and cost of frames, and time to a reward."""

from typing import Final

from reports.display.topic import Page, Topic, has_speeds
from reports.topics.cost.card import card

TOPIC: Final = Topic(
    pages=(Page(text="choosing", is_shown=has_speeds, card=card),),
)
