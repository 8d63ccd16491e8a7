"""How many GPUs to take: for a deadline, for a budget, and until one more is not worth it. Pure.

From measured points only: nothing is interpolated or predicted. Every claim is compared with the interval over rounds,
so it is `within noise` where they allow another answer; what the means say is kept beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from reports.analysis.scaling.scaling_groups import ScalingGroup, ScalingPoint
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate, mean_of

# Of what a GPU gives where the fewest are used. A convention, stated so that everyone can judge by another.
KNEE_WORTH: Final = 0.5

type Word = Literal["clear", "within noise"]


@dataclass(frozen=True, kw_only=True)
class Option:
    """One measured number of ranks. Divided by ranks and multiplied by frames these are hours of a training."""

    world_size: int
    rounds: int
    total_fps: float
    wall_s_per_frame: Estimate
    rank_s_per_frame: Estimate  # of all ranks together: what a budget pays for
    over_cheapest: Estimate  # rank time of a frame over the least of any option
    # What each rank gives that was added since the option before, in ranks of the baseline. None for the baseline, and
    # where that did not complete.
    worth: Estimate | None
    start_up_s: float | None  # of a process, not in the others


@dataclass(frozen=True, kw_only=True)
class Pick:
    """A measured number. ``clear`` only where the intervals leave no other; else it is what the means say."""

    number: int  # of ranks here
    word: Word
    reason: str


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The options of one curve, fewest ranks first."""

    series: str
    curve: str
    options: tuple[Option, ...]
    cheapest: Pick
    fastest: Option
    knee: Pick | None  # None where it cannot be asked: one option only, or a baseline that did not complete


def choice(group: ScalingGroup) -> Choice | None:
    """None where no round completed."""
    points = group.measured
    if not points:
        return None
    least = min(points, key=_rank_s_per_frame)
    previous = [None, *points[:-1]]
    options = tuple(_option(group, point, before, least) for point, before in zip(points, previous, strict=True))
    return Choice(
        series=group.series,
        curve=group.curve,
        options=options,
        cheapest=_cheapest(options, least.world_size),
        fastest=max(options, key=lambda option: option.total_fps),
        knee=_knee(options) if len(options) > 1 and group.baseline.times_s else None,
    )


def at_least(value: Estimate, threshold: float) -> bool | None:
    """Whether the whole interval is; None where it lies on both sides, or there is none."""
    if value.interval is None:
        return None
    low, high = value.interval
    return True if low >= threshold else False if high < threshold else None


def scaled(value: Estimate, factor: float) -> Estimate:
    return value.mapped(lambda each: factor * each)


def _rank_s_per_frame(point: ScalingPoint) -> float:
    return point.world_size / point.total_fps


def _option(group: ScalingGroup, point: ScalingPoint, before: ScalingPoint | None, least: ScalingPoint) -> Option:
    per_iteration = mean_of(point.times_s.values())
    wall_s_per_frame = scaled(per_iteration, 1 / point.frames_per_iteration)
    return Option(
        world_size=point.world_size,
        rounds=len(point.times_s),
        total_fps=point.total_fps,
        wall_s_per_frame=wall_s_per_frame,
        rank_s_per_frame=scaled(wall_s_per_frame, point.world_size),
        over_cheapest=_over(group, point, least),
        worth=None if before is None or not group.baseline.times_s else _worth(group, before, point),
        start_up_s=point.start_up_s,
    )


def _over(group: ScalingGroup, point: ScalingPoint, least: ScalingPoint) -> Estimate:
    longer = group.model.ratio(point.case, least.case)
    if point is least or longer is None:
        return Estimate(value=1.0, interval=None)
    work = (point.world_size / point.frames_per_iteration) / (least.world_size / least.frames_per_iteration)
    return scaled(longer, work)


def _worth(group: ScalingGroup, before: ScalingPoint, point: ScalingPoint) -> Estimate | None:
    """(FPS of ``point`` - of ``before``) for each rank between them, over the FPS of a rank of the baseline."""
    base = group.baseline
    points = [base, point] if before is base else [base, before, point]

    def gained(times: tuple[float, ...]) -> float:
        fps = [one.frames_per_iteration / time for one, time in zip(points, times, strict=True)]
        each = (fps[-1] - fps[-2]) / (point.world_size - before.world_size)
        return each / (fps[0] / base.world_size)

    return group.model.estimate([one.case for one in points], gained, scale="linear")


def _cheapest(options: Sequence[Option], world_size: int) -> Pick:
    rivals = [option for option in options if option.world_size != world_size and not _is_dearer(option)]
    if not rivals:
        return Pick(number=world_size, word="clear", reason="every other number costs more, beyond its interval")
    reason = _why(options, rivals[0], rivals[0].over_cheapest, 1)
    return Pick(number=world_size, word="within noise", reason=reason)


def _is_dearer(option: Option) -> bool:
    return option.over_cheapest.interval is not None and option.over_cheapest.interval[0] > 1


def _knee(options: Sequence[Option]) -> Pick:
    """The last number before the first whose added ranks give too little, whatever comes later."""
    reached = options[0].world_size
    unsure: Option | None = None
    for option in options[1:]:
        if option.worth is None:
            continue
        sure = at_least(option.worth, KNEE_WORTH)
        unsure = unsure or (option if sure is None else None)
        if option.worth.value < KNEE_WORTH:
            reason = f"ranks added for {option.world_size} give {option.worth.value:.2f} of one each"
            return _pick(options, reached, unsure, reason)
        reached = option.world_size
    return _pick(options, reached, unsure, "it may lie further on: this is the largest number that was measured")


def _pick(options: Sequence[Option], world_size: int, unsure: Option | None, reason: str) -> Pick:
    if unsure is None or unsure.worth is None:
        return Pick(number=world_size, word="clear", reason=reason)
    why = _why(options, unsure, unsure.worth, KNEE_WORTH)
    return Pick(number=world_size, word="within noise", reason=why)


def _why(options: Sequence[Option], unsure: Option, value: Estimate, threshold: float) -> str:
    if value.interval is not None:
        low, high = value.interval
        return f"the interval at {unsure.world_size}, {low:.2f} to {high:.2f}, contains {threshold:g}"
    few = ", ".join(
        f"{option.rounds} at {option.world_size}" for option in options if option.rounds < MIN_ROUNDS_FOR_INTERVAL
    )
    return f"too few rounds for an interval, which needs {MIN_ROUNDS_FOR_INTERVAL}: {few}"
