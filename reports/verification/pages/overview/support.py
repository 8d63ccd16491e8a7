"""*What ran where* counts completed trainings of this version and of older ones."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from reports.verification.figures.series import trains
from reports.verification.finding import Json
from reports.verification.samples.case_file import TWIN_SUFFIX, StoredCase
from reports.verification.samples.round_facts import gpu_model, world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion


@dataclass(frozen=True, kw_only=True)
class Run:
    """A completed run, with the day when it started, and where it ran; ``older_version`` has it, if it is older."""

    record: Json
    older_version: str | None
    day: str | None
    hardware: str
    way: str

    @property
    def case(self) -> Json:
        case: Json = self.record["case"]
        return case


def figures(version: StoredVersion) -> dict[str, Json]:
    runs = [
        _run(record, None if each is version else each.name)
        for each in (version, *version.older)
        for one in each.sets
        for stored in _cases(one)
        for record in stored.completed
    ]
    if not runs:
        return {}
    systems = _grouped(runs, lambda run: f"{_library(run)}, {run.hardware}, {run.way}")
    return {
        "all": {"runs": len(runs), "last_day": _last(runs).day},
        **{system: _system(those) for system, those in systems.items()},
        **_most(runs, "all", lambda _: ""),
        **_most(runs, "library", _library),
        **_most(runs, "task", lambda run: f"{run.case['task']}, {run.case['stack']}"),
        **_most(runs, "way", lambda run: run.way),
    }


def _system(runs: Sequence[Run]) -> Json:
    return {
        "runs": len(runs),
        "ranks": sorted({world_size(run.case) for run in runs}),
        "tasks": len({run.case["task"] for run in runs}),
        "last_day": _last(runs).day,
        "last_version": _last(runs).older_version,
    }


def _most(runs: Sequence[Run], kind: str, key: Callable[[Run], str]) -> dict[str, Json]:
    """Return the most ranks that ran on each hardware, and the last day on which as many did."""
    found = {}
    for name, those in _grouped(runs, lambda run: f"most by {kind}: {key(run)}, {run.hardware}").items():
        ranks = max(world_size(run.case) for run in those)
        found[name] = {"ranks": ranks, "day": _last([run for run in those if world_size(run.case) == ranks]).day}
    return found


def _last(runs: Sequence[Run]) -> Run:
    """Return a run of the last day, from the newest version that has one; an unknown day is before all others."""
    return max(runs, key=lambda run: run.day or "")


def _grouped(runs: Sequence[Run], key: Callable[[Run], str]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return found


def _cases(one: StoredSet) -> Iterator[StoredCase]:
    """Yield those that show that their library works, with the repeats: LeRobot never trains."""
    repeats = [stored for stored in one.cases if stored.case_id.endswith(TWIN_SUFFIX)]
    for stored in (*one.of_report, *repeats):
        if trains(stored) or stored.case["rl_library"] == "lerobot":
            yield stored


def _run(record: Json, older_version: str | None) -> Run:
    model = (gpu_model(record["environment"]) or "unknown GPU").removeprefix("NVIDIA ")
    started = record["started_utc"]
    return Run(
        record=record,
        older_version=older_version,
        day=datetime.fromisoformat(started).date().isoformat() if started else None,
        hardware="CPU" if record["case"]["device"] == "cpu" else model,
        way=_way(record),
    )


def _library(run: Run) -> str:
    return f"{run.case['rl_library']}, {run.case['stack']}"


def _way(record: Json) -> str:
    if record["case"]["nnodes"] == 1:
        return "image" if record.get("image_digest") else "one machine"
    is_emulated = (record.get("transport") or {}).get("emulated")
    return "unknown" if is_emulated is None else "simulated nodes" if is_emulated else "several machines"
