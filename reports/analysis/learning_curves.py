"""What was learned: reward over the iterations of a case. Pure."""

import statistics
from dataclasses import dataclass, replace

from reports.analysis.rows import CaseRow
from suite.records.learning_check import mean_over_ranks, only_learned_less
from suite.schema.record import CaseResult, RunRecord


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """Reward at one iteration of a case, the median over rounds of the mean over ranks."""

    case_id: str
    curve: str
    topology: str
    iteration: int
    reward: float


def learning_curve(result: CaseResult, row: CaseRow) -> tuple[CurvePoint, ...]:
    """Reward over the iterations of a case's completed rounds; empty when no rank reported any."""
    per_round = [mean_rewards(record) for record in result.completed]
    points = []
    for iteration in range(max((len(rewards) for rewards in per_round), default=0)):
        rewards = [
            reward for values in per_round if iteration < len(values) and (reward := values[iteration]) is not None
        ]
        if rewards:
            points.append(
                CurvePoint(
                    case_id=row.case_id,
                    curve=row.curve,
                    topology=row.topology,
                    iteration=iteration,
                    reward=statistics.median(rewards),
                )
            )
    return tuple(points)


def learned_rounds(result: CaseResult) -> list[RunRecord]:
    """Completed ones, and those that are no measurement because they learned less than their reference alone.

    Without them no seed could lie below a reference, and neither of two could learn less.
    """
    return [record for record in result.rounds if record.counts or only_learned_less(record)]


def by_seed(result: CaseResult) -> dict[int, CaseResult]:
    """Split the rounds that learned by the seed of rank 0."""
    found: dict[int, list[RunRecord]] = {}
    for record in learned_rounds(result):
        found.setdefault(result.case.seed_of(rank=0, round_index=record.round), []).append(record)
    return {seed: replace(result, rounds=tuple(records)) for seed, records in found.items()}


def mean_rewards(record: RunRecord) -> list[float | None]:
    """Per iteration, as ``suite.records.learning_check.mean_over_ranks``."""
    return mean_over_ranks(rank.samples.get("reward_mean", ()) for rank in record.ranks)
