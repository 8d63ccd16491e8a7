"""Pairs of cases of one set that differ in one thing: the stack, or the number of nodes. Pure.

Both sides have the same task, library, number of ranks and environments, and ran in one campaign, so their ratio has
an interval where enough rounds completed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reports.analysis.curves import comparison_key
from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import Estimate
from suite.statistics.series_model import SetModel
from suite.statistics.twins import is_twin

STACK_ORDER: Final = ("kitless", "ovphysx", "isaacsim")  # others are compared with the first that was measured


@dataclass(frozen=True, kw_only=True)
class CasePair:
    """``over_base``: throughput of ``case`` over that of ``base``; None where one has no completed round."""

    base: CaseResult
    case: CaseResult
    over_base: Estimate | None

    @property
    def slower_by(self) -> Estimate | None:
        """How much longer an iteration takes, as a share: the ratio's inverse, minus 1."""
        return self.over_base and self.over_base.mapped(lambda ratio: 1 / ratio - 1)


def stacks_side_by_side(results: Sequence[CaseResult], model: SetModel | None = None) -> tuple[CasePair, ...]:
    """Every case on another stack than the first that its like was measured on."""
    return _pairs(
        results,
        model or SetModel.of(results),
        like=lambda case: (*comparison_key(_as_stack(case)), case.topology),
        rank=lambda case: STACK_ORDER.index(case.stack),
    )


def nodes_side_by_side(results: Sequence[CaseResult], model: SetModel | None = None) -> tuple[CasePair, ...]:
    """Every case on more nodes than the fewest that the same ranks and environments were measured on."""
    return _pairs(
        results,
        model or SetModel.of(results),
        like=lambda case: (*comparison_key(case), case.world_size),
        rank=lambda case: case.nnodes,
    )


def _pairs(
    results: Sequence[CaseResult],
    model: SetModel,
    *,
    like: Callable[[Case], tuple[object, ...]],
    rank: Callable[[Case], int],
) -> tuple[CasePair, ...]:
    groups: dict[tuple[object, ...], list[CaseResult]] = {}
    for result in results:
        if not is_twin(result.case):
            groups.setdefault(like(result.case), []).append(result)
    pairs = []
    for group in groups.values():
        base, *others = sorted(group, key=lambda result: rank(result.case))
        pairs += [_pair(base, other, model) for other in others if rank(other.case) > rank(base.case)]
    return tuple(sorted(pairs, key=lambda pair: (pair.case.case.series, pair.case.case.world_size)))


def _as_stack(case: Case) -> Case:
    return replace(case, stack=STACK_ORDER[0])


def _pair(base: CaseResult, case: CaseResult, model: SetModel) -> CasePair:
    return CasePair(base=base, case=case, over_base=model.speedup(case.case, base.case))
