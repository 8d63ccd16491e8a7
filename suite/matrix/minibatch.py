"""Compute the minibatch of a rank: how many samples an optimiser step takes, and which sizes a batch allows."""

from dataclasses import dataclass
from math import isqrt
from typing import Final

from suite.matrix.catalog import AgentEntry
from suite.schema.record import MinibatchRule

MOST_TRIED: Final = 10**6


@dataclass(frozen=True, kw_only=True)
class Minibatch:
    """The minibatch of one rank. It may not divide the batch, or be 0; the plan refuses such a case."""

    size: int  # samples
    count: int  # per learning epoch


def minibatch_per_rank(
    agent: AgentEntry,
    *,
    rule: MinibatchRule,
    single_rank_batch: int,
    batch: int,
    ranks_sharing: int,
    minibatch_size: int | None,
) -> Minibatch:
    """Return the minibatch of one rank that collects ``batch`` samples per iteration.

    Both rules start from a single rank, which would collect ``single_rank_batch`` samples. Its minibatch size is
    ``minibatch_size``, else the agent's, else (for a library that counts minibatches) its batch divided by the agent's
    count. ``fixed_minibatch`` keeps that size on every rank: the same minibatch, fewer optimiser steps.
    ``fixed_updates`` divides it by the ranks that share the work: the same steps, smaller minibatches. In a weak
    series ranks share nothing, ``ranks_sharing`` is 1, and both rules give the same.
    """
    fixed_updates = rule == "fixed_updates"
    reference_size = minibatch_size or agent.minibatch_size
    if reference_size is None:
        count = agent.num_minibatches or 1
        if fixed_updates or ranks_sharing == 1:
            return Minibatch(size=batch // count, count=count)
        reference_size = single_rank_batch // count
    size = reference_size // ranks_sharing if fixed_updates else reference_size
    return Minibatch(size=size, count=batch // size if size else 0)


def nearest_divisors(batch: int, size: int) -> list[int]:
    """Return the divisors of ``batch`` next below and next above ``size``, if there are any.

    If ``batch`` exceeds ``MOST_TRIED`` squared, only divisors up to ``MOST_TRIED`` and their cofactors are found.
    """
    small = [divisor for divisor in range(1, min(isqrt(batch), MOST_TRIED) + 1) if batch % divisor == 0]
    divisors = {*small, *(batch // divisor for divisor in small)}
    below = [max(smaller)] if (smaller := [d for d in divisors if d < size]) else []
    above = [min(larger)] if (larger := [d for d in divisors if d > size]) else []
    return below + above
