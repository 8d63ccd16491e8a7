"""Deterministic settings."""

from typing import Final

from reports.display.topic import COMPARED, Page, Topic, speeds_and
from reports.topics.determinism.page import has_pairs

TOPIC: Final = Topic(
    pages=(Page(text="determinism", part=COMPARED, is_shown=speeds_and(has_pairs)),),
)
