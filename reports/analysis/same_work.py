"""Which cases do the same work in an iteration, so that the times of different machines can be compared. Pure."""

from dataclasses import fields
from typing import Final

from suite.schema.record import Case

# What does not change an iteration: names, limits, the seeds, and how many iterations there are.
_NOT_OF_AN_ITERATION: Final = frozenset(
    {"case_id", "series", "scaling", "timeout_s", "hang_timeout_s", "seed", "seed_per_round", "iterations"}
)

type Work = tuple[str, ...]


def work_of(case: Case) -> Work:
    """Equal for two cases if their iterations do the same: task, library, stack, sizes, GPUs, minibatches, settings."""
    return tuple(repr(getattr(case, item.name)) for item in fields(case) if item.name not in _NOT_OF_AN_ITERATION)
