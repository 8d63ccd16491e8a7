"""What is learned."""

from typing import Final

from reports.display.page import COMPARED, Page
from reports.display.topic import Topic
from reports.topics.tuning.learning_page import has_seeds

TOPIC: Final = Topic(pages=(Page(text="learning", part=COMPARED, is_shown=has_seeds),))
