"""What ran where, as the block of README.md. Pure."""

from collections.abc import Iterable, Sequence

from reports.analysis.curves import task_name
from reports.topics.support import tables
from reports.topics.support.model import Impossible, Training, grouped
from suite.matrix.catalog import Catalog


def markdown(catalog: Catalog, found: Sequence[Training], cannot: Iterable[Impossible]) -> str:
    """Return the table of RL libraries, then a line each for tasks, ways to start, and all that cannot run."""
    rows = [
        ["", *tables.headings(tables.columns(catalog, found))],
        ["---"] * (1 + len(tables.columns(catalog, found))),
        *tables.library_rows(catalog, found),
    ]
    lines = [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in rows]
    return "\n".join([*lines, "", _tasks(found), _ways(found), *map(_impossible, cannot)])


def _tasks(found: Sequence[Training]) -> str:
    by_task = grouped(found, lambda one: one.task)
    return f"- **Tasks**: {', '.join(_task(task, by_task[task]) for task in sorted(by_task, key=task_name))}."


def _task(task: str, those: Sequence[Training]) -> str:
    engines = dict.fromkeys(tables.physics(one.stack) for one in those)
    drawn = [f"drawn by {name}" for name in tables.renderers(those) if name != tables.RENDERERS["none"]]
    return f"{task_name(task)} ({', '.join([*engines, *drawn])})"


def _ways(found: Sequence[Training]) -> str:
    ran, missing = tables.ways_that_ran(found)
    never = f"; {tables.NOT_MEASURED}: {', '.join(missing)}" if missing else ""
    return f"- **Started**: {', '.join(ran)}{never}."


def _impossible(one: Impossible) -> str:
    first = one.sources[0]
    said = f"[source]({first})" if first.startswith("https://") else first
    return f"- **Cannot run**: {one.what}. {one.reason} ({said})"
