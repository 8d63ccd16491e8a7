"""Where the pages are. Pure."""

import re

from reports.analysis.curves import task_name


def anchor_of_series(series: str) -> str:
    """The section of a series on the page of its task: ``series-ant-weak``."""
    return f"series-{_slug(series)}"


def address_of_series(task: str, series: str) -> str:
    """Where a series has its section. ``task``: its id in Isaac Lab, or its plain name."""
    return f"{page_of_task(task_name(task))}.html#{anchor_of_series(series)}"


def page_of_task(task: str) -> str:
    """The page of a task, by its plain name: ``task-shadow-hand-with-camera``."""
    return f"task-{_slug(task)}"


def page_of_gpu(model: str) -> str:
    """The page of a GPU model, or of the CPUs: ``hardware-h200``."""
    return f"hardware-{_slug(model)}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
