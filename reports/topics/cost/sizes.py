"""How many environments to give one GPU, from series that vary nothing else. Pure.

More environments bring more frames until the GPU is full; beyond, they bring memory and staleness only. So the question
is which is the fewest that is within a stated part of the most throughput measured. Where throughput still rises at the
most environments that were tried, only memory that ran out beyond makes that an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reports.analysis.rows import case_times
from reports.topics.cost.model import Pick, at_least
from suite.schema.record import CaseResult, Outcome
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, mean_of
from suite.statistics.series_model import SetModel
from suite.statistics.twins import is_twin

# Of the most. A convention, stated so that everyone can judge by another.
NEAR_MOST: Final = 0.95


@dataclass(frozen=True, kw_only=True)
class Size:
    """One measured number of environments of a rank."""

    case_id: str
    num_envs: int
    rounds: int
    total_fps: float
    of_most: Estimate  # throughput over the most of any size; no interval for the most itself


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A number of environments without a completed round."""

    case_id: str
    num_envs: int
    outcome: Outcome  # of its last round


@dataclass(frozen=True, kw_only=True)
class SizeChoice:
    """Sizes of one library on one stack, fewest environments first. ``Pick.number`` is one of environments here."""

    series: str
    who: str
    sizes: tuple[Size, ...]
    enough: Pick
    failed: tuple[Failed, ...]


def size_choices(results: Sequence[CaseResult]) -> tuple[SizeChoice, ...]:
    """``results`` of one sweep. A library on a stack is left out where fewer than two sizes completed."""
    groups: dict[tuple[str, ...], list[CaseResult]] = {}
    for result in sorted(results, key=lambda result: result.case.num_envs):
        if not is_twin(result.case) and result.case.learns:
            case = result.case
            groups.setdefault((case.series, case.rl_library, case.stack, case.device, case.topology), []).append(result)
    found = [_choice(group) for group in groups.values() if sum(bool(one.completed) for one in group) > 1]
    return tuple(found)


def _choice(group: Sequence[CaseResult]) -> SizeChoice:
    completed, model = [result for result in group if result.completed], SetModel.of(group)
    most = max(completed, key=_fps)
    sizes = tuple(
        _size(result, None if result is most else model.speedup(result.case, most.case)) for result in completed
    )
    failed = tuple(_failed(result) for result in group if not result.completed)
    case = group[0].case
    return SizeChoice(
        series=case.series,
        who=f"{case.rl_library}, {case.stack}",
        sizes=sizes,
        enough=_enough(sizes, failed),
        failed=failed,
    )


def _failed(result: CaseResult) -> Failed:
    return Failed(case_id=result.case.case_id, num_envs=result.case.num_envs, outcome=result.rounds[-1].outcome)


def _fps(result: CaseResult) -> float:
    return result.case.frames_per_iteration / mean_of(case_times(result).values()).value


def _size(result: CaseResult, of_most: Estimate | None) -> Size:
    return Size(
        case_id=result.case.case_id,
        num_envs=result.case.num_envs,
        rounds=len(result.completed),
        total_fps=_fps(result),
        of_most=of_most or Estimate(value=1.0, interval=None),
    )


def _enough(sizes: Sequence[Size], failed: Sequence[Failed]) -> Pick:
    """The fewest within ``NEAR_MOST`` of the most by the means; decided if it surely is, and every fewer is not."""
    index = next(index for index, size in enumerate(sizes) if size.of_most.value >= NEAR_MOST)
    picked = sizes[index]
    unsure = [size for size in sizes[:index] if at_least(size.of_most, NEAR_MOST) is not False]
    if picked.of_most.value < 1 and not at_least(picked.of_most, NEAR_MOST):
        unsure.append(picked)
    too_many = [one.num_envs for one in failed if one.outcome == "oom" and one.num_envs > picked.num_envs]
    is_rising = picked is sizes[-1] and not too_many
    if not unsure and not is_rising:
        reason = f"{picked.of_most.value:.0%} of the most; every fewer is surely below {NEAR_MOST:.0%}"
        if picked is sizes[-1]:
            reason += f", and {min(too_many):,} ran out of memory"
        return Pick(number=picked.num_envs, word="clear", reason=reason)
    reasons = [_unsure(unsure[0])] if unsure else []
    if is_rising:
        reasons.append(f"throughput still rises at {picked.num_envs:,}, the most that ran")
    return Pick(number=picked.num_envs, word="within noise", reason="; ".join(reasons))


def _unsure(size: Size) -> str:
    if size.of_most.interval is None:
        return f"too few rounds for an interval, which needs {MIN_ROUNDS_FOR_INTERVAL}"
    low, high = size.of_most.interval
    return f"the interval at {size.num_envs:,}, {low:.0%} to {high:.0%}, contains {NEAR_MOST:.0%}"
