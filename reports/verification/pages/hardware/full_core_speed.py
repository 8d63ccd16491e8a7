"""Which iterations ran at full core speed. Pure.

These are the counted iterations of which, on every rank, the last probe before and the next one after took at most 1.3
times the fastest that any such case of the machine saw on that rank.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from reports.verification import formulas
from reports.verification.figures.core_probes import SLOWED, Host, host_of
from reports.verification.finding import Json

type RankOfHost = tuple[Host, int]


def probes(record: Json) -> list[list[float | None]]:
    """Return the column of every rank."""
    return [rank["samples"].get("core_probe_time_s", []) for rank in record["ranks"]]


def fastest_s(records: Iterable[Json]) -> dict[RankOfHost, float]:
    """Return the fastest probe of each rank of each host."""
    found: dict[RankOfHost, float] = {}
    for record in records:
        for rank, column in enumerate(probes(record)):
            known = [probe_s for probe_s in column if probe_s is not None]
            if known:
                place = host_of(record), rank
                found[place] = min(found.get(place, math.inf), *known)
    return found


def full_speed_s(record: Json, fastest: Mapping[RankOfHost, float]) -> list[float]:
    """Return the times of the counted iterations at full core speed; a probe is after the iteration of its number."""
    times_s, slow = formulas.slowest_s(record), set[int]()
    for rank, column in enumerate(probes(record)):
        limit_s = SLOWED * fastest[host_of(record), rank]
        is_fast = [None if probe_s is None else probe_s <= limit_s for probe_s in column]
        before, after = _last_known(is_fast), _last_known(is_fast[::-1])[::-1]
        slow |= {i for i in range(len(times_s)) if i == 0 or not before[i - 1] or not after[i]}
    return [times_s[i] for i in formulas.counted_iterations(record, formulas.MSER_RULE) if i not in slow]


def _last_known(values: Sequence[bool | None]) -> list[bool | None]:
    """Return for each place the last value up to there that is known."""
    found: list[bool | None] = []
    for value in values:
        found.append(found[-1] if value is None and found else value)
    return found
