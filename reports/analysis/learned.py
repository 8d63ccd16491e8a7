"""What a case learned in the iterations that it ran. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from reports.analysis.learning_curves import mean_rewards
from reports.analysis.seeds import Seeds, Size
from reports.analysis.time_to_reward import SMOOTHING_WINDOW, smoothed
from suite.schema.record import CaseResult


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What one case of a strong series had learned at the end of its iterations."""

    case_id: str
    world_size: int
    optimiser_steps: int
    iterations: int
    reward: float  # median of the last iterations, median over rounds
    seeds: tuple[int, ...]  # of the rounds, each once
    of_seeds: tuple[float, ...] = ()  # the same in runs of as many frames and steps with seeds of their own, rising


def learned(result: CaseResult, of_seeds: Sequence[Seeds] = ()) -> Learned | None:
    """None where a completed round reports no rewards."""
    case = result.case
    own = {case.seed_of(rank=0, round_index=record.round) for record in result.completed}
    others = [
        smoothed(rewards[: case.iterations], SMOOTHING_WINDOW)
        for found in of_seeds
        if found.size == Size.of(case)
        for seed, rewards in found.curves.items()
        if seed not in own and len(rewards) >= case.iterations
    ]
    curves = [smoothed(mean_rewards(record), SMOOTHING_WINDOW) for record in result.completed]
    if not all(curves):
        return None
    return Learned(
        case_id=case.case_id,
        world_size=case.world_size,
        optimiser_steps=case.optimiser_steps,
        iterations=case.iterations,
        reward=statistics.median(curve[-1] for curve in curves),
        seeds=tuple(sorted(own)),
        of_seeds=tuple(sorted(curve[-1] for curve in others if curve)),
    )
