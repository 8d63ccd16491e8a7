"""What another process brings: one that simulates while this one learns, and one of Ray that collects."""

from typing import Final

from reports.display.topic import COMPARED, Page, Topic, speeds_and
from reports.topics.pipeline.page import has_pipelines
from reports.topics.pipeline.ray_page import has_ray

TOPIC: Final = Topic(
    pages=(
        Page(text="pipeline", part=COMPARED, is_shown=speeds_and(has_pipelines)),
        Page(text="ray", part=COMPARED, is_shown=speeds_and(has_ray)),
    ),
)
