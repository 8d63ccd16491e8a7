"""What the first page, the pages of tasks and their series answer besides figures.json: picks, and speed-ups. Pure."""

from collections.abc import Mapping, Sequence

from reports.analysis.analysed_set import Campaign, shared_kind
from reports.analysis.scaling.answer import ends, most
from reports.analysis.scaling.lines import Line, Mode, Point
from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.tasks.overview import result_with_most_frames, series_of, tasks
from reports.topics.tasks.series_answer import best_of_tuned, most_and_least_of_sweep
from suite.schema.record import CaseResult


def answer_figures(version: Version) -> Mapping[str, Figures]:
    """Return ``all``, task, task and series, or what the calculator advises on -> figures."""
    found: dict[str, Figures] = {"all": _speedups(version.lines)} if version.lines else {}
    for name_of_task in tasks(version):
        lines = [line for line in version.lines if line.task == name_of_task]
        by_series = series_of(version, name_of_task)
        task = _task(next(iter(by_series.values()))[0].rows[0].task)
        results = [result for parts in by_series.values() for part in parts for result in part.results]
        found[task] = {**_speedups(lines), "most_frames": _most_frames(results)}
        for name, parts in by_series.items():
            found[f"{task}, {name}"] = _series([line for line in lines if line.series == name], parts)
    by_key: dict[str, list[Line]] = {}
    for line in version.lines:
        by_key.setdefault(_key(line), []).append(line)
    return {**found, **{f"advice: {key}": _advice(lines) for key, lines in by_key.items()}}


def _series(lines: Sequence[Line], parts: Sequence[Campaign]) -> Figures:
    results = [result for part in parts for result in part.results]
    kind = shared_kind(parts)
    return {
        **_speedups(lines),
        "most_frames": _most_frames(results),
        "sweep": _sweep(parts) if kind == "sweep" else None,
        "tuned": _tuned(parts) if kind == "tuned" else None,
    }


def _speedups(lines: Sequence[Line]) -> Figures:
    """Of the most GPUs that any line has, if each has its own environments and if they share them."""
    modes: tuple[Mode, ...] = ("own", "split")
    return {mode: _ends([point for _, point in most(lines, mode)]) for mode in modes}


def _ends(points: Sequence[Point]) -> Figures | None:
    if not points:
        return None
    speedups = [point.speedup.value for point in points]
    return {"gpus": points[0].gpus, "least_speedup": min(speedups), "most_speedup": max(speedups)}


def _most_frames(results: Sequence[CaseResult]) -> Figures | None:
    found = result_with_most_frames(results)
    return None if found is None else {"case": found[1].case.case_id, "frames_per_s": found[0]}


def _sweep(parts: Sequence[Campaign]) -> Figures | None:
    found = most_and_least_of_sweep(parts)
    if found is None:
        return None
    top, least = found
    times = top.total_fps / least.total_fps if top.total_fps and least.total_fps else None
    return {"case": top.case_id, "frames_per_s": top.total_fps, "over": least.case_id, "times": times}


def _tuned(parts: Sequence[Campaign]) -> Figures | None:
    best = best_of_tuned(parts)
    return None if best is None else {"case": best.case.case_id, **with_interval("gain", best.gain)}


def _task(task: str) -> str:
    """What tells its name from others."""
    return task.removeprefix("Isaac-").removesuffix("-Direct")


def _key(line: Line) -> str:
    """What lines of one key share, as their cases say it."""
    case = line.points[0].case
    return f"{_task(case.task)}, {case.rl_library}, {case.minibatch_rule}, {case.num_envs} {line.mode}, {line.gpu}"


def _advice(lines: Sequence[Line]) -> Figures:
    gpus, points = ends(lines)
    speedups = [point.speedup.value for point in points]
    hours = [gpus / speedup - 1 for speedup in speedups]
    return {**(_ends(points) or {}), "more_gpu_hours": [min(hours), max(hours)], "is_sure": _is_sure(points)}


def _is_sure(points: Sequence[Point]) -> bool:
    return all(point.speedup.interval for point in points)
