"""How many samples an optimiser step takes on each rank, and which sizes a batch allows."""

from dataclasses import dataclass
from math import isqrt
from typing import Final

from suite.matrix.catalog import AgentEntry
from suite.schema.record import MinibatchRule

MOST_TRIED: Final = 10**6


@dataclass(frozen=True, kw_only=True)
class Minibatch:
    """Of one rank. It may not fit the batch, or be 0 where ranks have too little: the plan refuses such a case."""

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
    """The minibatch of one rank that collects ``batch`` samples an iteration.

    Both rules refer to a single rank, which would collect ``single_rank_batch``: its minibatch size is
    ``minibatch_size``, else the agent's, else (for a library that counts minibatches) its batch divided by the agent's
    count. ``fixed_minibatch`` keeps that size on every rank, so optimiser steps fall as ranks share the work;
    ``fixed_updates`` divides it by the ranks that share, so they stay. Where nothing is shared, as in a weak series,
    ``ranks_sharing`` is 1 and the rules do not differ.
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
    """Divisors of ``batch`` next to ``size``, from below and from above, where there are any.

    Of a batch beyond ``MOST_TRIED`` squared only divisors that are that small, or that small a part of it.
    """
    small = [divisor for divisor in range(1, min(isqrt(batch), MOST_TRIED) + 1) if batch % divisor == 0]
    divisors = {*small, *(batch // divisor for divisor in small)}
    below = [max(smaller)] if (smaller := [d for d in divisors if d < size]) else []
    above = [min(larger)] if (larger := [d for d in divisors if d > size]) else []
    return below + above
