"""*What ran where* counts completed trainings of this version and of older ones."""

from collections.abc import Iterator

from reports.verification.figures.series import trains
from reports.verification.finding import Json
from reports.verification.samples.case_file import TWIN_SUFFIX, StoredCase
from reports.verification.samples.round_facts import gpu_model, world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    found: dict[str, list[Json]] = {}
    for each in (version, *version.older):
        for stored in (stored for one in each.sets for stored in _cases(one)):
            for record in stored.completed:
                found.setdefault(_system(record), []).append(record["case"])
    if not found:
        return {}
    return {
        "all": {"runs": sum(map(len, found.values()))},
        **{
            system: {
                "runs": len(cases),
                "ranks": sorted({world_size(case) for case in cases}),
                "tasks": len({case["task"] for case in cases}),
            }
            for system, cases in found.items()
        },
    }


def _cases(one: StoredSet) -> Iterator[StoredCase]:
    """Yield those that show that their library works, with the repeats: LeRobot never trains."""
    repeats = [stored for stored in one.cases if stored.case_id.endswith(TWIN_SUFFIX)]
    for stored in (*one.of_report, *repeats):
        if trains(stored) or stored.case["rl_library"] == "lerobot":
            yield stored


def _system(record: Json) -> str:
    case, model = record["case"], (gpu_model(record["environment"]) or "unknown GPU").removeprefix("NVIDIA ")
    hardware = "CPU" if case["device"] == "cpu" else model
    return f"{case['rl_library']}, {case['stack']}, {hardware}, {_way(record)}"


def _way(record: Json) -> str:
    if record["case"]["nnodes"] == 1:
        return "image" if record.get("image_digest") else "one machine"
    is_emulated = (record.get("transport") or {}).get("emulated")
    return "unknown" if is_emulated is None else "simulated nodes" if is_emulated else "several machines"
