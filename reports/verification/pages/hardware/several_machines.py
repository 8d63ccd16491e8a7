"""Cases that several machines measured: how far apart those are, as measured and at full core speed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.verification import formulas
from reports.verification.figures.core_probes import Host, host_of
from reports.verification.figures.neighbours import Neighbours, neighbours_in
from reports.verification.figures.same_work import work_of
from reports.verification.figures.series import is_as_shipped, with_cold_starts
from reports.verification.finding import Json
from reports.verification.pages.hardware.full_core_speed import RankOfHost, fastest_s, full_speed_s, probes
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

MIN_AT_FULL_SPEED: Final = 8  # iterations; fewer have no median


@dataclass(frozen=True, kw_only=True)
class _Case:
    """A case with the completed rounds that nothing ran beside."""

    stored: StoredCase
    records: list[Json]


def figures(version: StoredVersion) -> dict[str, Json]:
    own = [one for one in version.sets if version.whose(one) is None]
    neighbours = neighbours_in(version)
    cases = [_alone(one, stored, neighbours) for one in own for stored in one.in_order]
    cold = with_cold_starts(each.stored for each in cases)
    shipped = [each for each in cases if each.stored.case["series"] not in cold and _is_shipped(each)]
    fastest = fastest_s(record for each in shipped for record in each.records)
    alike: dict[tuple[object, ...], list[_Case]] = {}
    for each in shipped:
        alike.setdefault((_gpus(each), work_of(each.stored.case)), []).append(each)
    rows = {f"{those[0].stored.case_id}, {_gpus(those[0])}": _row(those, fastest) for those in alike.values()}
    rows = {of: row for of, row in rows.items() if len(row["machines"]) > 1}
    return {**rows, "cases on several machines": _over_all([*rows.values()])} if rows else {}


def _alone(one: StoredSet, stored: StoredCase, neighbours: Neighbours) -> _Case:
    records = [record for record in stored.completed if not neighbours.of(one, record)]
    return _Case(stored=stored, records=records)


def _is_shipped(each: _Case) -> bool:
    """Tell whether it trained as upstream ships it, on GPUs of one node of a machine with a label."""
    is_named = bool(each.records and each.records[0]["environment"]["host_label"])
    return is_named and each.stored.case["nnodes"] == 1 and is_as_shipped(each.stored)


def _gpus(each: _Case) -> str:
    return ", ".join(sorted({gpu["name"] for record in each.records for gpu in record["environment"].get("gpus", [])}))


def _row(those: Sequence[_Case], fastest: Mapping[RankOfHost, float]) -> Json:
    by_host: dict[Host, list[tuple[Json, float]]] = {}
    first = those[0].stored.case_id
    for each in sorted(those, key=lambda each: (-len(each.records), each.stored.case_id != first)):
        of_case: dict[Host, list[tuple[Json, float]]] = {}
        for record in each.records:
            of_case.setdefault(host_of(record), []).append((record, each.stored.published_s[record["round"]]))
        by_host = of_case | by_host
    machines = [_machine(host, found, fastest) for host, found in by_host.items()]
    machines.sort(key=lambda machine: float(machine["iteration_s"]))
    return {
        "apart": machines[-1]["iteration_s"] / machines[0]["iteration_s"],
        **{name: [machine[name] for machine in machines] for name in machines[0]},
    }


def _machine(host: Host, found: Sequence[tuple[Json, float]], fastest: Mapping[RankOfHost, float]) -> Json:
    records = [record for record, _ in found]
    own = [fastest[host, rank] for rank in range(world_size(records[0]["case"])) if (host, rank) in fastest]
    probed = [record for record in records if all(any(column) for column in probes(record))]
    times_s = [time_s for record in probed for time_s in full_speed_s(record, fastest)]
    counted = sum(len(formulas.counted_iterations(record, formulas.MSER_RULE)) for record in probed)
    return {
        "machines": host[0],
        "runs": len(records),
        "iteration_s": formulas.median([time_s for _, time_s in found]),
        "full_speed_iteration_s": formulas.median(times_s) if len(times_s) >= MIN_AT_FULL_SPEED else None,
        "full_speed_iterations": len(times_s) if probed else None,
        "counted_iterations": counted if probed else None,
        "fastest_probe_s": min(own, default=None),
    }


def _over_all(rows: Sequence[Json]) -> Json:
    both = [pair for row in rows if (pair := _with_both(row))]
    closer, cases = sum(full < plain for plain, full in both), len(both)
    ways = sum(math.comb(cases, number) for number in range(closer, cases + 1))
    plain, full = ([pair[place] for pair in both] for place in (0, 1))
    return {
        "cases": len(rows),
        "most_apart": max(row["apart"] for row in rows),
        "cases_with_both": cases or None,
        "median_apart": formulas.median(plain) if both else None,
        "median_apart_at_full_speed": formulas.median(full) if both else None,
        "closer_cases": closer if both else None,
        "closer_by_chance": ways / 2**cases if both else None,
    }


def _with_both(row: Json) -> tuple[float, float] | None:
    """Return how far apart the machines are that have both figures, as measured and at full core speed."""
    columns = zip(row["iteration_s"], row["full_speed_iteration_s"], strict=True)
    having = [(plain_s, full_s) for plain_s, full_s in columns if full_s is not None]
    if len(having) < 2:  # noqa: PLR2004 - one machine has none to be compared with
        return None
    plain, full = zip(*having, strict=True)
    return max(plain) / min(plain), max(full) / min(full)
