"""Where the pages are. Pure."""

import re


def page_of(series: str) -> str:
    """The page's address without its ending, as Jupyter Book makes it of the file's name."""
    return f"series-{series}".replace("_", "-").replace(".", "-").lower()


def page_of_task(task: str) -> str:
    """The page of a task, by its plain name: ``task-shadow-hand-with-camera``."""
    return f"task-{_slug(task)}"


def page_of_gpu(model: str) -> str:
    """The page of a GPU model, or of the CPUs: ``hardware-h200``."""
    return f"hardware-{_slug(model)}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
