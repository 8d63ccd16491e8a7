"""A folder of imported bundles: its runs by case, and efficiencies between cases that differ in ranks alone.

FOLDER/isaaclab-bundles/*.json   the files as they were written, byte by byte
FOLDER/SHA256SUMS                their hashes, written when they were imported
"""

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from reports.sets.imported.reading import ImportedRun, read_run
from reports.sets.manifest import Contributor
from suite.errors import ForeignResultError
from suite.records.folders import BUNDLES, json_files

type Kind = Literal["strong", "weak"]


@dataclass(frozen=True, kw_only=True)
class ForeignCase:
    """Runs that differ in seed and chance alone. Figures are medians over the completed ones, None without any."""

    runs: tuple[ImportedRun, ...]

    @property
    def completed(self) -> tuple[ImportedRun, ...]:
        return tuple(run for run in self.runs if run.bundle.run.status == "completed")

    @property
    def first(self) -> ImportedRun:
        return self.runs[0]

    @property
    def world_size(self) -> int:
        return self.first.bundle.world_size

    @property
    def num_envs(self) -> int:
        return self.first.bundle.run.num_envs

    @property
    def iteration_time_s(self) -> float | None:
        return self._median(lambda run: run.bundle.runtime.iteration_time_s.mean)

    @property
    def total_fps(self) -> float | None:
        return self._median(lambda run: run.bundle.runtime.total_fps.mean)

    @property
    def collection_fps(self) -> float | None:
        return self._median(lambda run: run.bundle.runtime.collection_fps.mean)

    @property
    def iteration_time_range_s(self) -> tuple[float, float] | None:
        times_s = [run.bundle.runtime.iteration_time_s.mean for run in self.completed]
        return (min(times_s), max(times_s)) if len(times_s) > 1 else None

    def _median(self, value: Callable[[ImportedRun], float]) -> float | None:
        values = [value(run) for run in self.completed]
        return statistics.median(values) if values else None


@dataclass(frozen=True, kw_only=True)
class RankZeroEfficiency:
    """Of a case against the one with the fewest ranks that is otherwise the same, by the clock of rank 0."""

    kind: Kind
    case: ForeignCase
    base: ForeignCase
    speedup: float
    efficiency: float


@dataclass(frozen=True, kw_only=True)
class ForeignSet:
    name: str  # of its folder; empty when the folder is the whole report
    title: str
    folder: Path
    cases: tuple[ForeignCase, ...]
    contributor: Contributor | None = None

    @property
    def runs(self) -> tuple[ImportedRun, ...]:
        return tuple(run for case in self.cases for run in case.runs)


def is_foreign(folder: Path) -> bool:
    return (folder / BUNDLES).is_dir()


def bundle_paths(folder: Path) -> list[Path]:
    """Raises StoreError for a folder that cannot be read."""
    bundles = folder / BUNDLES
    return [path for path in json_files(bundles) if path.parent == bundles]


def read_foreign_set(folder: Path, *, name: str, title: str, contributor: Contributor | None) -> ForeignSet:
    """Raises ForeignResultError when there is no bundle, one is not valid, or one is there twice."""
    runs = [read_run(path) for path in bundle_paths(folder)]
    if not runs:
        raise ForeignResultError(
            f"{folder / BUNDLES} holds no bundle. Import some into it with `nox -s import -- FILE... --out {folder}`."
        )
    refuse_repeated(runs)
    return ForeignSet(name=name, title=title, folder=folder, cases=cases_of(runs), contributor=contributor)


def refuse_repeated(runs: Sequence[ImportedRun]) -> None:
    """One run given twice would look like two. Raises ForeignResultError."""
    seen: dict[tuple[str, str], str] = {}
    for run in runs:
        identity = (run.bundle.run.run_id, run.bundle.run.start_time_utc)
        if identity in seen:
            raise ForeignResultError(
                f"{seen[identity]} and {run.name} are the same run, {run.bundle.run.run_id}; allowed is one file a run."
                " Leave one of them out."
            )
        seen[identity] = run.name


def cases_of(runs: Sequence[ImportedRun]) -> tuple[ForeignCase, ...]:
    """Ordered by task, library, ranks and environments; runs by their start."""
    by_key: dict[tuple[object, ...], list[ImportedRun]] = {}
    for run in sorted(runs, key=lambda run: (run.bundle.started, run.name)):
        by_key.setdefault((*_same_work(run), *_size(run)), []).append(run)
    cases = [ForeignCase(runs=tuple(found)) for found in by_key.values()]
    return tuple(
        sorted(
            cases,
            key=lambda case: (
                case.first.bundle.run.task,
                case.first.bundle.run.framework,
                case.world_size,
                case.num_envs,
                case.first.bundle.run.start_time_utc,
            ),
        )
    )


def efficiencies(cases: Sequence[ForeignCase]) -> tuple[RankZeroEfficiency, ...]:
    """Between cases with the same environments in all (strong) or for each rank (weak), and nothing else different."""
    return tuple(
        found
        for kind, envs in _ENVIRONMENTS.items()
        for group in _groups(cases, envs)
        for found in _of_group(kind, group)
    )


_ENVIRONMENTS: Final[dict[Kind, Callable[[ForeignCase], int]]] = {
    "strong": lambda case: case.num_envs,
    "weak": lambda case: case.first.bundle.num_envs_per_rank,
}


def _groups(cases: Sequence[ForeignCase], envs: Callable[[ForeignCase], int]) -> list[list[ForeignCase]]:
    groups: dict[tuple[object, ...], list[ForeignCase]] = {}
    for case in cases:
        groups.setdefault((*_same_work(case.first), envs(case)), []).append(case)
    return list(groups.values())


def _of_group(kind: Kind, group: Sequence[ForeignCase]) -> Iterator[RankZeroEfficiency]:
    ordered = sorted(group, key=lambda case: case.world_size)
    base = ordered[0]  # measured or not: another one would hide that it failed
    for case in ordered[1:]:
        ranks = case.world_size / base.world_size
        if case.iteration_time_s is None or base.iteration_time_s is None or ranks == 1:
            continue
        work = case.num_envs / base.num_envs
        speedup = work * base.iteration_time_s / case.iteration_time_s
        yield RankZeroEfficiency(kind=kind, case=case, base=base, speedup=speedup, efficiency=speedup / ranks)


def _size(run: ImportedRun) -> tuple[object, ...]:
    return run.bundle.world_size, run.bundle.num_nodes, run.bundle.run.num_envs


def _same_work(run: ImportedRun) -> tuple[object, ...]:
    """Everything but the ranks, the environments, the seed and what was measured."""
    bundle = run.bundle
    timing = bundle.runtime.environment_step_timing
    hardware = bundle.hardware
    return (
        bundle.run.task,
        bundle.run.framework,
        bundle.run.config,
        bundle.steps_per_env,
        bundle.run.max_iterations,  # a mean over few iterations holds more of the slow first ones
        None if timing is None else timing.measurement_mode,
        frozenset((gpu.name, gpu.mem_gb) for gpu in hardware.gpu_devices),
        (hardware.cpu_name, hardware.cpu_count),
        bundle.versions,
        bundle.labscale_case_id is None,  # labscale's bundles hold its own clock's times
    )
