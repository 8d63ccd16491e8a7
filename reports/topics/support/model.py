"""What ran where: completed runs, grouped by RL library, stack, hardware, task and way of starting. Pure.

Everything comes from stored records. What no record shows has no entry.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Final, Literal

from reports.analysis.environments import PACKAGE_OF, gpu_name
from reports.sets.version import Version
from suite.files.toml_file import NonEmptyTuple, TomlTable, read_toml
from suite.schema.record import Case, Device, RlLibrary, RunRecord, Stack

PATH: Final = Path(__file__).with_name("impossible.toml")


class Refusal(TomlTable):
    """What labscale answers to whoever asks for it."""

    by: str  # the command
    says: str  # fault or message


class Impossible(TomlTable):
    """One thing that cannot run."""

    what: str  # Markdown's backquotes around names of code
    reason: str  # in sentences
    sources: NonEmptyTuple[str]  # addresses, or a package with a file in it
    looked_up: date
    refusal: Refusal | None = None  # None where nobody can ask labscale for it


class ImpossibleTable(TomlTable):
    impossible: NonEmptyTuple[Impossible]


def read_impossible(path: Path = PATH) -> tuple[Impossible, ...]:
    """Read the file. Raises MatrixError with every problem in it."""
    return read_toml(path).validate(ImpossibleTable).impossible


# What a record tells of the way it was started: not which launcher, but where its processes were.
Way = Literal["one machine", "image", "simulated nodes", "several machines"]

CPU: Final = "CPU"


@dataclass(frozen=True, kw_only=True)
class Training:
    """One completed run that trained, or that was of a library that trains nothing."""

    version: str  # of the results
    by: str | None  # who contributed it; None: the project's own
    day: date | None  # it started, in UTC
    rl_library: RlLibrary
    library_version: str | None
    stack: Stack
    device: Device
    hardware: str  # GPU model without its maker, or CPU
    ranks: int
    way: Way | None  # None: the record does not say
    task: str  # id in Isaac Lab
    renderer: str | None  # ``none`` for a task without cameras; None: the record does not say


@dataclass(frozen=True, kw_only=True)
class Most:
    """The largest number of ranks that ran on one kind of hardware, and the newest day that they did."""

    hardware: str
    device: Device
    ranks: int
    day: date | None


@dataclass(frozen=True, kw_only=True)
class System:
    """All trainings with one RL library and stack on one kind of hardware, started in one way."""

    rl_library: RlLibrary
    library_versions: tuple[str, ...]
    stack: Stack
    hardware: str
    way: Way | None
    ranks: tuple[int, ...]
    tasks: tuple[str, ...]
    runs: int
    newest: Training


def trainings(version: Version) -> tuple[Training, ...]:
    """Return every training of a version and of all older ones, with those that measured noise."""
    return tuple(
        found
        for each in (version, *version.older)
        for one in each.sets
        for result in one.campaign.with_twins
        for record in result.completed
        if (found := training(record, version=each.name, by=one.contributor.name if one.contributor else None))
    )


def training(record: RunRecord, *, version: str, by: str | None) -> Training | None:
    """Return what a record shows; None if the run is no measurement, or shows nothing of its library."""
    case = record.case
    if not record.counts or not shows_library(case):
        return None
    settings = record.ranks[0].settings if record.ranks else {}
    package = PACKAGE_OF[case.rl_library]
    return Training(
        version=version,
        by=by,
        day=datetime.fromisoformat(record.started_utc).date() if record.started_utc else None,
        rl_library=case.rl_library,
        library_version=_text(settings.get(f"versions.{package}")),
        stack=case.stack,
        device=case.device,
        hardware=CPU if case.device == "cpu" else gpu_name(record.environment) or "unknown GPU",
        ranks=case.world_size,
        way=way_of(record),
        task=case.task,
        renderer=_text((record.workload or {}).get("renderer")),
    )


def shows_library(case: Case) -> bool:
    """Whether a run shows that its RL library works: it trains with it, or the library is LeRobot, which never does."""
    return case.learns or case.rl_library == "lerobot"


def way_of(record: RunRecord) -> Way | None:
    """Where the processes of a run were; None for several nodes of which nothing says whether they were simulated."""
    if record.case.nnodes > 1:
        simulated = record.transport.emulated if record.transport else None
        return None if simulated is None else "simulated nodes" if simulated else "several machines"
    return "image" if record.image_digest else "one machine"


def most(trainings: Iterable[Training]) -> tuple[Most, ...]:
    """One entry for each kind of hardware, most ranks first, then the newest."""
    by_hardware = grouped(trainings, lambda one: one.hardware)
    found = (_most(those) for those in by_hardware.values())
    return tuple(sorted(found, key=lambda one: (-one.ranks, -_order(one.day), one.hardware)))


def systems(trainings: Iterable[Training]) -> tuple[System, ...]:
    """Every combination that ran, in the order of its names."""
    found = grouped(trainings, lambda one: (one.rl_library, one.stack, one.device, one.hardware, one.way))
    return tuple(_system(found[key]) for key in sorted(found, key=lambda key: tuple(map(str, key))))


def versions_of(rl_library: RlLibrary, trainings: Iterable[Training]) -> tuple[str, ...]:
    """Return the versions of an RL library that ran, most runs first."""
    found = Counter(one.library_version for one in trainings if one.rl_library == rl_library and one.library_version)
    return tuple(version for version, _ in found.most_common())


def newest(trainings: Iterable[Training]) -> Training:
    """Return the training that started last. Raises ValueError for none."""
    return max(trainings, key=lambda one: _order(one.day))


def grouped[Key: Hashable](trainings: Iterable[Training], key: Callable[[Training], Key]) -> dict[Key, list[Training]]:
    """Group trainings by ``key``, in order of first appearance."""
    found: dict[Key, list[Training]] = {}
    for one in trainings:
        found.setdefault(key(one), []).append(one)
    return found


def _most(trainings: Sequence[Training]) -> Most:
    ranks = max(one.ranks for one in trainings)
    latest = newest(one for one in trainings if one.ranks == ranks)
    return Most(hardware=latest.hardware, device=latest.device, ranks=ranks, day=latest.day)


def _system(trainings: Sequence[Training]) -> System:
    first = trainings[0]
    return System(
        rl_library=first.rl_library,
        library_versions=versions_of(first.rl_library, trainings),
        stack=first.stack,
        hardware=first.hardware,
        way=first.way,
        ranks=tuple(sorted({one.ranks for one in trainings})),
        tasks=tuple(sorted({one.task for one in trainings})),
        runs=len(trainings),
        newest=newest(trainings),
    )


def _order(day: date | None) -> int:
    return 0 if day is None else day.toordinal()


def _text(value: object) -> str | None:
    return None if value is None else str(value)
