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
class Beyond:
    """What some runs cover and others do not. ``tasks``: their ids."""

    most_ranks_of_a_machine: int | None  # None where others have as many
    gpus: tuple[str, ...]
    tasks: tuple[str, ...]
    libraries: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        most = self.most_ranks_of_a_machine
        up_to = [f"up to {counted(most, 'GPU')}"] if most else []
        return [*up_to, *self.gpus, *sorted({*map(task_name, self.tasks)}), *self.libraries]


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

    def beyond(self, other: "Measured") -> Beyond:
        """Return what this covers and ``other`` does not."""
        return Beyond(
            most_ranks_of_a_machine=self.most if self.most > other.most else None,
            gpus=tuple(sorted(self.gpus - other.gpus)),
            tasks=tuple(sorted(self.tasks - other.tasks)),
            libraries=tuple(sorted(self.libraries - other.libraries)),
        )


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What people ask first, and whether any run has it."""

    most_ranks_of_a_machine: int
    several_real_nodes: bool
    rtx_renderer: bool
    official_assets: bool

    @property
    def unknown(self) -> list[str]:
        """In words, what none has."""
        known = {
            f"more than {counted(self.most_ranks_of_a_machine, 'GPU')} of a machine": False,
            "several real nodes": self.several_real_nodes,
            "Isaac Sim's RTX renderer": self.rtx_renderer,
            "NVIDIA's own assets": self.official_assets,
        }
        return [name for name, is_known in known.items() if not is_known]


def completed(version: Version) -> list[RunRecord]:
    """Every completed run of a version that may be compared."""
    return [record for one in version.scaling for record in one.campaign.completed]


def asked_of_all_versions(version: Version) -> Asked:
    """Look at its own runs, of which there has to be one, and at those of older versions."""
    records = [record for one in (version, *version.older) for record in completed(one)]
    real = [record for record in records if not (record.transport and record.transport.emulated)]
    return Asked(
        most_ranks_of_a_machine=max(record.case.nproc_per_node for record in records),
        several_real_nodes=any(record.case.nnodes > 1 for record in real),
        rtx_renderer=any(record.case.stack == "isaacsim" for record in records),
        official_assets=any(record.case.assets == "official" for record in records),
    )


def beyond_newer(version: Version) -> Mapping[str, Beyond]:
    """Return name of each older version, newest first -> what it covers beyond all newer ones."""
    newer, found = completed(version), dict[str, Beyond]()
    for older in version.older:
        records = completed(older)
        found[older.name] = Measured.by(records).beyond(Measured.by(newer))
        newer += records
    return found


def measured_before(version: Version) -> Html:
    """One sentence for each older version that covers more than all newer ones; nothing without one."""
    markup, text = "", []
    for older, more in beyond_newer(version).items():
        if more.words:
            said = f"also has {', '.join(more.words)}."
            name = link(f"Version {older}", f"../{older}/index.html")
            markup += f'<p class="how">{name.markup} {html.escape(said)}</p>'
            text.append(f"{name.text} {said}")
    return Html(markup=markup, text="\n".join(text))
