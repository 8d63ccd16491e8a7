"""Simulation and learning at the same time, in two processes."""

from typing import Final

from reports.display.topic import COMPARED, Page, Topic, speeds_and
from reports.topics.pipeline.page import has_pipelines

TOPIC: Final = Topic(pages=(Page(text="pipeline", part=COMPARED, is_shown=speeds_and(has_pipelines)),))
