"""What the first page, a task's page and its series answer: speed-ups over one GPU, most frames, advice."""

from collections.abc import Callable, Iterable, Sequence

from reports.verification.figures.rows import of_pair
from reports.verification.figures.series import (
    Line,
    gpu_of,
    kind_of,
    lines_of,
    series_of,
    short_task,
    trains,
    with_cold_starts,
)
from reports.verification.finding import Json
from reports.verification.pages.tuning.changed_settings import changed_pairs, gain_of, num_seeds
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import trainings, world_size
from reports.verification.samples.stored_version import StoredVersion

type Cases = list[StoredCase]


def figures(version: StoredVersion) -> dict[str, Json]:
    lines = [line for one in version.with_speeds for line in lines_of(one)]
    parts = [cases for one in version.with_speeds for cases in series_of(one.of_report).values()]
    found = {"all": _speedups(lines)} if lines else {}
    for task, of_task in _grouped(parts, lambda cases: short_task(cases[0])).items():
        ours = [line for line in lines if short_task(line.points[0]) == task]
        found[task] = {**_speedups(ours), "most_frames": _most_frames(of_task)}
        for name, of_series in _grouped(of_task, lambda cases: str(cases[0].case["series"])).items():
            found[f"{task}, {name}"] = {
                **_speedups([line for line in ours if line.case["series"] == name]),
                "most_frames": _most_frames(of_series),
                "sweep": _sweep(of_series) if _is_kind(of_series, "sweep") else None,
                "tuned": _tuned(version, of_series) if _is_kind(of_series, "tuned") else None,
            }
    advice = _grouped(lines, _key)
    return {**found, **{f"advice: {key}": _advice(alike) for key, alike in advice.items()}}


def _grouped[T](things: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    found: dict[str, list[T]] = {}
    for thing in things:
        found.setdefault(key(thing), []).append(thing)
    return found


def _is_kind(parts: Sequence[Cases], kind: str) -> bool:
    return {kind_of(cases) for cases in parts} == {kind}


# --- speed-ups over one GPU ---


def _speedups(lines: Sequence[Line]) -> Json:
    """Return those on the most GPUs, if each has its own environments and if they share them."""
    found: Json = {}
    for mode in ("own", "split"):
        ends = [line.points[-1] for line in lines if line.mode == mode]
        gpus = max((world_size(point.case) for point in ends), default=0)
        found[mode] = _ends([line for line in lines if line.mode == mode], gpus) if ends else None
    return found


def _ends(lines: Sequence[Line], gpus: int) -> Json:
    found = [line.speedup(point)[0] for line in lines for point in line.points if world_size(point.case) == gpus]
    return {"gpus": gpus, "least_speedup": min(found), "most_speedup": max(found)}


def _key(line: Line) -> str:
    case = line.case
    what = f"{short_task(line.points[0])}, {case['rl_library']}, {case['minibatch_rule']}"
    return f"{what}, {case['num_envs']} {line.mode}, {gpu_of(line)}"


def _advice(lines: Sequence[Line]) -> Json:
    """Return the speed-ups on the most GPUs, and how many more GPU-hours than on one a training takes there."""
    gpus = max(world_size(line.points[-1].case) for line in lines)
    ends = _ends(lines, gpus)
    spans = [line.speedup(point)[1] for line in lines for point in line.points if world_size(point.case) == gpus]
    hours = [gpus / ends[name] - 1 for name in ("most_speedup", "least_speedup")]
    return {**ends, "more_gpu_hours": hours, "is_sure": None not in spans}


# --- picks ---


def _most_frames(parts: Sequence[Cases]) -> Json | None:
    """Return the most frames per second of one training as shipped on GPUs, of series without cold starts."""
    every = [stored for cases in parts for stored in cases]
    cold = with_cold_starts(every)
    kept = [stored for stored in every if stored.case["series"] not in cold and trainings(stored.case) == 1]
    known = [stored for stored in kept if trains(stored) and stored.published_s and _is_as_shipped(stored.case)]
    most = max(known, key=lambda stored: stored.frames_per_s, default=None)
    return None if most is None else {"case": most.case_id, "frames_per_s": most.frames_per_s}


def _is_as_shipped(case: Json) -> bool:
    return case["device"] == "cuda" and case["nnodes"] == 1 and case.get("division") != "open"


def _sweep(parts: Sequence[Cases]) -> Json | None:
    """Return the case with the most frames per second over that with the fewest environments of its set and library."""
    known = [
        (stored, cases)
        for cases in parts
        for stored in cases
        if stored.published_s and stored.case.get("workload") != "all_reduce"
    ]
    if not known:
        return None
    most, of_set = max(known, key=lambda each: each[0].frames_per_s)
    kind = most.case["rl_library"], most.case["stack"]
    alike = [one for one in of_set if one.published_s and (one.case["rl_library"], one.case["stack"]) == kind]
    least = min(alike, key=lambda one: one.case["num_envs"])
    fps, over = most.frames_per_s, least.frames_per_s
    return {"case": most.case_id, "frames_per_s": fps, "over": least.case_id, "times": fps / over}


def _tuned(version: StoredVersion, parts: Sequence[Cases]) -> Json | None:
    """Return the change that gains most, one with several seeds or an interval if there is any."""
    ours = {id(stored) for cases in parts for stored in cases}
    pairs = [pair for one in version.with_speeds for pair in changed_pairs(one) if id(pair[1]) in ours]
    known = [(min(num_seeds(pair)) > 1, gain, pair) for pair in pairs if (gain := gain_of(pair))]
    if not known:
        return None
    _, gain, pair = max(known, key=lambda each: (each[0], each[1][1] is not None, each[1][0]))
    return {"case": pair[1].case_id, **of_pair("gain", gain)}
