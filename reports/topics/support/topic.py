"""What ran where."""

from typing import Final

from reports.display.topic import Page, Topic, has_speeds

TOPIC: Final = Topic(pages=(Page(text="support", part="Hardware", is_shown=has_speeds),))
