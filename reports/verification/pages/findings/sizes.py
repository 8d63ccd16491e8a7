"""How many environments fill a GPU: frames per second of each size over the most of any size."""

from collections.abc import Sequence
from typing import Final

from reports.verification.figures.round_columns import STEP, rate
from reports.verification.figures.series import series_of_kind, trains
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.stored_version import StoredVersion

HALF: Final = 0.5


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return each size, then for each library and stack the least size that has half of the most."""
    found: dict[str, Json] = {}
    for one in version.with_speeds:
        for cases in series_of_kind(one, "sweep"):
            if any(map(trains, cases)):
                for who, group in _groups(cases).items():
                    rows = _of_most(group)
                    found |= {f"{one.folder.name}: {case_id}: size": row for case_id, row in rows.items()}
                    found[f"{one.folder.name}: {group[0].case['series']}: {who}"] = _half(group, rows)
    return found


def _groups(cases: Sequence[StoredCase]) -> dict[str, list[StoredCase]]:
    groups: dict[str, list[StoredCase]] = {}
    for stored in sorted(cases, key=lambda stored: int(stored.case["num_envs"])):
        if stored.completed and stored.case["device"] == "cuda":
            groups.setdefault(f"{stored.case['rl_library']}, {stored.case['stack']}", []).append(stored)
    return groups


def _of_most(group: Sequence[StoredCase]) -> dict[str, Json]:
    total = {stored.case_id: stored.frames_per_s for stored in group}
    step = {stored.case_id: fps for stored in group if (fps := rate(stored, STEP)) is not None}
    return {
        stored.case_id: {
            "step_of_most": step[stored.case_id] / max(step.values()) if stored.case_id in step else None,
            "total_of_most": total[stored.case_id] / max(total.values()),
        }
        for stored in group
    }


def _half(group: Sequence[StoredCase], rows: dict[str, Json]) -> Json:
    enough = [stored.case["num_envs"] for stored in group if (rows[stored.case_id]["step_of_most"] or 0.0) >= HALF]
    return {"environments_with_half_of_most": enough[0] if enough else None}
