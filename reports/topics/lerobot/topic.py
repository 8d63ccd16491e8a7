"""A policy of LeRobot that acts in many environments, and LeRobot's data set writer."""

from typing import Final

from reports.display.topic import COMPARED, Page, SeriesPart, Topic, speeds_and
from reports.topics.lerobot.page import has_lerobot, of_series

TOPIC: Final = Topic(
    pages=(Page(text="lerobot", part=COMPARED, is_shown=speeds_and(has_lerobot)),),
    series_parts=(SeriesPart(after="What was measured", shown=of_series),),
)
