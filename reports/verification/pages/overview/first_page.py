"""The first page counts what was measured, how sure it is, and runs by GPU model."""

from collections.abc import Sequence
from datetime import datetime

from reports.verification import formulas
from reports.verification.figures.series import Line, lines_of
from reports.verification.finding import Json
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    records = completed(version.with_speeds)
    if not records:
        return {}
    cases = [record["case"] for record in records]
    days = sorted(datetime.fromisoformat(start).date() for record in records if (start := record["started_utc"]))
    everything = {
        "tasks": len({case["task"] for case in cases}),
        "libraries": len({case["rl_library"] for case in cases}),
        "most_ranks_of_a_machine": max(case["nproc_per_node"] for case in cases),
        "runs": len(completed(version.sets)),
        "unsettled": sum(not formulas.has_settled(record) for record in completed(version.sets)),
        "days": [days[0].isoformat(), days[-1].isoformat()] if days else None,
        "speedups": _speedups([line for one in version.with_speeds for line in lines_of(one)]),
    }
    return {"all": everything}


def completed(sets: Sequence[StoredSet]) -> list[Json]:
    return [record for one in sets for stored in one.of_report for record in stored.completed]


def _speedups(lines: Sequence[Line]) -> Json:
    """Count speed-ups over one GPU, and the runs on which they and their baselines rest."""
    speedups = [line.speedup(point) for line in lines for point in line.points[1:]]
    records = [record for line in lines for point in line.points for record in point.completed]
    return {
        "speedups": len(speedups),
        "with_interval": sum(span is not None for _, span in speedups),
        "runs": len(records),
        "settled": sum(map(formulas.has_settled, records)),
    }


def gpu_models(version: StoredVersion) -> dict[str, Json]:
    """Return the runs on each GPU model, of all sets."""
    found: dict[str, list[Json]] = {}
    for record in completed(version.sets):
        for model in {gpu["name"] for gpu in record["environment"].get("gpus", [])}:
            found.setdefault(model, []).append(record)
    return {
        model: {
            "runs": len(those),
            "ranks": sorted({world_size(record["case"]) for record in those}),
            "tasks": sorted({record["case"]["task"] for record in those}),
        }
        for model, those in found.items()
    }
