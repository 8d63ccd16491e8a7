"""How `nox -s accept` judges the published machines."""

from typing import Final

from reports.display.page import MEASURING, Page, speeds_and
from reports.display.topic import Topic
from reports.topics.acceptance.page import has_shared_work

TOPIC: Final = Topic(
    pages=(Page(text="acceptance", part=MEASURING, is_shown=speeds_and(has_shared_work)),),
)
