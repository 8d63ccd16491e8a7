"""Where the pages are. Pure."""

from suite.files.wording import slug


def page_of_task(task: str) -> str:
    """The page of a task, by its plain name: ``task-shadow-hand-with-camera``."""
    return f"task-{slug(task)}"


def page_of_gpu(model: str) -> str:
    """The page of a GPU model, or of the CPUs: ``hardware-h200``."""
    return f"hardware-{slug(model)}"


def address_of_machine(model: str, machine: str) -> str:
    """Where a machine has its part of the page of its GPU model. ``machine``: its slug."""
    return f"{page_of_gpu(model)}.html#{machine}"
