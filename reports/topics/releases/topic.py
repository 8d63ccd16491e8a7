"""Other versions of packages."""

from typing import Final

from reports.display.page import Page, speeds_and
from reports.display.topic import Topic
from reports.topics.releases.page import has_releases

TOPIC: Final = Topic(
    pages=(Page(text="releases", part="History", is_shown=speeds_and(has_releases)),),
)
