"""Where the pages are. Pure."""

from suite.files.wording import slug


def page_of_task(task: str) -> str:
    """The page of a task, by its plain name: ``task-shadow-hand-with-camera``."""
    return f"task-{slug(task)}"
