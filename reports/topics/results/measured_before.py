"""What an older version measured and this one did not, with the way there."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from reports.analysis.curves import task_name
from reports.display.html import Html, link
from reports.sets.version import Version
from suite.files.wording import counted
from suite.schema.record import RunRecord


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What some runs cover."""

    tasks: frozenset[str]
    libraries: frozenset[str]
    gpus: frozenset[str]
    most: int  # GPUs of one machine, or ranks of a CPU

    @classmethod
    def by(cls, records: Sequence[RunRecord]) -> "Measured":
        return cls(
            tasks=frozenset(task_name(record.case.task) for record in records),
            libraries=frozenset(record.case.rl_library for record in records),
            gpus=frozenset(gpu.name for record in records for gpu in record.environment.gpus),
            most=max((record.case.nproc_per_node for record in records), default=0),
        )

    def beyond(self, other: "Measured") -> list[str]:
        """In words, what this covers and ``other`` does not."""
        sets = ((self.gpus, other.gpus), (self.tasks, other.tasks), (self.libraries, other.libraries))
        said = [name for mine, theirs in sets for name in sorted(mine - theirs)]
        return [*([f"up to {counted(self.most, 'GPU')}"] if self.most > other.most else []), *said]


def completed(version: Version) -> list[RunRecord]:
    """Every completed run of a version that may be compared."""
    return [record for one in version.scaling for record in one.campaign.completed]


def measured_before(version: Version) -> Html:
    """One sentence for each older version that covers more than all newer ones; nothing without one."""
    newer, markup, text = completed(version), "", []
    for older in version.older:
        more = Measured.by(completed(older)).beyond(Measured.by(newer))
        if more:
            said = f"also has {', '.join(more)}."
            name = link(f"Version {older.name}", f"../{older.name}/index.html")
            markup += f'<p class="how">{name.markup} {html.escape(said)}</p>'
            text.append(f"{name.text} {said}")
        newer += completed(older)
    return Html(markup=markup, text="\n".join(text))
