"""The machines that were published, with the runs of each that another machine can be compared with.

A machine is a host of one label on one day, in the sets of the same people. Archived sets are left out, since evidence
of their runs is missing, and so is every run that is not known to have run alone: its machine may have looked slow.
Series with cold starts are left out too: their few iterations do not say how fast a machine is.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from reports.analysis.curves import measured_for_speed
from reports.analysis.same_work import Work, work_of
from reports.sets.version import ResultSet, Version, read_version, version_order
from suite.errors import UsageError
from suite.files.wording import day_in_words
from suite.records.folders import CASES
from suite.schema.record import RunRecord

VERSIONS: Final = "versions."
_FREE: Final = frozenset({"versions.python"})  # its patch level comes with the operating system


@dataclass(frozen=True, kw_only=True)
class Machine:
    """``name``: label and day. ``by_work``: its completed runs alone on GPUs of one model."""

    name: str
    model: str
    by_work: Mapping[Work, tuple[RunRecord, ...]] = field(repr=False)

    @property
    def drivers(self) -> frozenset[str]:
        records = (record for records in self.by_work.values() for record in records)
        return frozenset(found for record in records if (found := record.environment.driver_version))

    def comparable(self, record: RunRecord) -> tuple[RunRecord, ...]:
        """The runs of the same work and versions of packages as ``record`` that shared their GPU in the same way."""
        return tuple(
            one
            for one in self.by_work.get(work_of(record.case), ())
            if not other_versions(record, one) and _share_alike(record, one)
        )


def other_versions(here: RunRecord, there: RunRecord) -> tuple[str, ...]:
    """Packages that both runs name and that differ: ``torch 2.11.0 there, 2.12.0 here``."""
    ours, theirs = versions_of(here), versions_of(there)
    return tuple(
        f"{name.removeprefix(VERSIONS)} {theirs[name]} there, {ours[name]} here"
        for name in sorted((ours.keys() & theirs.keys()) - _FREE)
        if ours[name] != theirs[name]
    )


def _share_alike(here: RunRecord, there: RunRecord) -> bool:
    """Several trainings on a GPU are compared if all shared it through CUDA MPS, or none did."""
    return here.case.trainings_per_gpu == 1 or _mps(here) == _mps(there)


def _mps(record: RunRecord) -> frozenset[object]:
    return frozenset(rank.settings.get("mps") for rank in record.ranks)


def versions_of(record: RunRecord) -> Mapping[str, str]:
    settings = record.ranks[0].settings if record.ranks else {}
    return {name: str(value) for name, value in settings.items() if name.startswith(VERSIONS) and value is not None}


def read_published(folder: Path) -> tuple[Machine, ...]:
    """Read every version below ``folder``, a folder of versions such as ``reports/results``.

    Raises:
        UsageError: it has no version with results on GPUs.
        StoreError, ReportError: a version cannot be read.
    """
    machines = machines_of(versions_below(folder))
    if not machines:
        raise UsageError(
            f"--published {folder} has no version with runs on GPUs. Name a folder of versions; the one of labscale is"
            " reports/results."
        )
    return machines


def versions_below(folder: Path) -> Iterator[Version]:
    """Read each version below a folder, the oldest first."""
    names = (path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()
    has_sets = (path for path in names if any((below / CASES).is_dir() for below in path.iterdir()))
    for path in sorted(has_sets, key=lambda path: version_order(path.name)):
        yield read_version(path, name=path.name)


def machines_of(versions: Iterable[Version]) -> tuple[Machine, ...]:
    """The machines of these versions, in order of their first runs there."""
    found: dict[tuple[str, str, str], dict[Work, list[RunRecord]]] = {}
    for one, record in _runs(versions):
        whose = one.contributor.name if one.contributor else ""
        name = f"{record.environment.host_label or one.name}, {_day(record)}"
        key = whose, name, record.environment.gpus[0].name
        found.setdefault(key, {}).setdefault(work_of(record.case), []).append(record)
    return tuple(
        Machine(
            name=f"{name} ({whose})" if whose else name,
            model=model,
            by_work={work: tuple(records) for work, records in by_work.items()},
        )
        for (whose, name, model), by_work in found.items()
    )


def others(machines: Sequence[Machine], own: Iterable[RunRecord]) -> tuple[Machine, ...]:
    """Leave out the machine itself: one that shares a run with ``own``, which may be published already."""
    known = {_identity(record) for record in own}
    return tuple(
        machine
        for machine in machines
        if not any(_identity(record) in known for records in machine.by_work.values() for record in records)
    )


def _identity(record: RunRecord) -> Hashable:
    return record.environment.host_label, record.case.case_id, record.round, record.started_utc, record.wall_time_s


def _runs(versions: Iterable[Version]) -> Iterator[tuple[ResultSet, RunRecord]]:
    for version in versions:
        for one in version.sets:
            if one.role == "archive" or one.shared_machine != "no":
                continue
            for result in measured_for_speed(one.campaign.results):
                for record in result.completed:
                    if record.case.device == "cuda" and record.environment.gpus:
                        yield one, record


def _day(record: RunRecord) -> str:
    if record.started_utc is None:
        return "day unknown"
    return day_in_words(datetime.fromisoformat(record.started_utc).astimezone(UTC))
