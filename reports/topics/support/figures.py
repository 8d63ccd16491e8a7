"""What *What ran where* counts, over this version and older ones. Pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date

from reports.display.topic import Figures
from reports.sets.version import Version
from reports.topics.support.model import Training, grouped, most, newest, systems, trainings


def support_figures(version: Version) -> Mapping[str, Figures]:
    """Return ``all``, and RL library, stack, hardware and way of starting -> figures."""
    found = trainings(version)
    if not found:
        return {}
    return {
        "all": {"runs": len(found), "last_day": _day(newest(found).day)},
        **{
            f"{one.rl_library}, {one.stack}, {one.hardware}, {one.way or 'unknown'}": {
                "runs": one.runs,
                "ranks": [*one.ranks],
                "tasks": len(one.tasks),
                "last_day": _day(one.newest.day),
                "last_version": None if one.newest.version == version.name else one.newest.version,
            }
            for one in systems(found)
        },
        **_most(found, "all", lambda _: ""),
        **_most(found, "library", lambda one: f"{one.rl_library}, {one.stack}"),
        **_most(found, "task", lambda one: f"{one.task}, {one.stack}"),
        **_most(found, "way", lambda one: one.way or "unknown"),
    }


def _most(found: Sequence[Training], kind: str, key: Callable[[Training], str]) -> Mapping[str, Figures]:
    """Return what the cells of a table say: the most ranks on each hardware, and the newest day of as many."""
    return {
        f"most by {kind}: {of}, {each.hardware}": {"ranks": each.ranks, "day": _day(each.day)}
        for of, those in grouped(found, key).items()
        for each in most(those)
    }


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
