"""Curves of all tasks, and a page for each."""

import string
from collections.abc import Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign, shared_kind
from reports.display.addresses import anchor_of_series, page_of_task
from reports.display.series_tables import series_subject
from reports.display.topic import Page, Texts, Topic, has_speeds, read_text
from reports.sets.version import Version
from reports.topics.tasks.overview import series_of, tasks


def _tasks(version: Version) -> Texts:
    """One page for each task, with a section for each of its series."""
    template = string.Template(read_text("task"))
    return {
        page_of_task(task): template.substitute(title=task.replace('"', "'"), series=_sections(version, task))
        for task in tasks(version)
    }


def _sections(version: Version, task: str) -> str:
    """Return the sections of a task's series as MyST, each with its address."""
    return "\n".join(_section(task, name, parts) for name, parts in series_of(version, task).items())


def _section(task: str, name: str, parts: Sequence[Campaign]) -> str:
    subject = series_subject(parts[0].results[0].case, shared_kind(parts))
    title = f"{subject[0].upper()}{subject[1:]} ({name})".replace("_", r"\_")
    return f"""
({anchor_of_series(name)})=
## {title}

```{{code-cell}} python
:tags: [remove-input]
section(version, {task!r}, {name!r}, parts)
```
"""


TOPIC: Final = Topic(
    pages=(
        Page(text="curves", is_shown=has_speeds),
        Page(text="task", part="Tasks", is_shown=has_speeds, made=_tasks),
    ),
)
