"""A page for each task."""

import string
from typing import Final

from reports.display.addresses import page_of_task
from reports.display.topic import Page, Texts, Topic, has_speeds, read_text
from reports.figures.lines import tasks
from reports.sets.version import Version


def _tasks(version: Version) -> Texts:
    template = string.Template(read_text("task"))
    return {page_of_task(task): template.substitute(title=task.replace('"', "'")) for task in tasks(version)}


TOPIC: Final = Topic(pages=(Page(text="task", part="Tasks", is_shown=has_speeds, made=_tasks),))
