"""All files to take away."""

from typing import Final

from reports.display.topic import MEASURING, Page, Topic
from reports.topics.data.downloads import write

TOPIC: Final = Topic(
    pages=(Page(text="data", part=MEASURING, is_shown=lambda _: True),),
    write=write,
)
