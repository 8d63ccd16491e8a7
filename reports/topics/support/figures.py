"""What *What ran where* counts, over this version and older ones. Pure."""

from collections.abc import Mapping

from reports.display.topic import Figures
from reports.sets.version import Version
from reports.topics.support.model import systems, trainings


def support_figures(version: Version) -> Mapping[str, Figures]:
    """Return ``all``, and RL library, stack, hardware and way of starting -> figures."""
    found = trainings(version)
    if not found:
        return {}
    return {
        "all": {"runs": len(found)},
        **{
            f"{one.rl_library}, {one.stack}, {one.hardware}, {one.way or 'unknown'}": {
                "runs": one.runs,
                "ranks": [*one.ranks],
                "tasks": len(one.tasks),
            }
            for one in systems(found)
        },
    }
