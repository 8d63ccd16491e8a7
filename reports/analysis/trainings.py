"""Trainings on one GPU that several machines ran, and what their model says of cores and GPUs. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from reports.analysis.curves import as_shipped
from reports.analysis.environments import gpu_name
from reports.analysis.same_work import work_of
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.core_speed import host_of
from suite.statistics.intervals import Estimate
from suite.statistics.machine_model import MachineModel, MachineRuns
from suite.statistics.reduce import iteration_times_s, window
from suite.statistics.series_model import run_time

PACKAGES: Final = ("isaaclab", "newton", "warp-lang", "torch")  # another version of one is other work


@dataclass(frozen=True, kw_only=True)
class Training:
    """One training on one GPU, as shipped, with the machines that ran it and probed their cores."""

    case: Case  # of one of them: the others differ in nothing that changes an iteration
    machines: tuple[MachineRuns, ...]
    iterations: range  # that are compared: the window of the shortest run

    @cached_property
    def model(self) -> MachineModel:
        return MachineModel(self.machines)

    def number_with(self, gpu: str) -> int:
        return sum(machine.gpu == gpu for machine in self.machines)

    def fps(self, gpu: str) -> Estimate:
        """Frames per second at full core speed of a GPU model."""
        return self.frames(self.model.time_s(gpu))

    def frames(self, time_s: Estimate) -> Estimate:
        """Frames per second of iterations that take so long."""
        return time_s.mapped(lambda value: self.case.frames_per_iteration / value)


def trainings(results: Iterable[CaseResult]) -> tuple[Training, ...]:
    """Find the trainings that two machines or more ran, those of most machines first."""
    by_work: dict[tuple[object, ...], list[RunRecord]] = {}
    for result in as_shipped(results):
        for record in result.completed:
            if result.case.world_size == 1 and record.environment.host_label and run_time(record).log_probe is not None:
                by_work.setdefault((work_of(result.case), _versions(record)), []).append(record)
    found = [training for records in by_work.values() if len((training := _training(records)).machines) > 1]
    return tuple(sorted(found, key=lambda training: (-len(training.machines), training.case.case_id)))


def _versions(record: RunRecord) -> tuple[object, ...]:
    settings = record.ranks[0].settings
    return tuple(settings.get(f"versions.{name}") for name in PACKAGES)


def _training(records: Sequence[RunRecord]) -> Training:
    iterations = window(min(records, key=lambda record: len(iteration_times_s(record))))
    runs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for record in records:
        time = run_time(record, iterations)
        if time.log_probe is not None:
            place = gpu_name(record.environment) or "", host_of(record.environment)[0] or ""
            runs.setdefault(place, []).append((time.log_time, time.log_probe))
    machines = (MachineRuns(label=label, gpu=gpu, runs=tuple(of_machine)) for (gpu, label), of_machine in runs.items())
    return Training(case=records[0].case, machines=tuple(machines), iterations=iterations)
