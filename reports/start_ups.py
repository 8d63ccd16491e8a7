"""What the rounds of a case took until they trained, cold and warm apart. Pure."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reports.tables import MISSING, Html, html_table, paragraph, seconds
from suite.schema.record import CaseResult
from suite.statistics.start_up import COLD_FACTOR, Start, StartUp, classify, start_up

SAID: Final = (
    "From the first line of a process to the end of its first iteration, median of the rounds. Cold: kernels were "
    f"compiled in the round, or, where its record does not say, it took over {COLD_FACTOR:g} times as long as the "
    "shortest of the case. A new size adds few kernels to those that are there already, a new machine compiles them "
    "all: cold starts are alike where the numbers of kernels are. Scene and first iteration: their part of the warm "
    "ones, or of all where none is known to be warm; the rest is imports, settings, the simulator's launch, and until "
    "the ranks are joined and the library has prepared itself. The launcher, containers and queues come before it and "
    "are not in it; and none of it is in an iteration time."
)


@dataclass(frozen=True, kw_only=True)
class StartUps:
    """Starts of one case by whether they were cold; None is not known."""

    by_kind: dict[Start | None, tuple[StartUp, ...]]

    def median_s(self, kind: Start | None) -> float | None:
        """Of all that it took [s]; None without such a start."""
        return _median([start.total_s for start in self.by_kind.get(kind, ())])

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


def start_up_table(results: Sequence[CaseResult], *, label: str) -> Html:
    """Every case that completed a round, in the order given."""
    found = [(result.case, start_ups(result)) for result in results if result.completed]
    if not found:
        return paragraph("No case completed a round, so nothing is known of its start.")
    unknown = any(None in starts.by_kind for _, starts in found)
    return html_table(
        [
            "Case",
            "Ranks",
            "Warm start in s",
            "Cold start in s",
            "Kernels compiled",
            *(["Warm or cold in s"] if unknown else []),
            "Scene in s",
            "First iteration in s",
            "Rounds warm, cold",
        ],
        (
            [
                case.case_id,
                str(case.world_size),
                seconds(starts.median_s("warm")),
                seconds(starts.median_s("cold")),
                _range(starts.kernels_compiled),
                *([seconds(starts.median_s(None))] if unknown else []),
                seconds(_median([start.phases_s.get("environment_creation") for start in starts.usual])),
                seconds(_median([start.first_iteration_s for start in starts.usual])),
                _rounds(starts),
            ]
            for case, starts in found
        ),
        label=label,
    )


def _range(counts: Sequence[int]) -> str:
    if not counts:
        return MISSING
    return str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"


def _rounds(starts: StartUps) -> str:
    warm, cold, unknown = (len(starts.by_kind.get(kind, ())) for kind in ("warm", "cold", None))
    if not warm + cold:
        return MISSING
    return f"{warm}, {cold}" + (f" and {unknown} not known" if unknown else "")


def _median(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return statistics.median(present) if present else None
