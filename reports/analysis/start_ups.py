"""What the rounds of a case took until they trained, cold and warm apart, whole and phase by phase. Pure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import Estimate, ratio_of
from suite.statistics.start_up import Start, StartUp, classify, start_up

# Part of a start -> the phases of the worker that it consists of, in their order. Two more parts have no phase.
_PHASES: Final[Mapping[str, tuple[str, ...]]] = {
    "imports": ("imports_torch", "imports"),
    "settings": ("task_config",),
    "simulator": ("simulation_launch",),
    "scene": ("environment_creation",),
}
PREPARATION, FIRST_ITERATION = "preparation", "first iteration"
PARTS: Final = (*_PHASES, PREPARATION, FIRST_ITERATION)


@dataclass(frozen=True, kw_only=True)
class StartUps:
    """Starts of one case by whether they were cold; None is not known."""

    by_kind: dict[Start | None, tuple[StartUp, ...]]

    def median_s(self, kind: Start | None) -> float | None:
        """Of all that it took [s]; None without such a start."""
        return median_of_known([start.total_s for start in self.by_kind.get(kind, ())])

    @property
    def kernels_compiled(self) -> tuple[int, ...]:
        """In each of the cold ones of which it is known."""
        known = (start.kernels_compiled for start in self.by_kind.get("cold", ()))
        return tuple(sorted(count for count in known if count is not None))

    @property
    def usual(self) -> tuple[StartUp, ...]:
        """The warm ones, or all where none is known to be."""
        return self.by_kind.get("warm") or tuple(start for found in self.by_kind.values() for start in found)


def start_ups(result: CaseResult) -> StartUps:
    """The starts of the completed rounds. Raises ValueError as ``suite.statistics.start_up.start_up`` does."""
    starts = [start_up(record) for record in result.completed]
    found: dict[Start | None, tuple[StartUp, ...]] = {}
    for start, kind in zip(starts, classify(starts), strict=True):
        found[kind] = (*found.get(kind, ()), start)
    return StartUps(by_kind=found)


def parts_s(start: StartUp) -> dict[str, float]:
    """Seconds of a start by ``PARTS``; they add up to the whole on one rank.

    Phases are those of the slowest rank. ``preparation`` is the time that no phase has: joining the ranks, and the
    library's own preparation. It is 0 where phases and iterations of different ranks add up to more than the whole.
    """
    found = {part: sum(start.phases_s.get(name, 0.0) for name in names) for part, names in _PHASES.items()}
    rest_s = start.total_s - sum(start.phases_s.values()) - start.first_iteration_s
    return {**found, PREPARATION: max(0.0, rest_s), FIRST_ITERATION: start.first_iteration_s}


# --- cold beside warm --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ColdAndWarm:
    """All starts of one kind of work: of a case, and of its like whose rounds begin with an empty kernel cache."""

    case: Case  # with a kept kernel cache
    cold: tuple[StartUp, ...]
    warm: tuple[StartUp, ...]

    @property
    def is_designed(self) -> bool:
        """Whether all kernels were compiled on purpose. Otherwise a cold start may have found some."""
        return any(start.kernel_cache == "empty" for start in self.cold)

    @property
    def has_both(self) -> bool:
        return bool(self.cold and self.warm)

    @property
    def ratio(self) -> Estimate:
        """How many times as long a cold start takes. Raises ValueError without starts of both kinds."""
        return ratio_of(_totals_s(self.cold), _totals_s(self.warm))

    @property
    def kernels_compiled(self) -> tuple[int, ...]:
        """In each of the cold starts of which it is known, fewest first."""
        return tuple(sorted(start.kernels_compiled for start in self.cold if start.kernels_compiled is not None))


def headline(found: Sequence[ColdAndWarm]) -> ColdAndWarm | None:
    """The one that says most of cold beside warm: made on purpose, with most starts, with most kernels."""

    def says(each: ColdAndWarm) -> tuple[bool, int, int]:
        return each.is_designed, min(len(each.cold), len(each.warm)), max(each.kernels_compiled, default=0)

    return max((each for each in found if each.has_both), key=says, default=None)


def _totals_s(starts: Iterable[StartUp]) -> list[float]:
    return [start.total_s for start in starts]


def median_of_known(values: Sequence[float | None]) -> float | None:
    """The median of those that are not None; None without any."""
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None
