"""Several trainings on one GPU."""

from typing import Final

from reports.display.topic import COMPARED, Page, Topic, speeds_and
from reports.topics.shared_gpu.page import has_groups

TOPIC: Final = Topic(
    pages=(Page(text="shared-gpu", part=COMPARED, is_shown=speeds_and(has_groups)),),
)
