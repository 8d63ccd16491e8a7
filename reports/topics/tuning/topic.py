"""Tuned settings, and what is learned."""

from typing import Final

from reports.display.topic import COMPARED, Page, Topic, speeds_and
from reports.topics.tuning.card import card
from reports.topics.tuning.division_page import has_tuned
from reports.topics.tuning.learning_page import has_seeds, stacks

TOPIC: Final = Topic(
    pages=(
        Page(text="division", part=COMPARED, is_shown=speeds_and(has_tuned), card=card),
        Page(text="learning", part=COMPARED, is_shown=has_seeds),
    ),
    page_parts={"stacks": stacks},
)
