"""How long each run of a curve took to the highest reward that all runs of the curve reached. Pure."""

import math
from collections.abc import Hashable, Mapping, Sequence

from reports.verification import formulas
from reports.verification.figures import rewards
from reports.verification.figures.published import curve_of
from reports.verification.figures.series import series_of_kind
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet


def times_to_reward(one: StoredSet) -> Mapping[str, tuple[float, list[float | None]]]:
    """Return case id -> the reward, and seconds of each run, None for one that ended before; of series that scale."""
    found = {}
    for cases in series_of_kind(one, "scaling", trained=True):
        for curve in _curves(cases).values() if not _compares_nodes_alone(cases) else ():
            runs = [rewards.curve_of(record) for stored in curve for record in stored.completed]
            reward = _reached_by_all(runs)
            if reward is not None:
                for stored in curve:
                    found[stored.case_id] = reward, [_time_s(record, reward) for record in stored.completed]
    return found


def _curves(cases: Sequence[StoredCase]) -> Mapping[Hashable, list[StoredCase]]:
    """The same ranks on more nodes are a curve of their own; so are emulated nodes."""
    curves: dict[Hashable, list[StoredCase]] = {}
    for stored in cases:
        if stored.completed:
            nodes = [other.case["nnodes"] for other in cases if _size(other) == _size(stored)]
            emulated = any((record.get("transport") or {}).get("emulated") for record in stored.completed)
            more = stored.case["nnodes"] if stored.case["nnodes"] > min(nodes) else None
            curves.setdefault((curve_of(stored.case), more, emulated), []).append(stored)
    return curves


def _compares_nodes_alone(cases: Sequence[StoredCase]) -> bool:
    """Whether no curve has several numbers of ranks, and one has several numbers of nodes."""
    sizes = {_size(stored) for stored in cases}
    places = {(_size(stored), stored.case["nnodes"]) for stored in cases}
    return len(sizes) == len({curve_of(stored.case) for stored in cases}) and len(places) > len(sizes)


def _size(stored: StoredCase) -> Hashable:
    return curve_of(stored.case), world_size(stored.case)


def _reached_by_all(runs: Sequence[rewards.Curve]) -> float | None:
    """None where a run began with as much, or has too few rewards."""
    smooth = [rewards.smooth(run) for run in runs]
    if not smooth or not all(smooth):
        return None
    reward = min(map(max, smooth))
    return reward if reward > max(curve[0] for curve in smooth) else None


def _time_s(record: Json, reward: float) -> float | None:
    """Return the time of the iterations until the median of the last few rewards is at least as much."""
    run = rewards.curve_of(record)
    for end in range(rewards.WINDOW, len(run) + 1):
        window = [value for value in run[end - rewards.WINDOW : end] if value is not None]
        if len(window) == rewards.WINDOW and formulas.median(window) >= reward:
            return math.fsum(formulas.slowest_s(record)[:end])
    return None
