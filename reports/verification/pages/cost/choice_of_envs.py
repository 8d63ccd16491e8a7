"""How many environments fill a GPU: throughput over the most of a sweep, memory and energy of each size."""

from typing import Final

from reports.verification import formulas
from reports.verification.figures.case_figures import (
    gpu_memory_gb,
    joules_per_million_frames,
    torch_memory_of_rounds_gb,
)
from reports.verification.figures.estimates import Estimate
from reports.verification.figures.published import ratio_of
from reports.verification.figures.rows import of_pair
from reports.verification.figures.series import series_of_kind, trains
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

NEAR_MOST: Final = 0.95  # of the most throughput: the fewest environments with as much are enough

type Sizes = list[StoredCase]  # of one library on one stack, fewest environments first


def figures(one: StoredSet) -> dict[str, Json]:
    return {_name(completed): _figures(sizes, completed) for sizes, completed in _sweeps(one)}


def of_card(version: StoredVersion) -> Json | None:
    """Return the sweep that goes to the most environments, of those with intervals if there are any."""
    found = [
        (one, completed)
        for one in version.with_speeds
        for _, completed in _sweeps(one)
        if completed[0].case["device"] == "cuda"
    ]
    if not found:
        return None
    one, sizes = max(found, key=lambda each: (min(_rounds(each[1])) >= formulas.MIN_PROCESSES, _envs(each[1][-1])))
    return {"sizes_of": f"{one.folder.name}: {_name(sizes)}", "rounds": _rounds(sizes)}


def _sweeps(one: StoredSet) -> list[tuple[Sizes, Sizes]]:
    """Return all sizes of each library, and those that completed: two at least."""
    groups: dict[object, Sizes] = {}
    names = ("series", "rl_library", "stack", "device", "nnodes", "nproc_per_node")
    for cases in series_of_kind(one, "sweep"):
        for stored in sorted(filter(trains, cases), key=_envs):
            groups.setdefault(tuple(stored.case[name] for name in names), []).append(stored)
    found = [(sizes, [stored for stored in sizes if stored.published_s]) for sizes in groups.values()]
    return [(sizes, completed) for sizes, completed in found if len(completed) > 1]


def _name(completed: Sizes) -> str:
    return f"sizes from {completed[0].case_id}"


def _envs(stored: StoredCase) -> int:
    return int(stored.case["num_envs"])


def _rounds(sizes: Sizes) -> list[int]:
    return sorted({len(stored.published_s) for stored in sizes})


def _figures(sizes: Sizes, completed: Sizes) -> Json:
    most = max(completed, key=lambda one: one.frames_per_s)
    of_most = [(1.0, None) if one is most else ratio_of(most, one) for one in completed]
    index = next(index for index, (value, _) in enumerate(of_most) if value >= NEAR_MOST)
    enough = completed[index]
    beyond = [one for one in sizes if one not in completed and _envs(one) > _envs(enough)]
    ran_out = any(one.rounds[-1]["outcome"] == "oom" for one in beyond)
    is_known = enough is not completed[-1] or ran_out
    fewer_are_less = all(span and span[1] < NEAR_MOST for _, span in of_most[:index])
    is_decided = is_known and fewer_are_less and _is_enough(of_most[index])
    return {
        "enough": _envs(enough),
        "enough_is": "decided" if is_decided else "inconclusive",
        "sizes": {one.case_id: _size(one, each) for one, each in zip(completed, of_most, strict=True)},
    }


def _is_enough(of_most: Estimate) -> bool:
    value, span = of_most
    return value >= 1 or (span is not None and span[0] >= NEAR_MOST)


def _size(stored: StoredCase, of_most: Estimate) -> Json:
    joules = formulas.median_of_known(joules_per_million_frames(stored.completed))
    return {
        **of_pair("of_most", of_most),
        "gpu_memory_gb": gpu_memory_gb(stored.completed),
        "torch_memory_gb": formulas.median_of_known(torch_memory_of_rounds_gb(stored.completed)),
        "frames_per_joule": joules and 1e6 / joules,
    }
