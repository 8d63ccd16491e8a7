"""How fast the ranks' CPU cores were, from the fixed piece of work that each times after a marked iteration. Pure.

Only GPU cases are looked at. A look is the slowest rank's probe of a marked iteration of the window in which every
rank has one; it found a slowed core if it took over 1.3 times as long as the fastest probe of its host in the whole
set.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.finding import Json

SLOWED: Final = 1.3
MIN_LOOKS: Final = 5  # of each kind, to say what the next iteration took

type Host = tuple[str | None, str | None]


def host_of(record: Json) -> Host:
    return record["environment"]["host_label"], record["environment"]["cpu_model"]


def fastest_s(records: Sequence[Json]) -> dict[Host, float]:
    """Return the fastest probe of any rank, by host."""
    found: dict[Host, float] = {}
    for record in records:
        probes_s = [probe_s for column in _columns(record) for probe_s in column if probe_s is not None]
        if probes_s:
            found[host_of(record)] = min(found.get(host_of(record), probes_s[0]), *probes_s)
    return found


def figures(records: Sequence[Json], fastest: Mapping[Host, float]) -> Json:
    """Return how often a core was slowed, and what the next iteration took where it was not and where it was."""
    looks = [look for record in records for look in _looks(record, fastest)]
    after = {kind: [time_s for slowed, time_s in looks if slowed is kind and time_s] for kind in (False, True)}
    slowed = sum(slowed for slowed, _ in looks)
    medians = {kind: formulas.median(times_s) for kind, times_s in after.items() if len(times_s) >= MIN_LOOKS}
    return {
        "core_looks": len(looks) or None,
        "slowed_core_looks": slowed if looks else None,
        "slowed_core_share": slowed / len(looks) if looks else None,
        "unslowed_iteration_time_s": medians.get(False),
        "slower_after_slowed_core": medians[True] / medians[False] - 1 if len(medians) > 1 else None,
    }


def probe_us(record: Json) -> float | None:
    """Return the median over the marked iterations, of the rank where it is longest; CPU ranks have one too."""
    marked = formulas.marked_iterations(record)
    columns = [rank["samples"].get("core_probe_time_s", []) for rank in record["ranks"]]
    known = [[column[i] for i in marked if i < len(column) and column[i] is not None] for column in columns]
    return max((1e6 * formulas.median(probes_s) for probes_s in known if probes_s), default=None)


def _looks(record: Json, fastest: Mapping[Host, float]) -> Iterator[tuple[bool, float | None]]:
    """Yield whether a core was slowed, with the time of the next iteration if that one counts."""
    columns, times_s = _columns(record), formulas.slowest_s(record)
    counted = {*formulas.counted_iterations(record)}
    for i in formulas.marked_iterations(record):
        probes_s = [probe_s for column in columns if i < len(column) and (probe_s := column[i]) is not None]
        if probes_s and len(probes_s) == len(columns):
            yield max(probes_s) > SLOWED * fastest[host_of(record)], times_s[i + 1] if i + 1 in counted else None


def _columns(record: Json) -> list[Sequence[float | None]]:
    if record["case"]["device"] == "cpu":
        return []
    return [rank["samples"].get("core_probe_time_s", []) for rank in record["ranks"]]
