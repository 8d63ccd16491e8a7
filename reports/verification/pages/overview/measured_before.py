"""What older versions have: on the first page what no newer one has, and on pages of GPU models what ran on them."""

from collections.abc import Iterator, Sequence

from reports.verification.finding import Json
from reports.verification.pages.overview.first_page import completed, gpu_models
from reports.verification.samples.stored_version import StoredVersion

CPUS = "CPUs"


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return what is said to be missing in all versions, and what each older one has beyond all newer ones."""
    runs = [completed(each.with_speeds) for each in (version, *version.older)]
    if not runs[0]:
        return {}
    found: dict[str, Json] = {"all versions": _asked([record for those in runs for record in those])}
    for number, older in enumerate(version.older, start=1):
        newer = [record for those in runs[:number] for record in those]
        found[f"only in {older.name}"] = _beyond(runs[number], newer)
    return found


def _asked(records: Sequence[Json]) -> Json:
    return {
        "most_ranks_of_a_machine": _most_ranks(records),
        "several_real_nodes": any(record["case"]["nnodes"] > 1 and not _is_emulated(record) for record in records),
        "rtx_renderer": any(record["case"]["stack"] == "isaacsim" for record in records),
        "official_assets": any(record["case"]["assets"] == "official" for record in records),
    }


def _is_emulated(record: Json) -> bool:
    return bool((record.get("transport") or {}).get("emulated"))


def _beyond(older: Sequence[Json], newer: Sequence[Json]) -> Json:
    most = _most_ranks(older)
    return {
        "most_ranks_of_a_machine": most if most is not None and most > (_most_ranks(newer) or 0) else None,
        "gpus": sorted({*_gpus(older)} - {*_gpus(newer)}),
        "tasks": sorted({*_of_cases(older, "task")} - {*_of_cases(newer, "task")}),
        "libraries": sorted({*_of_cases(older, "rl_library")} - {*_of_cases(newer, "rl_library")}),
    }


def _most_ranks(records: Sequence[Json]) -> int | None:
    return max((record["case"]["nproc_per_node"] for record in records), default=None)


def _of_cases(records: Sequence[Json], name: str) -> list[str]:
    return sorted({record["case"][name] for record in records})


def _gpus(records: Sequence[Json]) -> Iterator[str]:
    return (gpu["name"] for record in records for gpu in record["environment"].get("gpus", []))


# --- GPU models ---


def of_models(version: StoredVersion) -> dict[str, Json]:
    """Return what older versions have of each model of this one, and of each that only they have."""
    found = {
        f"{model} in {older.name}": _on_model(older, model)
        for model in sorted(_models(version))
        for older in version.older
        if model in _models(older)
    }
    known = {*gpu_models(version)}
    for older in version.older:
        rows = {model: row for model, row in gpu_models(older).items() if model not in known}
        found |= {f"{model}, only in {older.name}": row for model, row in rows.items()}
        known |= {*rows}
    return found


def _on_model(version: StoredVersion, model: str) -> Json:
    records = [record for record in completed(version.sets) if _model(record) == model]
    return {
        "most_ranks_of_a_machine": _most_ranks(records),
        "tasks": _of_cases(records, "task"),
        "runs": len(records),
    }


def _models(version: StoredVersion) -> set[str]:
    """Return those that a round was on, even if none completed."""
    return {_model(record) for one in version.sets for stored in one.of_report for record in stored.rounds}


def _model(record: Json) -> str:
    gpus = record["environment"].get("gpus", [])
    return str(gpus[0]["name"]) if gpus else CPUS
