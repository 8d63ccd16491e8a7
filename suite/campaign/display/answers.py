"""What a campaign says of each number of GPUs and of environments, in sentences with intervals. Pure."""

from collections.abc import Iterator, Sequence

from suite.files.wording import counted
from suite.schema.record import CaseResult
from suite.statistics.intervals import Estimate, mean_of
from suite.statistics.reduce import completed_times_s
from suite.statistics.series_model import SetModel
from suite.statistics.speed import core_sentence, side_of, speed_of, twice_the_core
from suite.statistics.twins import is_twin


def answers(results: Sequence[CaseResult]) -> dict[str, list[str]]:
    """Sentences by task and library: the time of each configuration, and its ratio to the smallest one.

    ``results``: of one campaign, with repeats. Nothing of what has several nodes or completed no run.
    """
    model, by_work = SetModel.of(results), dict[str, list[CaseResult]]()
    for result in results:
        case = result.case
        if case.learns and result.completed and case.nnodes == 1 and not is_twin(case):
            name = f"{case.task}, {case.rl_library}" + ("" if case.stack == "kitless" else f", {case.stack}")
            by_work.setdefault(name, []).append(result)
    return {name: list(_of_work(own, model)) for name, own in by_work.items()}


def _of_work(results: Sequence[CaseResult], model: SetModel) -> Iterator[str]:
    first, *others = sorted(results, key=_size)
    yield f"{_frames(first)}, {counted(len(first.completed), 'round')}."
    for other in others:
        base = min((one for one in results if one.case.series == other.case.series), key=_size)
        base = first if base is other else base
        more = model.speedup(other.case, base.case)
        yield f"{_frames(other)}" + ("." if more is None else f", {_times(other, base, more)}.")
    slope = model.core_slope(first.case)
    if slope is not None and slope.interval is not None:
        value, low, high = map(twice_the_core, (slope.value, *slope.interval))
        yield core_sentence(*slope.interval, f"{value} ({low} to {high})")


def _size(result: CaseResult) -> tuple[int, int, str]:
    return result.case.world_size, result.case.num_envs_global, result.case.case_id


def _frames(result: CaseResult) -> str:
    case = result.case
    fps = mean_of(completed_times_s(result.rounds)).mapped(lambda time_s: case.frames_per_iteration / time_s)
    variant = f" ({case.case_id.rpartition('/')[2]})" if case.division == "open" else ""
    size = f"{counted(case.world_size, 'GPU')}, {case.num_envs_global:,} environments{variant}"
    return f"{size}: {fps.value:,.0f} frames/s{_between(fps, '{:,.0f}')}"


def _times(other: CaseResult, base: CaseResult, more: Estimate) -> str:
    of = f"those of {base.case.num_envs_global:,} on {counted(base.case.world_size, 'GPU')}"
    said = f"{more.value:.3g} times {of}{_between(more, '{:.3g}')}"
    ranks = other.case.world_size / base.case.world_size
    if ranks == 1:
        return f"{said}: {speed_of(more)}"
    share = more.mapped(lambda times: times / ranks)
    side = side_of(share)
    verdict = f"{side} of 80 %" if side == "within noise" else side
    return f"{said}, {share.value:.1%} of the ideal{_between(share, '{:.1%}')}: {verdict}"


def _between(found: Estimate, form: str) -> str:
    return "" if found.interval is None else f" ({form.format(found.interval[0])} to {form.format(found.interval[1])})"
