"""What an older version measured and this one did not, with the way there, and what none measured. Pure."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.analysis.curves import task_name
from reports.display.html import Html, link
from reports.sets.version import Version
from suite.files.wording import counted
from suite.schema.record import RunRecord


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What some runs cover. ``tasks``: their ids."""

    tasks: frozenset[str]
    libraries: frozenset[str]
    gpus: frozenset[str]
    most: int  # GPUs of one machine, or ranks of a CPU

    @classmethod
    def by(cls, records: Sequence[RunRecord]) -> "Measured":
        return cls(
            tasks=frozenset(record.case.task for record in records),
            libraries=frozenset(record.case.rl_library for record in records),
            gpus=frozenset(gpu.name for record in records for gpu in record.environment.gpus),
            most=max((record.case.nproc_per_node for record in records), default=0),
        )

    @property
    def task_names(self) -> list[str]:
        return sorted({*map(task_name, self.tasks)})

    def beyond(self, other: "Measured") -> list[str]:
        """Return in words what this covers and ``other`` does not."""
        up_to = [f"up to {counted(self.most, 'GPU')}"] if self.most > other.most else []
        tasks = sorted({*map(task_name, self.tasks - other.tasks)})
        return [*up_to, *sorted(self.gpus - other.gpus), *tasks, *sorted(self.libraries - other.libraries)]


def completed(version: Version) -> list[RunRecord]:
    """Every completed run of a version that may be compared."""
    return [record for one in version.scaling for record in one.campaign.completed]


def measured_by_none(version: Version) -> list[str]:
    """Return in words what people ask first and no run of this version or an older one has. It has to have a run."""
    records = [record for one in (version, *version.older) for record in completed(one)]
    real = [record for record in records if not (record.transport and record.transport.emulated)]
    most = max(record.case.nproc_per_node for record in records)
    known = {
        f"more than {counted(most, 'GPU')} of a machine": False,
        "several real nodes": any(record.case.nnodes > 1 for record in real),
        "Isaac Sim's RTX renderer": any(record.case.stack == "isaacsim" for record in records),
        "NVIDIA's own assets": any(record.case.assets == "official" for record in records),
    }
    return [name for name, is_known in known.items() if not is_known]


def beyond_newer(version: Version) -> Mapping[str, list[str]]:
    """Return name of each older version, newest first -> what it covers beyond all newer ones."""
    newer, found = completed(version), dict[str, list[str]]()
    for older in version.older:
        records = completed(older)
        found[older.name] = Measured.by(records).beyond(Measured.by(newer))
        newer += records
    return found


def measured_before(version: Version) -> Html:
    """One sentence for each older version that covers more than all newer ones; nothing without one."""
    markup, text = "", []
    for older, more in beyond_newer(version).items():
        if more:
            said = f"also has {', '.join(more)}."
            name = link(f"Version {older}", f"../{older}/index.html")
            markup += f'<p class="how">{name.markup} {html.escape(said)}</p>'
            text.append(f"{name.text} {said}")
    return Html(markup=markup, text="\n".join(text))
